"""A study begun again with another space: a new one, to which every result that still fits is attached.

The old study is only read. What is attached is claimed under the digest of its point and score, so a fork that was
killed is simply said again, and two machines that fork at once make one study. Nothing is left out without a word.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from dibs._canon import digest
from dibs.errors import RefusedError, SpaceError, UsageError
from dibs.search import Goals, Sampler
from dibs.space import Space
from dibs.store import Store

from ._given import given_record
from ._results import results_of
from ._scoring import Attached
from ._study import Study

__all__ = ["Forked", "Progress", "fork"]

Progress = Callable[[int, int], None]
_AT_ONCE = 256
_THREADS = 8


class Forked(NamedTuple):
    """What a fork took over from the study ``of``: results ``attached`` by this call, results that were ``there``
    already, and how many trials and attached results were ``left``, by reason. Together these are all it had.
    """

    of: str
    attached: int
    there: int
    left: dict[str, int]

    def __str__(self) -> str:
        said = f"{self.attached} results of {self.of} taken over, {self.there} were there"
        left = ", ".join(f"{count} {reason}" for reason, count in self.left.items())
        return f"{said}; left out: {left}" if left else said


class _LeftOut(Exception):
    """Why a result is not taken over."""


def fork(
    study: Study, name: str, space: Space | Mapping[str, Any] | None, *, fill: Mapping[str, Any] | None,
    drop: Collection[str], seed: int | None, on_progress: Progress | None,
) -> Study:  # fmt: skip
    """``Study.fork``, which says what it does."""
    old = study.space
    new = old if space is None else space if isinstance(space, Space) else Space(space)
    if name == study.name:
        raise UsageError(f"a fork is a study of its own: give it another name than {name!r}")
    if fill is not None and not isinstance(fill, Mapping):
        raise SpaceError(f"fill is a mapping of names to values, not {fill!r:.80}")
    translate = _Translate(old, new, dict(fill or {}), drop)
    made = _made(study, name, new, seed)
    left: Counter[str] = Counter()
    wanted: dict[str, dict[str, Any]] = {}  # key -> what to write under it
    keys = made.store.keys(name)
    for n, state, found in _results(study):
        try:
            if state != "done":
                raise _LeftOut(state)
            if not _fits(found, study.goal):
                raise _LeftOut("without a score")
            key, fields = given_record(keys, found._replace(point=translate(found.point)))
            if key in wanted:
                raise _LeftOut("the same point and score again")
            wanted[key] = {**fields, "fork": {"study": study.name, "n": n}}
        except _LeftOut as why:
            left[str(why)] += 1
    attached, there = _attach(made, wanted, on_progress)
    made.forked = Forked(study.name, attached, there, dict(sorted(left.items())))
    return made


def _made(study: Study, name: str, space: Space, seed: int | None) -> Study:
    """The new study, or the one that is there. Raises RefusedError if that is another than this fork would be."""
    defined = study._defined()
    sampler: Sampler = copy.copy(defined.sampler)
    object.__setattr__(sampler, "seed", None)  # it is the old study's, not the sampler's own

    def opened(seed: int | None) -> Study:
        return Study(
            study.store, name, space, goal=defined.goal, sampler=sampler, pruner=defined.pruner, seed=seed,
            max_step=defined.max_step, stale_s=defined.stale_s, me=study.me, ranks=study._ranks,
        )  # fmt: skip

    if seed is not None:
        return opened(seed)
    # a seed that everybody who makes this fork arrives at, and under which the old points do not come again
    drawn = int(digest({"fork": name, "of": study.name, "seed": defined.seed})[:8], 16)
    try:
        return opened(drawn)
    except RefusedError as wrong:
        if wrong.field != "seed":
            raise
        return opened(None)  # somebody gave it another: as created


def _results(study: Study) -> Iterator[tuple[int | None, str, Attached]]:
    """(index, state, what it found) of all that the study has; attached results have no index."""
    view = study.view
    view.refresh()
    with view.lock:
        trials, given = results_of(view), sorted(view.given.items())
        damaged = sum(key.startswith(view.keys.given) for key in view.problems)
    for trial in trials:
        scores = trial.scores if trial.score is None else ()
        yield trial.n, trial.state, Attached(trial.point, trial.score, scores, trial.constraints)
    for _, found in given:
        yield None, "done", found
    for _ in range(damaged):
        yield None, "attached and not readable", Attached({}, None)


def _fits(found: Attached, goal: Goals) -> bool:
    """Whether it has what a result of that goal has; what somebody wrote by hand may not."""
    return len(found.scores) == len(goal) if isinstance(goal, tuple) else found.score is not None


def _attach(made: Study, wanted: dict[str, dict[str, Any]], on_progress: Progress | None) -> tuple[int, int]:
    """Claim what is not there yet; (new ones, those that were there)."""
    store, prefix = made.store, made.store.keys(made.name).given
    there = {prefix + name for name in store.backend.names(prefix)}
    missing = sorted(wanted.keys() - there)
    attached = 0

    def claim(key: str) -> bool:
        body = {**store.head("given", made.me), **wanted[key], "from": store.me(made.me)}
        return store.settler.claim(key, body, durable=True) is not None

    for start in range(0, len(missing), _AT_ONCE):
        attached += sum(_at_once(store, claim, missing[start : start + _AT_ONCE]))
        if on_progress is not None:
            on_progress(len(wanted) - len(missing) + min(len(missing), start + _AT_ONCE), len(wanted))
    return attached, len(wanted) - attached


def _at_once(store: Store, claim: Callable[[str], bool], keys: list[str]) -> list[bool]:
    """Each claimed, several at a time: a folder's disk can make many of them durable in one go (measured: 25 times)."""
    if store.backend.root is None:
        return store.backend.at_once(claim, keys)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(claim, keys))


