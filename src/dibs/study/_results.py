"""Views turned into answers: results by the fold, histories for samplers, who holds what. Reads only."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from dibs.errors import NoResult, UsageError
from dibs.record import STATES, Who
from dibs.search import Goals, History, Row, non_dominated

from ._events import Counted
from ._fold import Folded, Seen
from ._quiet import counts, is_quiet
from ._saw import record_row, saw_of
from ._scoring import count_of, excess_of, met, score_in, scores_in
from ._view import View
from ._within import Within

__all__ = [
    "TrialResult",
    "abandoned_of",
    "asked_of",
    "best_of",
    "best_trials",
    "counted_of",
    "counts_of",
    "finished_of",
    "front_of",
    "front_size",
    "front_trials",
    "goal_of",
    "goals_in",
    "history_of",
    "in_flight_of",
    "results_of",
]


class TrialResult(NamedTuple):
    """One trial as it stands. ``score`` is None while running; ``took`` in seconds; ``who`` the attempt's process.

    ``scores``: one for each goal, and empty while there is none; with several goals ``score`` is None.
    ``constraints``: by name, met where the number is 0 or less; None if none was reported.
    """

    n: int
    attempt: int
    state: str
    point: dict[str, Any]
    score: float | None
    who: Who
    reason: str | None
    started: str | None
    took: float | None
    scores: tuple[float, ...] = ()
    constraints: dict[str, float] | None = None


def result_of(trial: Folded) -> TrialResult:
    """The trial's result by the fold; an unreadable record is a running one without a point."""
    seen, record = trial.counts, trial.counts.record
    if record is None:
        return TrialResult(trial.n, seen.attempt, "running", {}, None, Who(), "the record does not read", None, None)
    return TrialResult(
        trial.n, seen.attempt, record.state, dict(record.point), score_in(record), record.who, record.reason,
        record.started_at, record.took_s, scores_in(record), dict(record.constraints) if record.constraints else None,
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


def counted_of(view: View, goal: Goals, total: int) -> Counted:
    """The same with the best score, for those who watch. ``total``: how many trials there will be."""
    if isinstance(goal, tuple):
        return Counted(counts_of(view), None, total, front_size(view, goal))
    best = best_of(view, goal, 1)
    return Counted(counts_of(view), best[0].score if best else None, total)


def goals_in(view: View) -> set[Goals]:
    """Every goal that some record carries."""
    with view.lock:
        records = [seen.record for trial in view.specials() for seen in view.seens(trial.n).values()]
        return view.table.goals | {record.goal for record in records if record is not None and record.goal}


def goal_of(view: View) -> Goals:
    """The goal the records carry, for studies without a definition. Raises UsageError if they disagree or have none."""
    goals = goals_in(view)
    if len(goals) != 1:
        said = "different goals" if goals else "no goal"
        raise UsageError(f"the records of study {view.study!r} carry {said}: open it with goal=")
    return goals.pop()


def best_of(view: View, goal: Goals, k: int) -> list[TrialResult]:
    """The k best done trials that break no constraint, best first; ties by the lower index. One goal."""
    return [result_of(trial) for trial in best_trials(view, goal, k)]


def best_trials(view: View, goal: Goals, k: int) -> list[Folded]:
    """The same as folds; costs the columns, and the trials that are not in them."""
    sign = 1.0 if goal == "min" else -1.0
    with view.lock:
        rows = [trial for n in view.table.ranked(sign, k) if (trial := view.trial(n)) is not None]
        rows += [trial for trial in view.specials() if _is_feasible(trial)]
    return sorted((t for t in rows if _score(t) is not None), key=lambda t: (sign * (_score(t) or 0.0), t.n))[:k]


def front_of(view: View, goal: Goals) -> list[TrialResult]:
    """The done trials that break no constraint and that no such trial dominates, by index; with one goal all the best."""
    return [result_of(trial) for trial in front_trials(view, goal)]


def front_trials(view: View, goal: Goals) -> list[Folded]:
    """The same as folds."""
    with view.lock:
        return [trial for n in _front(view, goal) if (trial := view.trial(n)) is not None]


def front_size(view: View, goal: Goals) -> int:
    """How many trials are in the front."""
    with view.lock:
        return len(_front(view, goal))


def _front(view: View, goal: Goals) -> list[int]:
    goals = count_of(goal)
    ns, scores = view.table.done(goals)
    few = [
        (trial.n, found)
        for trial in view.specials()
        if _is_feasible(trial) and (found := _scores(trial)) and len(found) == goals
    ]
    if few:
        ns = np.concatenate([ns, np.array([n for n, _ in few], np.int64)])
        scores = np.concatenate([scores, np.array([found for _, found in few], np.float64)])
    return sorted(ns[non_dominated(scores, goal)].tolist())


def _is_feasible(trial: Folded) -> bool:
    record = trial.counts.record
    return trial.state == "done" and record is not None and met(record.constraints)


def _score(trial: Folded) -> float | None:
    return score_in(trial.counts.record) if trial.counts.record is not None else None


def _scores(trial: Folded) -> tuple[float, ...]:
    return scores_in(trial.counts.record) if trial.counts.record is not None else ()


def no_result(view: View) -> NoResult:
    """The error that says how far a study is without a result."""
    counted = counts_of(view)
    said = ", ".join(f"{counted[state]} {state}" for state in STATES if state in counted) or "no trials"
    nearest = _nearest(view)
    if nearest is None:
        what = "done trial with a score" if counted.get("done") else "done trial"
        given = f"; attached results ({len(view.given)}) are no trials of it" if len(view.given) else ""
        return NoResult(f"study {view.study!r} has no {what} yet ({said}){given}")
    n, constraints = nearest
    broken = ", ".join(f"{name!r} by {value:.6g}" for name, value in constraints.items() if value > 0)
    return NoResult(
        f"study {view.study!r} has no trial yet that meets its constraints ({said}): trial {n} comes nearest, it is over "
        f"by {excess_of(constraints):.6g} ({broken})"
    )


def _nearest(view: View) -> tuple[int, dict[str, float]] | None:
    """Of done trials that all break a constraint the one that breaks them least, and its constraints."""
    with view.lock:
        n = view.table.nearest()
        rows = [] if n is None else [view.table.record(n, view.study)]
        rows += [t.counts.record for t in view.specials() if t.state == "done" and t.counts.record is not None]
    over = [(excess_of(record.constraints) or 0.0, record.n, record) for record in rows if not met(record.constraints)]
    if not over:
        return None
    record = min(over, key=lambda each: each[:2])[2]
    return record.n, record.constraints or {}


def finished_of(view: View, within: Within | None = None, goals: int = 1) -> History:
    """Done trials with their scores (and attached results), by index; pruned and failed are not in it.

    ``within``: only those whose points have parameters of a space alone. ``goals``: how many the study has.
    """
    with view.lock:
        rows = [row for trial in view.specials() if trial.state == "done" and (row := _row(trial.counts, goals))]
        few = view.given.history(goals) + History.of(rows)
        if within is None:
            return few + view.table.history(done_only=True, goals=goals)
        return within.all(few) + within.settled(view.table, goals)


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


def history_of(view: View, stale_s: float, goals: int = 1) -> History:
    """Everything a sampler may learn from: attached, closed and running. ``goals``: how many the study has."""
    with view.lock:
        rows = [row for trial in view.specials() if trial.settled and (row := _row(trial.counts, goals))]
        settled = view.table.history(done_only=False, goals=goals)
        return view.given.history(goals) + History.of(rows) + settled + in_flight_of(view, stale_s)


def asked_of(view: View, stale_s: float, goals: int = 1) -> tuple[History, dict[str, Any]]:
    """The same, and what it takes to show it again (``_saw``)."""
    with view.lock:
        history = history_of(view, stale_s, goals)
        attempts: dict[int, int] = {}
        for trial in view.specials():
            attempt = trial.counts.attempt if trial.settled else trial.top.attempt
            if attempt:
                attempts[trial.n] = attempt
        return history, saw_of(history, attempts, view.given.said())


def _quiet(view: View, seen: Seen, now: float, stale_s: float) -> bool:
    """A view does not follow beats: what looks quiet is looked at once more."""
    quiet_before, _ = counts(list(view.seens(seen.n).values()), view.released(seen.n))
    if not is_quiet(seen, now, quiet_before, stale_s):
        return False
    again = view.look(seen.n, seen.attempt)
    return again is not None and is_quiet(again, now, quiet_before, stale_s)


def _row(seen: Seen, goals: int = 1) -> Row | None:
    return None if seen.record is None else record_row(seen.record, goals)
