"""One row per trial by the fold, filtered and sorted; the best of them."""

from __future__ import annotations

from typing import Literal

from dibs.errors import NoResult, UsageError
from dibs.record import STATES
from dibs.study._fold import Folded
from dibs.study._results import best_trials, counts_of

from ._causes import cause_of
from ._models import Row
from ._source import Source

__all__ = ["STATES", "best_rows", "no_result", "results_table", "row_of"]


def row_of(trial: Folded, quiet: bool = False) -> Row:
    """A trial as a row; one whose record does not read is running, without a point."""
    cause = "quiet" if quiet else None
    seen, record = trial.counts, trial.counts.record
    if record is None:
        return Row(
            trial.n, seen.attempt, "running", False, trial.waiting, None, None, None, "", "",
            "the record does not read", None, readable=False, cause=cause,
        )  # fmt: skip
    return Row(
        trial.n, seen.attempt, record.state, trial.settled, trial.waiting, record.score, record.step, record.took_s,
        record.who.me, record.who.host, record.reason, record.started_at,
        cause=cause_of(record.state, record.reason) or cause, point=dict(record.point),
    )  # fmt: skip


def results_table(
    source: Source, *, state: str | None = None, sort: Literal["n", "score"] = "n", limit: int | None = None
) -> tuple[Row, ...]:
    """The trials as rows, by index or best score first (rows without a score last); at most ``limit``.

    Raises UsageError for an unknown state, or for sorting by score where no goal is known.
    """
    if state is not None and state not in STATES:
        raise UsageError(f"state {state!r} is none of {', '.join(STATES)}")
    view = source.view
    quiet = {seen.n for seen in view.running() if source.quiet(seen, view.newest)}
    rows = [row for trial in view.trials() if (row := row_of(trial, trial.n in quiet)) and state in (None, row.state)]
    if sort == "score":
        sign = _sign(source)
        rows.sort(key=lambda row: (row.score is None, sign * (row.score or 0.0), row.n))
    return tuple(rows[:limit])


def best_rows(source: Source, k: int = 1) -> tuple[Row, ...]:
    """The k best done trials, best first, ties by the lower index. Raises NoResult with the counts, UsageError."""
    if not counts_of(source.view).get("done"):
        raise no_result(source)
    _sign(source)
    return tuple(row_of(trial) for trial in best_trials(source.view, source.goal or "min", k))


def no_result(source: Source) -> NoResult:
    """The error that says how far the study is without a result."""
    counted = counts_of(source.view)
    said = ", ".join(f"{counted[state]} {state}" for state in STATES if state in counted) or "no trials"
    return NoResult(f"study {source.study!r} has no done trial yet ({said})")


def _sign(source: Source) -> float:
    if source.goal is None:
        raise UsageError(f"study {source.study!r} has no definition, and its records agree on no goal: sort by n")
    return 1.0 if source.goal == "min" else -1.0
