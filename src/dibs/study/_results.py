"""Views turned into answers: results by the fold, histories for samplers, who holds what. Reads only."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from dibs.errors import NoResult, UsageError
from dibs.record import STATES, Who
from dibs.search import History

from ._fold import Folded, Seen
from ._quiet import counts, is_quiet
from ._saw import saw_of
from ._view import View
from ._within import Within

__all__ = [
    "TrialResult",
    "abandoned_of",
    "asked_of",
    "best_of",
    "best_trials",
    "counts_of",
    "finished_of",
    "goal_of",
    "history_of",
    "in_flight_of",
    "results_of",
]


class TrialResult(NamedTuple):
    """One trial as it stands. ``score`` is None while running; ``took`` in seconds; ``who`` the attempt's process."""

    n: int
    attempt: int
    state: str
    point: dict[str, Any]
    score: float | None
    who: Who
    reason: str | None
    started: str | None
    took: float | None


def result_of(trial: Folded) -> TrialResult:
    """The trial's result by the fold; an unreadable record is a running one without a point."""
    seen, record = trial.counts, trial.counts.record
    if record is None:
        return TrialResult(trial.n, seen.attempt, "running", {}, None, Who(), "the record does not read", None, None)
    return TrialResult(
        trial.n, seen.attempt, record.state, dict(record.point), record.score, record.who, record.reason,
        record.started_at, record.took_s,
    )  # fmt: skip


def results_of(view: View, state: str | None = None) -> list[TrialResult]:
    """One result per trial, by index. Raises UsageError for a state there is not."""
    if state is not None and state not in STATES:
        raise UsageError(f"state must be one of {', '.join(STATES)}, not {state!r}")
    return [
        result for trial in view.trials() if (result := result_of(trial)) and (state is None or result.state == state)
    ]


def counts_of(view: View) -> dict[str, int]:
    """How many trials are in each state; states nobody is in are left out."""
    with view.lock:
        return dict(Counter(view.table.counts()) + Counter(trial.state for trial in view.specials()))


def goal_of(view: View) -> str:
    """The goal the records carry, for studies without a definition. Raises UsageError if they disagree or have none."""
    with view.lock:
        records = [seen.record for trial in view.specials() for seen in view.seens(trial.n).values()]
        goals = view.table.goals | {record.goal for record in records if record is not None and record.goal}
    if len(goals) != 1:
        said = "different goals" if goals else "no goal"
        raise UsageError(f"the records of study {view.study!r} carry {said}: open it with goal=")
    return goals.pop()


def best_of(view: View, goal: str, k: int) -> list[TrialResult]:
    """The k best done trials, best first; ties by the lower index."""
    return [result_of(trial) for trial in best_trials(view, goal, k)]


def best_trials(view: View, goal: str, k: int) -> list[Folded]:
    """The same as folds; costs the columns, and the trials that are not in them."""
    sign = 1.0 if goal == "min" else -1.0
    with view.lock:
        rows = [trial for n in view.table.ranked(sign, k) if (trial := view.trial(n)) is not None]
        done = [trial for trial in rows + view.specials() if trial.state == "done"]
    return sorted((t for t in done if _score(t) is not None), key=lambda t: (sign * (_score(t) or 0.0), t.n))[:k]


def _score(trial: Folded) -> float | None:
    return trial.counts.record.score if trial.counts.record is not None else None


def no_result(view: View) -> NoResult:
    """The error that says how far a study is without a result."""
    counted = ", ".join(f"{count} {state}" for state, count in sorted(counts_of(view).items())) or "no trials"
    return NoResult(f"study {view.study!r} has no done trial yet ({counted})")


def finished_of(view: View, within: Within | None = None) -> History:
    """Done trials with their scores (and attached results), by index; pruned and failed are not in it.

    ``within``: only those whose points have parameters of a space alone.
    """
    with view.lock:
        rows = [row for trial in view.specials() if trial.state == "done" and (row := _row(trial.counts))]
        few = History.of(_given(view) + rows)
        if within is None:
            return few + view.table.history(done_only=True)
        return within.all(few) + within.settled(view.table)


def in_flight_of(view: View, stale_s: float) -> History:
    """Running attempts, yours too; quiet ones (by the newest stamp seen) are left out."""
    with view.lock:
        rows = [row for seen in view.running() if not _quiet(view, seen, view.newest, stale_s) and (row := _row(seen))]
        return History.of(rows)


def abandoned_of(view: View, now: float, stale_s: float) -> list[tuple[int, int]]:
    """(trial, attempt) of running attempts that are quiet or whose process is certainly gone. Decides nothing."""
    if isinstance(stale_s, bool) or not isinstance(stale_s, int | float) or not stale_s >= 0:
        raise UsageError(f"stale_s must be a number of seconds, 0 or more, not {stale_s!r}")
    gone = view.store.machine.gone
    with view.lock:
        return [
            (seen.n, seen.attempt)
            for seen in view.running()
            if seen.attempt not in view.released(seen.n)
            and ((seen.record is not None and gone(seen.record.who)) or _quiet(view, seen, now, stale_s))
        ]


def history_of(view: View, stale_s: float) -> History:
    """Everything a sampler may learn from: attached, closed and running."""
    with view.lock:
        rows = [row for trial in view.specials() if trial.settled and (row := _row(trial.counts))]
        return History.of(_given(view) + rows) + view.table.history(done_only=False) + in_flight_of(view, stale_s)


def asked_of(view: View, stale_s: float) -> tuple[History, dict[str, Any]]:
    """The same, and what it takes to show it again (``_saw``)."""
    with view.lock:
        history = history_of(view, stale_s)
        attempts: dict[int, int] = {}
        for trial in view.specials():
            attempt = trial.counts.attempt if trial.settled else trial.top.attempt
            if attempt:
                attempts[trial.n] = attempt
        given = [key[len(view.given.prefix) :] for key in sorted(view.given)] if view.given else []
        return history, saw_of(history, attempts, given)


def _quiet(view: View, seen: Seen, now: float, stale_s: float) -> bool:
    """A view does not follow beats: what looks quiet is looked at once more."""
    quiet_before, _ = counts(list(view.seens(seen.n).values()), view.released(seen.n))
    if not is_quiet(seen, now, quiet_before, stale_s):
        return False
    again = view.look(seen.n, seen.attempt)
    return again is not None and is_quiet(again, now, quiet_before, stale_s)


def _row(seen: Seen) -> tuple[int, dict[str, Any], float | None, str, int | None] | None:
    record = seen.record
    if record is None:
        return None
    return seen.n, record.point, record.score, record.state, record.step


def _given(view: View) -> list[Any]:
    if not view.given:
        return []
    return [(-1, point, score, "done", None) for _, (point, score) in sorted(view.given.items())]
