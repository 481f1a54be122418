"""``dibs trials``: one line per trial, as a table, JSON or CSV."""

from __future__ import annotations

import json
from typing import Any, Literal

import click

from dibs.errors import UsageError
from dibs.view import STATES, Row, constraints_text, duration, point_text, results_table, scores_text

from ._opening import open_source
from ._options import Whole, as_json, command, store_option, study_option, verbose
from ._text import csv_text, json_text, out, table

__all__ = ["verb"]

_FIXED = ("n", "attempt", "state", "score", "took_s", "me", "host", "started_at", "reason", "cause")


@command("trials")
@store_option
@study_option
@click.option("--state", type=click.Choice(STATES), help="Only the trials in this state.")
@click.option(
    "--sort", type=click.Choice(["n", "score"]), default="n", show_default=True, help="score: the best one first."
)
@click.option("--limit", type=Whole(min=0), metavar="K", help="At most K lines.")
@click.option("--csv", "as_csv", is_flag=True, help="Answer in CSV, with a column for each parameter.")
@as_json
@verbose
def verb(
    store: str | None,
    study: str | None,
    state: str | None,
    sort: Literal["n", "score"],
    limit: int | None,
    as_csv: bool,
    as_json: bool,
) -> int:
    """List the trials, one line each.

    \b
    Example:
      dibs trials --store /mnt/shared/studies --study spam --state failed
      dibs trials --study spam --sort score --limit 10
      dibs trials --study spam --csv > spam.csv

    One line is one trial by its attempts: a done one counts more than a failed one, whichever came first. --json gives
    one array. In CSV texts stand as they are and all other values as JSON; several scores are columns, score.0 the first.

    Exit codes: 0; 2 usage, or no such study; 3 store unusable.
    """
    if as_csv and as_json:
        raise UsageError("--csv and --json: choose one")
    source = open_source(store, study)
    rows = results_table(source, state=state, sort=sort, limit=limit)
    if as_json:
        out(json_text([row.to_json() for row in rows]))
    elif as_csv:
        out(_csv(rows, len(source.goal) if isinstance(source.goal, tuple) else 0))
    else:
        cells = [
            (row.n, row.attempt, _state(row), scores_text(row.scores), duration(row.took_s), row.me, _what(row))
            for row in rows
        ]
        score = "scores" if isinstance(source.goal, tuple) else "score"
        table(("trial", "attempt", "state", score, "took", "me", "point"), cells, right=(0, 1, 3, 4))
    return 0


def _state(row: Row) -> str:
    if not row.readable:
        return "unreadable"
    said = {"limit": "over limit", "poison": "poison", "quiet": "quiet"}.get(row.cause or "", row.state)
    return f"{said}, again" if row.state == "failed" and not row.settled else said


def _what(row: Row) -> str:
    said = point_text(row.point)
    if row.constraints:
        said += f"  [{constraints_text(row.constraints)}]"
    return f"{said}  ({row.reason})" if row.reason else said


def _csv(rows: tuple[Row, ...], several: int) -> str:
    names = sorted({name for row in rows for name in row.point})
    bounds = sorted({name for row in rows for name in row.constraints or ()})
    lines = []
    for row in rows:
        told = row.to_json()
        scores = [*told["scores"], *[None] * several][:several]
        limits = [(row.constraints or {}).get(name) for name in bounds]
        lines.append(
            [*(told[name] for name in _FIXED), *scores, *limits, *(_cell(told["point"], name) for name in names)]
        )
    more = [*(f"score.{at}" for at in range(several)), *(f"constraint.{name}" for name in bounds)]
    return csv_text([*_FIXED, *more, *(f"point.{name}" for name in names)], lines)


def _cell(point: dict[str, Any], name: str) -> str:
    if name not in point:
        return ""
    return point[name] if isinstance(point[name], str) else json.dumps(point[name])
