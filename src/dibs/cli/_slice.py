"""``dibs slice``: the scores along each parameter."""

from __future__ import annotations

import click

from dibs.view import Slice, Slices, score_text, slices

from ._axis import axis_notes, band_text, say_hidden, shown_bands
from ._heading import say_heading, say_infeasible
from ._marks import bar
from ._opening import open_source
from ._options import as_json, command, store_option, study_option, verbose, which_option
from ._text import json_text, out, safe, table

__all__ = ["verb"]

_WIDEST = 32


@command("slice")
@click.argument("parameters", nargs=-1, metavar="[PARAMETER]...")
@store_option
@study_option
@which_option
@as_json
@verbose
def verb(parameters: tuple[str, ...], store: str | None, study: str | None, which: int, as_json: bool) -> int:
    """Show the scores along each parameter.

    For each part of a parameter's range, on the scale on which it is searched, how many results lie there, the best, the
    median and the mean of their scores. Done trials and attached results count. Without PARAMETER all that are no
    constants. --json has every (value, score, trial).

    \b
    Example:
      dibs slice --store /mnt/shared/studies --study spam
      dibs slice lr --study spam --json

    Exit codes: 0; 2 usage, no such study, or no such parameter; 3 store unusable.
    """
    told = slices(open_source(store, study), parameters, goal=which)
    if as_json:
        out(json_text(told.to_json()))
    else:
        _say(told)
    return 0


def _say(told: Slices) -> None:
    say_heading(told)
    say_infeasible(told)
    for one in told.slices:
        out()
        _say_slice(one)


def _say_slice(one: Slice) -> None:
    axis = one.axis
    notes = [axis.kind, *axis_notes(axis)]
    notes += [f"{one.inactive} results without it"] if one.inactive else []
    notes += [f"{one.outside} outside it"] if one.outside else []
    out(f"{safe(axis.name)} ({', '.join(notes)})")
    shown = shown_bands(axis, {at: scores.count for at, scores in enumerate(one.bands)})
    rows = [(axis.bands[at], one.bands[at]) for at in shown]
    most = max((scores.count for _, scores in rows), default=0)
    cells = [
        (
            band_text(axis, band, _WIDEST), scores.count, bar(scores.count / most if most else 0.0, 10), score_text(scores.best),
            score_text(scores.median), score_text(scores.mean), "-" if scores.n is None else scores.n,
        )
        for band, scores in rows
    ]  # fmt: skip
    table(("value", "results", "", "best", "median", "mean", "trial"), cells, right=(1, 3, 4, 5, 6), indent=2)
    say_hidden(len(axis.bands) - len(shown))
