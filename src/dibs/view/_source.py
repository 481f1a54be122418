"""A study opened for reading: its view, its definition if that reads, and all that does not, with the cure.

A damaged definition does not hide the results: they are read from the trials' records.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from dibs._clock import iso
from dibs.errors import DibsError, NewerFormat, NotFound, RecordError, UsageError
from dibs.search import Goals
from dibs.space import Space
from dibs.store import Store
from dibs.study import Study
from dibs.study._definition import DEFAULT_STALE_S, Definition, read_definition
from dibs.study._fold import Seen
from dibs.study._quiet import counts as quiet_counts
from dibs.study._quiet import is_quiet
from dibs.study._results import goal_of
from dibs.study._view import View, view_of

from ._models import Problem

__all__ = ["Source", "bare", "cure_of"]

_NEWER = "upgrade dibs on this machine; workers of this version leave the record alone"
_CURES = {
    "study.json": "restore the file from a copy: until then nobody can join, but results are still read",
    **dict.fromkeys(
        ("trial", "again"),
        "it counts as running since its last write; workers take it up once it is quiet, or say `dibs rescue` then",
    ),
    "note": "remove the file and enqueue the point again",
    "given": "remove the file and attach the result again",
}


@dataclass(frozen=True)
class Source:
    """What every read model is computed from. ``broken``: why the definition does not read, if it does not."""

    store: Store
    study: str
    view: View
    definition: Definition | None
    broken: DibsError | None = None

    @classmethod
    def of(cls, store: Store, study: str) -> Self:
        """Look at a study now. Raises NotFound (saying which exist), StoreError if the store does not answer."""
        view = view_of(store, study)
        definition, broken = None, None
        try:
            definition = _definition(store, study)
        except DibsError as wrong:  # does not parse, of a later version, or of a sampler unknown here
            broken = wrong
        view.refresh(beats=True)
        if definition is None and broken is None and not view.attempts:
            studies = store.studies()
            if study not in studies:
                known = ", ".join(repr(name) for name in studies[:10]) + (", ..." if len(studies) > 10 else "")
                raise NotFound(f"there is no study {study!r} in {store.url} (there: {known or 'none'})")
        return cls(store, study, view, definition, broken)

    @classmethod
    def over(cls, study: Study) -> Self:
        """Look at a study that is open already."""
        return cls.of(study.store, study.name)

    @property
    def goal(self) -> Goals | None:
        """ "min" or "max", or a tuple of several; None if neither the definition nor the records agree on it."""
        if self.definition is not None:
            return self.definition.goal
        try:
            return goal_of(self.view)
        except UsageError:
            return None

    @property
    def space(self) -> Space | None:
        """The study's space; None where no definition reads."""
        return self.definition.space if self.definition is not None else None

    @property
    def stale_s(self) -> float:
        return self.definition.stale_s if self.definition is not None else DEFAULT_STALE_S

    @property
    def newest_at(self) -> str | None:
        """The newest stamp seen, by the store's clock."""
        return iso(self.view.newest) if self.view.newest else None

    @property
    def still_s(self) -> float | None:
        """How long ago that is by this machine's clock: for people, it decides nothing."""
        return max(0.0, self.store.machine.clock.wall() - self.view.newest) if self.view.newest else None

    def quiet(self, seen: Seen, now: float) -> bool:
        """Whether a running attempt has had no beat for its patience; ``now`` by the store's clock, or less."""
        before, _ = quiet_counts(list(self.view.attempts[seen.n].values()), self.view.released(seen.n))
        return is_quiet(seen, now, before, self.stale_s)

    def problems(self) -> tuple[Problem, ...]:
        """All that does not read, by key."""
        newer = {
            self.view.keys.attempt(seen.n, seen.attempt)
            for trial in self.view.specials()
            for seen in self.view.seens(trial.n).values()
            if seen.newer
        }
        told = {**self.view.notes.problems, **self.view.problems}
        found = [Problem(key, bare(why), cure_of(key, key in newer), key in newer) for key, why in told.items()]
        if self.broken is not None:
            key, late = self.view.keys.study, isinstance(self.broken, NewerFormat)
            found.append(Problem(key, bare(str(self.broken)), cure_of(key, late), late))
        return tuple(sorted(found, key=lambda problem: problem.key))


def _definition(store: Store, study: str) -> Definition | None:
    """The definition as it stands; unlike somebody who joins, a reader does not wait for one being written."""
    key = store.keys(study).study
    there = store.backend.read(key)
    if there is not None and not there.data:
        raise RecordError(f"{key} is empty", key=key)
    return read_definition(store, study)


def bare(why: str) -> str:
    """A reason without the pointer to where the cure is told: this is where it is told."""
    return re.sub(r"; `dibs( federation)? status` lists such records\Z", "", why)


def cure_of(key: str, newer: bool) -> str:
    """What to do about a key that does not read."""
    if newer:
        return _NEWER
    return _CURES.get(key.split("/")[2], "remove the file")
