"""``dibs history``: how the best score came about, by index and by time."""

from __future__ import annotations

from collections.abc import Iterable

import click

from dibs.view import BestSoFar, Settled, best_so_far, score_text

from ._heading import aim_text
from ._marks import sparkline
from ._opening import open_source
from ._options import as_json, command, store_option, study_option, verbose, which_option
from ._text import json_text, out, safe, table

__all__ = ["verb"]


@command("history")
@store_option
@study_option
@click.option(
    "--all", "everything", is_flag=True, help="Every settled trial, not only those that made the best better."
)
@which_option
@as_json
@verbose
def verb(store: str | None, study: str | None, everything: bool, which: int, as_json: bool) -> int:
    """Show how the best score came about.

    Two lines of the best score until then: over the trials by index, as they were asked for, and as they closed. Then
    the trials that were the best when they closed. Times are of the machines' own clocks, which may disagree. --json has
    every settled trial with the best score until then, both ways.

    \b
    Example:
      dibs history --store /mnt/shared/studies --study spam

    Exit codes: 0; 2 usage, or no such study; 3 store unusable.
    """
    told = best_so_far(open_source(store, study), goal=which)
    if as_json:
        out(json_text(told.to_json()))
    else:
        _say(told, everything)
    return 0


def _say(told: BestSoFar, everything: bool) -> None:
    best = "nothing done yet" if not told.done else "nothing meets its constraints yet"
    if told.best is not None:
        best = f"best {score_text(told.best.scores[told.which])}, trial {told.best.n}"
    also = f"; {told.attached} attached results are not in it" if told.attached else ""
    out(f"study {safe(told.study)}, {aim_text(told.goal, told.which, told.goals)}: {best}")
    out(f"  {len(told.trials)} of {told.of} trials settled, {told.done} done{also}")
    if told.best is None:
        return
    timed = told.by_time()
    out(f"  by index  {sparkline([trial.best_by_index for trial in told.trials])}")
    out(f"  by time   {sparkline([trial.best_by_time for trial in timed])}")
    out()
    rows = [
        (
            trial.n,
            trial.state if trial.feasible else f"{trial.state}, over a constraint",
            score_text(trial.score),
            score_text(trial.best_by_time),
            trial.closed_at or "?",
        )
        for trial in (timed if everything else _better(timed))
    ]
    table(("trial", "state", "score", "best", "closed"), rows, right=(0, 2, 3), indent=2)


def _better(timed: Iterable[Settled]) -> list[Settled]:
    """The trials that were the best when they closed."""
    found: list[Settled] = []
    for trial in timed:
        if trial.best_by_time is not None and (not found or trial.best_by_time != found[-1].best_by_time):
            found.append(trial)
    return found