class _Translate:
    """From points of the old space to points of the new one. Raises SpaceError for a ``fill`` or ``drop`` that cannot be meant."""

    def __init__(self, old: Space, new: Space, fill: dict[str, Any], drop: Collection[str]) -> None:
        self.old, self.new = old, new
        drop = [drop] if isinstance(drop, str) else drop
        if not isinstance(drop, Collection) or not all(isinstance(name, str) for name in drop):
            raise SpaceError(f"drop is a list of names, not {drop!r:.80}")
        self.drop = frozenset(drop)
        for name in sorted(self.drop - old.params.keys()):
            raise SpaceError(f"drop={name!r}: the old space has no such parameter", parameter=name)
        for name, value in fill.items():
            if name not in new:
                raise SpaceError(f"fill: the new space has no parameter {name!r}", parameter=name)
            if name in old and old[name].when is None:
                raise SpaceError(
                    f"fill: every old trial has {name!r}; fill says what those had that have no such parameter",
                    parameter=name,
                )
            try:
                fill[name] = new[name].check(value)
            except SpaceError as wrong:
                raise SpaceError(f"fill: {name}: {wrong}", parameter=name) from None
        self.fill = fill

    def __call__(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point as the new space has it. Raises _LeftOut."""
        try:
            point = self.old.check(point)  # constants that a loop of its owner's own left out
        except SpaceError:
            pass  # somebody's own point: it may fit all the same
        new = self.new
        values = {**self.fill, **point}
        try:
            active = new.active({name: value for name, value in values.items() if name in new})
        except SpaceError as wrong:
            raise _LeftOut(f"not a point at all ({wrong})") from None
        kept = {name: value for name, value in point.items() if name in active or name not in self.drop}
        kept |= {name: value for name, value in self.fill.items() if name in active and name not in point}
        for name in kept:
            if name not in new:
                raise _LeftOut(f"with {name}, which is gone: drop leaves it out")
            if name not in active:
                raise _LeftOut(f"with {name}, which would not be active: drop leaves it out")
        for name in new.order:
            if name in active and name not in kept:
                raise _LeftOut(f"without {name}, which is new: fill says what it was")
        try:
            return new.check(kept)
        except SpaceError as wrong:
            raise _LeftOut(f"outside the new {wrong.parameter}") from None
