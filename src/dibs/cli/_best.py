"""``dibs best``: the winner, or the best few; with several goals those that no other one beats."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from dibs.errors import UsageError
from dibs.view import (
    Row,
    best_rows,
    constraints_text,
    duration,
    front_rows,
    goal_text,
    point_text,
    score_text,
    scores_text,
)

from ._opening import open_source
from ._options import Whole, as_json, command, store_option, study_option, verbose
from ._text import json_text, out, safe, table

__all__ = ["say_front", "say_winner", "verb"]


@command("best")
@store_option
@study_option
@click.option("--top", type=Whole(min=1), metavar="K", help="The K best, as a table (with --json: an array).")
@click.option("--point-only", is_flag=True, help="Nothing but the point, as JSON on one line (each, with --top).")
@as_json
@verbose
def verb(store: str | None, study: str | None, top: int | None, point_only: bool, as_json: bool) -> int:
    """Show the best point found.

    \b
    Example:
      dibs best --store /mnt/shared/studies --study spam
      dibs enqueue --study spam-2 "$(dibs best --study spam --point-only)"

    Without --study, the store's only one. The answer may change while the search goes on. Trials that break a constraint
    are left out. With several goals: all trials that no other one beats, by number, as a table (with --json: an array).

    Exit codes: 0; 2 usage, or no such study; 3 store unusable; 5 nothing done yet, or nothing that meets its constraints.
    """
    source = open_source(store, study)
    several = isinstance(source.goal, tuple)
    if several and top:
        raise UsageError(
            f"--top: trials have no order by several goals ({goal_text(source.goal)}); leave it out for all"
        )
    rows = front_rows(source) if several else best_rows(source, top or 1)
    if point_only:
        for row in rows:
            out(_compact(row))
    elif as_json:
        told = [_row_json(row, source.study, source.goal) for row in rows]
        out(json_text(told if top or several else told[0]))
    elif several:
        say_front(rows, source.goal)
    elif top is None:
        say_winner(rows[0], source.goal)
    else:
        header = ("trial", "score", "took", "me", "point")
        cells = [(row.n, score_text(row.score), duration(row.took_s), row.me, point_text(row.point)) for row in rows]
        table(header, cells, right=(0, 1, 2))
    return 0


def say_front(rows: Sequence[Row], goal: str | Sequence[str] | None, most: int | None = None) -> None:
    """The trials nobody beats as people read them, a line for each, at most so many."""
    out(f"{len(rows)} trial{'s' * (len(rows) != 1)} that no other one beats, goals {goal_text(goal)}")
    bound = any(row.constraints for row in rows)
    cells = [
        (row.n, scores_text(row.scores), *([constraints_text(row.constraints)] if bound else []), duration(row.took_s),
         row.me, point_text(row.point))
        for row in rows[:most]
    ]  # fmt: skip
    table(("trial", "scores", *(["constraints"] if bound else []), "took", "me", "point"), cells, right=(0,))
    if most is not None and len(rows) > most:
        out(f"... and {len(rows) - most} more")


def say_winner(row: Row, goal: str | Sequence[str] | None) -> None:
    """The best trial as people read it: the score, where it is from, and the point, a line for each parameter."""
    out(f"{score_text(row.score)}  trial {row.n}" + (f", goal {goal_text(goal)}" if goal else ""))
    width = max(map(len, map(safe, row.point)), default=0)
    for name, value in row.point.items():
        out(f"  {safe(name).ljust(width)}  {safe(repr(value))}")
    if row.constraints:
        out(f"  constraints met: {safe(constraints_text(row.constraints))}")


def _row_json(row: Row, study: str, goal: str | Sequence[str] | None) -> dict[str, object]:
    """A row that also says which study it is from."""
    return {"study": study, "goal": goal, **row.to_json()}


def _compact(row: Row) -> str:
    return json.dumps(row.to_json()["point"])
