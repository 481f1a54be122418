"""The functions: take, report, finished, in_flight, abandoned, rescue. The seed of everything else.

No object to keep and no loop to enter: what a process took it remembers here, by store, study and trial, and
``report`` writes that attempt and no other.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

from dibs._canon import all_to_json, from_json, plain
from dibs.errors import AlreadyClosed, NotOwner, RecordError, RefusedError, UsageError
from dibs.record import CLOSED
from dibs.search import Goal, Goals, History, a_goal
from dibs.space import Space
from dibs.store import Store

from . import _results
from ._attempt import Attempt, Terms, claim_attempt
from ._definition import DEFAULT_STALE_S, Definition, read_definition
from ._fold import Folded
from ._quiet import beat_s_of
from ._scoring import constraints_of, count_of, goal_said, score_of, scores_of
from ._succession import next_attempt
from ._view import View, view_of
from ._within import Within

__all__ = ["Taken", "abandoned", "finished", "in_flight", "report", "rescue", "take"]

log = logging.getLogger("dibs")
_taken: dict[tuple[str | int, str, int], Attempt | str] = {}  # a text: how this process closed it
_ended: deque[tuple[str | int, str, int]] = deque()  # what of that is a text, oldest first
_lock = Lock()
REMEMBERED = 4096  # closed ones, so that a process may close any number


class Taken(NamedTuple):
    """A claimed attempt: train ``point`` (from the second attempt on it is the first one's)."""

    attempt: int
    point: dict[str, Any]
    seed: int


def take(
    store: Store,
    point: Mapping[str, Any],
    *,
    study: str,
    trial: int,
    goal: Goals | Sequence[Goal],
    me: str | None = None,
    of: int | None = None,
    attempt: int | None = None,
) -> Taken | None:
    """Claim a trial; None if it is somebody else's, settled, or the study is stopped.

    Of all callers on all machines at most one gets an attempt. ``attempt=None``: attempt 0 if nobody ever
    claimed the trial, the next one if it is interrupted, to be retried or released. ``attempt=k`` needs k-1 to
    exist. ``of`` (default trial + 1) is the number of trials the caller wants in all. ``goal``: "min", "max", or a
    list of 2 to 8 of these. No study.json is written.
    Raises UsageError, RefusedError (another goal than the study's, or a copy), UnsureError, StoreError.
    """
    _is_store(store)
    trial = _index("trial", trial)
    of = max(trial + 1, 0 if of is None else _index("of", of))
    attempt = None if attempt is None else _index("attempt", attempt)
    goal = a_goal(goal)
    values = _values(point)
    store.demand_own()
    view = view_of(store, study)
    with view.lock:
        view.notes.refresh(store.machine.clock.monotonic())
        if view.notes.stopped:
            return None
    terms = _terms(store, study, goal, me, of)
    if attempt is None:
        claimed = _take_any(view, trial, values, terms)
    elif attempt == 0:
        claimed = claim_attempt(store, view.keys, trial, 0, values, terms)
        if claimed is not None:
            view.own(claimed)
    else:
        claimed = _take_next(view, trial, values, terms, attempt)
    if claimed is None:
        return None
    view.publish(me)
    with _lock:
        _taken[_place(store), study, trial] = claimed
    return Taken(claimed.attempt, dict(claimed.point), claimed.seed)


def report(
    store: Store,
    point: Mapping[str, Any],
    curve: Iterable[Any],
    *,
    study: str,
    trial: int,
    me: str | None = None,
    state: str = "running",
    goal: Goals | Sequence[Goal] | None = None,
    reason: str | None = None,
    scores: Sequence[float] | None = None,
    constraints: Mapping[str, float] | None = None,
) -> bool:
    """Write what this process's attempt at the trial has come to; durable when a closing state returns.

    ``curve``: scores, or (step, score) pairs, from the beginning. state "running" shows it (throttled) and moves
    the record; "done", "pruned", "failed", "interrupted" close it with the last value as the score. Done whose last
    value is no finite number (None, NaN, a text, nothing at all) is failed, with the reason.
    ``scores``: with several goals one for each, with state "done", which without them is failed; the curve is then only
    to look at. ``constraints``, with state "done": by name, met where the number is 0 or less.
    Returns True if somebody rescued the trial: stop early.
    Raises NotOwner if this process did not take it, Superseded, AlreadyClosed, UsageError, StoreError.
    """
    if state != "running" and state not in CLOSED:
        raise UsageError(f"state must be running, done, pruned, failed or interrupted, not {state!r}")
    trial = _index("trial", trial)
    with _lock:
        mine = _taken.get((_place(store), study, trial))
    if mine is None:
        raise NotOwner(f"trial {trial} of {study!r} was not taken by this process: take it first")
    if isinstance(mine, str):
        raise AlreadyClosed(f"this process has closed {mine}: the first close is the last write")
    if not _same(point, mine.point) and _values(point) != mine.point:
        raise UsageError(
            f"attempt {mine.attempt} of trial {trial} has the point {mine.point}: train what take returned"
        )
    theirs = mine.goal
    goal = goal_said(goal)
    if goal is not None and goal != theirs:
        raise RefusedError(
            f"trial {trial} was taken with goal={theirs!r}, not {goal!r}", field="goal", theirs=theirs, ours=goal
        )
    if state != "done" and (scores is not None or constraints is not None):
        raise UsageError(f'scores and constraints are said with state="done", not {state!r}')
    if scores is not None and not isinstance(theirs, tuple):
        raise UsageError(
            f"trial {trial} was taken with one goal: its score is the last value of the curve, not scores="
        )
    pairs, wrong = _pairs(curve, closing=state != "running" and not isinstance(theirs, tuple))
    if not mine.ours:  # before the lock, which a thread of the parent's may hold for ever
        raise NotOwner(f"trial {trial} was taken before this process was forked: only its owner may write it")
    with mine.lock:
        mine.curve.clear()
        for step, value in pairs:
            mine.add(value, step)
        if state == "running":
            return mine.show() and mine.rescued()
        _close(mine, state, wrong, reason, scores, constraints)
    with _lock:
        at = _place(store), study, trial
        _taken[at] = f"attempt {mine.attempt} of trial {trial} as {mine.state}"
        _ended.append(at)
        if len(_ended) > REMEMBERED and isinstance(_taken.get(oldest := _ended.popleft()), str):
            del _taken[oldest]
    return False


def finished(store: Store, space: Space | None = None, *, study: str) -> History:
    """Done trials (and attached results) with their scores, by index; with a space, those of its parameters only."""
    _is_space(space)
    view = _fresh(store, study)
    return _results.finished_of(view, None if space is None else _within(store, study, space), _goals(store, study))


def in_flight(store: Store, space: Space | None = None, *, study: str) -> History:
    """Running trials, yours too, with no score; quiet ones (by the newest stamp seen) are left out."""
    _is_space(space)
    history = _results.in_flight_of(_fresh(store, study), _stale_s(store, study))
    return history if space is None else _within(store, study, space).all(history)


def abandoned(store: Store, study: str, stale_s: float | None = None) -> list[tuple[int, int]]:
    """(trial, attempt) of running attempts that are quiet for ``stale_s`` or certainly dead. Decides nothing."""
    wanted_s = _stale_s(store, study) if stale_s is None else stale_s
    return _results.abandoned_of(_fresh(store, study), store.now(), wanted_s)


def rescue(store: Store, study: str, stale_s: float | None = None) -> list[tuple[int, int]]:
    """Free every abandoned attempt, so that any worker may take the next one; runs nothing."""
    found = abandoned(store, study, stale_s)
    for n, attempt in found:
        view_of(store, study).notes.release(n, attempt, None)
    return found


def _take_any(view: View, trial: int, point: dict[str, Any], terms: Terms) -> Attempt | None:
    if trial not in view.names:
        claimed = claim_attempt(view.store, view.keys, trial, 0, point, terms)
        if claimed is not None:
            view.own(claimed)
            return claimed
    found = _look(view, trial)
    if found is None:  # its record was removed by hand since we looked last
        return claim_attempt(view.store, view.keys, trial, 0, point, terms)
    return next_attempt(view, found, terms, lambda: point) if found.waiting else None


def _take_next(view: View, trial: int, point: dict[str, Any], terms: Terms, attempt: int) -> Attempt | None:
    found = _look(view, trial)
    if found is None or found.top.attempt < attempt - 1:
        raise UsageError(f"attempt {attempt} of trial {trial} needs attempt {attempt - 1} to exist")
    if found.settled or found.top.attempt >= attempt:
        return None
    return next_attempt(view, found, terms, lambda: point)


def _look(view: View, trial: int) -> Folded | None:
    """Read all attempts of one trial, and the notes."""
    with view.lock:
        view.notes.refresh()
        attempt = 0
        while view.look(trial, attempt) is not None or attempt <= max(view.seens(trial), default=-1):
            attempt += 1
        return view.trial(trial)


def _close(
    mine: Attempt, state: str, wrong: str | None, reason: str | None, scores: Any = None, constraints: Any = None
) -> None:
    step = max(mine.curve, default=None)
    score = mine.curve[step] if step is not None else None
    found: dict[str, Any] = {}
    if isinstance(mine.goal, tuple):
        score = None
    elif wrong is None:
        try:
            score_of(score)
        except UsageError as told:
            wrong = str(told) if step is not None else "nothing was reported"
    if state == "done":
        try:
            if isinstance(mine.goal, tuple):
                found["scores"] = scores_of(scores, mine.goal)
            found["constraints"] = constraints_of(constraints)
        except UsageError as told:
            wrong = wrong or str(told)
    if wrong is not None:  # NaN and infinities stay in the curve
        score, found = None, {}
        if state == "done":
            state, reason = "failed", wrong
    reason = None if reason is None else str(reason)[:500]
    mine.close(state, score=score if state in ("done", "pruned") else None, step=step, reason=reason, **found)


def _pairs(curve: Iterable[Any], *, closing: bool) -> tuple[list[tuple[int, float]], str | None]:
    """The curve by step, and what is wrong with its last value; wrong ones before it, or while running, raise."""
    if isinstance(curve, str | bytes) or not isinstance(curve, Iterable):
        raise UsageError(f"a curve is scores or (step, score) pairs, not {type(curve).__name__}")
    items = list(curve)
    pairs: list[tuple[int, float]] = []
    for at, item in enumerate(items):
        step, value = at, item
        if isinstance(item, tuple | list):
            if len(item) != 2:
                raise UsageError(f"a curve is scores or (step, score) pairs, not {item!r:.80}")
            step, value = _index("a step", item[0]), item[1]
        try:
            pairs.append((step, score_of(value, finite=False)))
        except UsageError as wrong:
            if closing and at == len(items) - 1:
                return pairs, str(wrong)
            raise
    return pairs, None


def _values(point: Mapping[str, Any]) -> dict[str, Any]:
    try:
        foreign = next((name for name in point if not isinstance(name, str)), None)
        if foreign is not None:
            raise TypeError(f"the name {foreign!r:.80} is no text")
        return {str(name): from_json(value) for name, value in all_to_json(point).items()}
    except (TypeError, AttributeError) as wrong:
        raise UsageError(f"a point maps names to values: {wrong}") from None


def _same(point: Any, other: dict[str, Any]) -> bool:
    """Whether it is that very point, as it nearly always is."""
    try:
        return type(point) is dict and bool(point == other)
    except ValueError:  # arrays
        return False


def _is_store(store: Any) -> None:
    if not isinstance(store, Store):
        raise UsageError(f"store must be a Store, not {store!r:.80}: Store(path)")


def _is_space(space: Any) -> None:
    if space is not None and not isinstance(space, Space):
        raise UsageError(f"space must be a Space, not {space!r:.80}")


def _index(what: str, value: Any) -> int:
    value = plain(value)
    if type(value) is not int or value < 0:
        raise UsageError(f"{what} must be a non-negative integer, not {value!r:.80}")
    return value


def _place(store: Store) -> str | int:
    """Which store a taken trial is in: by its path, or, where nothing else tells two apart, by this very object."""
    return id(store) if store.url == "memory:" else store.url


def _terms(store: Store, study: str, goal: Goals, me: str | None, of: int) -> Terms:
    defined = _definition(store, study)
    if defined is not None and defined.goal != goal:
        raise RefusedError(
            f"study {study!r} was created with goal={defined.goal!r}, and you say {goal!r}: say the study's",
            field="goal", theirs=defined.goal, ours=goal,
        )  # fmt: skip
    seed = defined.seed if defined is not None else 0
    beat_s = beat_s_of(_stale_s(store, study), folder=store.backend.traits.touch)
    return Terms(seed=seed, of=of, goal=goal, me=me, beat_s=beat_s)


def _definition(store: Store, study: str) -> Definition | None:
    known: Definition | None = store.kept.get(("definition", study))
    if known is None:
        known = read_definition(store, study)
        if known is not None:
            store.kept["definition", study] = known
    return known


def _stale_s(store: Store, study: str) -> float:
    try:
        defined = _definition(store, study)
    except RecordError as wrong:  # results read all the same
        log.warning("%s", wrong)
        return DEFAULT_STALE_S
    return defined.stale_s if defined is not None else DEFAULT_STALE_S


def _goals(store: Store, study: str) -> int:
    """How many goals the study has, as far as anybody has said; its definition is only asked where no record says it."""
    view = view_of(store, study)
    found = _results.goals_in(view)
    if not found and view.given:
        try:
            defined = _definition(store, study)
            found = {defined.goal} if defined is not None else found
        except RecordError as wrong:  # results read all the same
            log.warning("%s", wrong)
    return max(map(count_of, found), default=1)


def _fresh(store: Store, study: str) -> View:
    _is_store(store)
    view = view_of(store, study)
    view.refresh()
    return view


def _within(store: Store, study: str, space: Space) -> Within:
    found: Within | None = store.kept.get(("within", study, space.names))
    if found is None:
        found = store.kept.setdefault(("within", study, space.names), Within(space))
    return found
