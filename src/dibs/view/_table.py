"""One row per trial by the fold, filtered and sorted; the best of them."""

from __future__ import annotations

from typing import Literal

from dibs.errors import UsageError
from dibs.record import STATES
from dibs.search import Goals
from dibs.study._fold import Folded
from dibs.study._results import best_trials, counts_of, front_trials, no_result
from dibs.study._scoring import met, score_in, scores_in

from ._causes import cause_of
from ._models import Row
from ._source import Source

__all__ = ["STATES", "best_rows", "front_rows", "results_table", "row_of"]


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
        trial.n, seen.attempt, record.state, trial.settled, trial.waiting, score_in(record), record.step, record.took_s,
        record.who.me, record.who.host, record.reason, record.started_at,
        cause=cause_of(record.state, record.reason) or cause, point=dict(record.point), scores=scores_in(record),
        constraints=dict(record.constraints) if record.constraints else None,
    )  # fmt: skip


def results_table(
    source: Source, *, state: str | None = None, sort: Literal["n", "score"] = "n", limit: int | None = None
) -> tuple[Row, ...]:
    """The trials as rows, by index or best score first; at most ``limit``.

    By score those that break a constraint come after those that do not, and those without a score last. Raises UsageError
    for an unknown state, or for sorting by score where no goal is known, or several are.
    """
    if state is not None and state not in STATES:
        raise UsageError(f"state {state!r} is none of {', '.join(STATES)}")
    view = source.view
    quiet = {seen.n for seen in view.running() if source.quiet(seen, view.newest)}
    rows = [row for trial in view.trials() if (row := row_of(trial, trial.n in quiet)) and state in (None, row.state)]
    if sort == "score":
        sign = 1.0 if one_goal(source) == "min" else -1.0
        rows.sort(key=lambda row: (row.score is None, not met(row.constraints), sign * (row.score or 0.0), row.n))
    return tuple(rows[:limit])


def best_rows(source: Source, k: int = 1) -> tuple[Row, ...]:
    """The k best done trials that meet their constraints, best first, ties by the lower index.

    Raises NoResult with the counts, UsageError where no goal is known, or several are.
    """
    if not counts_of(source.view).get("done"):
        raise no_result(source.view)
    rows = tuple(row_of(trial) for trial in best_trials(source.view, one_goal(source), k))
    if k and not rows:
        raise no_result(source.view)
    return rows


def front_rows(source: Source) -> tuple[Row, ...]:
    """The done trials that meet their constraints and that no such trial dominates, by index.

    Raises NoResult with the counts if there is none, UsageError where no goal is known.
    """
    if source.goal is None:
        raise _no_goal(source)
    rows = tuple(row_of(trial) for trial in front_trials(source.view, source.goal))
    if not rows:
        raise no_result(source.view)
    return rows


def one_goal(source: Source) -> Goals:
    """The goal, where there is one. Raises UsageError."""
    if source.goal is None:
        raise _no_goal(source)
    if isinstance(source.goal, tuple):
        raise UsageError(
            f"study {source.study!r} has {len(source.goal)} goals, by which trials have no order: sort by n"
        )
    return source.goal


def _no_goal(source: Source) -> UsageError:
    return UsageError(f"study {source.study!r} has no definition, and its records agree on no goal: sort by n")
