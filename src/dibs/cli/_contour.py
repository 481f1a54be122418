"""``dibs contour X Y``: the scores over two parameters, as a grid."""

from __future__ import annotations

from collections import Counter

import click

from dibs.view import Axis, Band, Contour, contour

from ._axis import axis_notes, band_text, say_hidden, shown_bands
from ._heading import say_heading, say_infeasible
from ._opening import open_source
from ._options import as_json, command, store_option, study_option, verbose, which_option
from ._text import json_text, out, safe, table

__all__ = ["verb"]

_WIDEST = 18


@command("contour")
@click.argument("x", metavar="X")
@click.argument("y", metavar="Y")
@click.option("--mean", is_flag=True, help="The mean score of each cell instead of the best.")
@store_option
@study_option
@which_option
@as_json
@verbose
def verb(x: str, y: str, mean: bool, store: str | None, study: str | None, which: int, as_json: bool) -> int:
    """Show the scores over two parameters.

    X goes across and Y down, each in equal parts of the scale on which it is searched. A cell has the best score of the
    results in it, done trials and attached ones, and nothing where there is none. --json has every (x, y, score, trial),
    and count, best, mean and median of every cell.

    \b
    Example:
      dibs contour lr layers --store /mnt/shared/studies --study spam

    Exit codes: 0; 2 usage, no such study, or no such parameter; 3 store unusable.
    """
    told = contour(open_source(store, study), x, y, goal=which)
    if as_json:
        out(json_text(told.to_json()))
    else:
        _say(told, mean)
    return 0


def _say(told: Contour, mean: bool) -> None:
    say_heading(told)
    say_infeasible(told)
    for count, why in ((told.inactive, "without one of the two"), (told.outside, "outside the space")):
        if count:
            out(f"  {count} {why}")
    out(f"  {'mean' if mean else 'best'} score; across: {_named(told.x)}; down: {_named(told.y)}")
    values = {(cell.x, cell.y): cell.scores.mean if mean else cell.scores.best for cell in told.cells}
    columns = shown_bands(told.x, Counter(cell.x for cell in told.cells))
    rows = shown_bands(told.y, Counter(cell.y for cell in told.cells))
    header = ["", *(_begin(told.x, told.x.bands[at]) for at in columns)]
    cells = [
        [band_text(told.y, told.y.bands[row], _WIDEST), *(_number(values.get((column, row))) for column in columns)]
        for row in rows
    ]
    table(header, cells, right=range(1, len(header)), indent=2)
    say_hidden(len(told.x.bands) - len(columns) + len(told.y.bands) - len(rows))


def _named(axis: Axis) -> str:
    notes = axis_notes(axis)
    return safe(axis.name) + (f" ({', '.join(notes)})" if notes else "")


def _begin(axis: Axis, band: Band) -> str:
    """A column's head: a choice, or where its part of the numbers begins."""
    if axis.kind == "choice" or band.low == band.high:
        return band_text(axis, band, _WIDEST)
    return f"{band.low:.3g} .." if axis.kind == "float" else f"{band.low} .."


def _number(score: float | None) -> str:
    return "" if score is None else f"{score:.4g}"
