"""Machines race each other in a bucket: the only way to see a server that checks first and acts later.

They meet under ``probe/<name>/`` by plain unconditional writes, then all claim the same names at the same moment, and
rewrite what is there from the same version. A sequential probe, as every creation of a store makes it, sees neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from dibs.backend import Backend, Object, Outcome
from dibs.errors import StoreError, UsageError
from dibs.store import Machine, escape

__all__ = ["BucketJoined", "BucketRace", "join_bucket"]

_CHUNK = 25  # names raced for between two meetings
_PAUSE_S = 0.05


@dataclass(frozen=True)
class BucketRace:
    """One way to write, raced for: how many names had one winner, several, nobody; and who won how many, by seat."""

    name: Literal["claim", "rewrite"]
    names: int
    one: int
    several: int
    nobody: int
    wins: tuple[int, ...]

    @property
    def word(self) -> str:
        """exclusive, lies, or unproven (nobody won, or always the same one did: there was no race)."""
        if self.several:
            return "lies"
        return "exclusive" if self.one and sum(1 for won in self.wins if won) > 1 else "unproven"


@dataclass(frozen=True)
class BucketJoined:
    """What a meeting in a bucket found."""

    name: str
    guests: tuple[str, ...]
    seat: int
    races: tuple[BucketRace, ...]

    @property
    def fine(self) -> bool:
        return all(race.word == "exclusive" for race in self.races)

    @property
    def verdict(self) -> str:
        if any(race.word == "lies" for race in self.races):
            return "this server lets several machines win one name: no store can lie here"
        if self.fine:
            return f"{len(self.guests)} raced, and every name had one winner: nothing speaks against a store here"
        return "not proven: the machines did not really race; start them closer together, or with more --names"

    def to_json(self) -> dict[str, Any]:
        races = [{**asdict(race), "wins": list(race.wins), "word": race.word} for race in self.races]
        return {
            "name": self.name, "guests": list(self.guests), "seat": self.seat, "races": races, "fine": self.fine,
            "verdict": self.verdict,
        }  # fmt: skip


def join_bucket(
    backend: Backend, name: str, machines: int, machine: Machine, *, me: str, names: int = 300,
    patience_s: float = 300.0, say: Callable[[str], None] = lambda text: None,
) -> BucketJoined:  # fmt: skip
    """Meet ``machines`` under a name and race them. Raises StoreError (somebody is missing), UsageError (too many)."""
    meeting = _Meeting(backend, f"probe/{escape(name)}/", machine, machines, patience_s)
    try:
        guests = meeting.arrive(me, say)
        races = tuple(meeting.race(way, names) for way in ("claim", "rewrite"))
        return BucketJoined(name, guests, meeting.seat, races)
    finally:
        meeting.leave()


class _Meeting:
    """One machine's end of it."""

    def __init__(self, backend: Backend, prefix: str, machine: Machine, machines: int, patience_s: float) -> None:
        self.backend, self.prefix, self.machines, self.patience_s = backend, prefix, machines, patience_s
        self.clock, self.ident = machine.clock, machine.entropy(8).hex()
        self.idents: list[str] = []

    @property
    def seat(self) -> int:
        return self.idents.index(self.ident)

    def arrive(self, me: str, say: Callable[[str], None]) -> tuple[str, ...]:
        self._tell("here", {"me": me, "of": self.machines})
        said = False
        for _ in self._waiting("come"):
            here = sorted(entry.key.rpartition("/")[2][:-5] for entry in self.backend.list(self.prefix + "here/"))
            if len(here) > self.machines:
                raise UsageError(f"{len(here)} machines came: say --machines {len(here)}, or choose another name")
            if len(here) == self.machines:
                self.idents = here
                break
            if not said:
                said = True
                say(f"waiting for {self.machines - len(here)} more: type the same command on another machine")
        return tuple(str(told["me"]) for told in self._gather("here"))

    def race(self, way: Literal["claim", "rewrite"], names: int) -> BucketRace:
        """All want every name at once, a few at a time."""
        won: list[int] = []
        for start in range(0, names, _CHUNK):
            chunk = list(range(start, min(names, start + _CHUNK)))
            keys = [f"{self.prefix}race/{n:06d}.json" for n in chunk]
            versions = self._versions(keys) if way == "rewrite" else {}
            self.exchange(f"{way}-{start}", {})
            outcomes = self.backend.at_once(partial(self._want, way, versions), keys)
            won += [n for n, outcome in zip(chunk, outcomes, strict=True) if outcome]
        told = [set(each["won"]) for each in self.exchange(f"{way}-won", {"won": won})]
        winners = [sum(n in each for each in told) for n in range(names)]
        return BucketRace(
            way, names, winners.count(1), sum(count > 1 for count in winners), winners.count(0), tuple(map(len, told))
        )

    def _versions(self, keys: list[str]) -> dict[str, str]:
        there = zip(keys, self.backend.read_many(keys), strict=True)
        return {key: found.version for key, found in there if isinstance(found, Object)}

    def _want(self, way: str, versions: Mapping[str, str], key: str) -> bool:
        """Whether this machine was told it won; what is unclear is asked of the name."""
        data = json.dumps({"way": way, "by": self.ident}).encode()
        draft = self.backend.stage(data)
        outcome = (
            self.backend.create(key, draft)
            if way == "claim"
            else self.backend.replace(key, draft, versions.get(key, "1"))
        )
        if outcome is not Outcome.UNSURE:
            return outcome is Outcome.WON
        there = self.backend.read(key)
        return there is not None and there.data == data

    def exchange(self, step: str, told: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Tell all, and wait until all have told: what each said, by seat."""
        self._tell(step, told)
        return self._gather(step)

    def leave(self) -> None:
        """The first seat waits for the others and takes everything away. Never an error."""
        try:
            if self.idents:
                self._tell("bye", {})
                if self.seat != 0:
                    return
                self.patience_s = min(self.patience_s, 60.0)
                self._gather("bye")
                keys = [entry.key for entry in self.backend.list(self.prefix)]
            else:
                keys = [self._key("here", self.ident)]
            self.backend.at_once(self.backend.delete, keys)
        except StoreError:
            return

    def _key(self, step: str, ident: str) -> str:
        return f"{self.prefix}{step}/{ident}.json"

    def _tell(self, step: str, told: Mapping[str, Any]) -> None:
        self.backend.put(self._key(step, self.ident), self.backend.stage(json.dumps(dict(told)).encode()))

    def _gather(self, step: str) -> list[dict[str, Any]]:
        told: dict[str, dict[str, Any]] = {}
        for _ in self._waiting(f"get to {step!r}"):
            for ident in self.idents:
                if ident not in told and (there := self.backend.read(self._key(step, ident))) is not None:
                    told[ident] = json.loads(there.data)
            if len(told) == len(self.idents):
                break
        return [told[ident] for ident in self.idents]

    def _waiting(self, what: str) -> Iterator[None]:
        deadline = self.clock.monotonic() + self.patience_s
        while self.clock.monotonic() < deadline:
            yield
            self.clock.sleep(_PAUSE_S)
        raise StoreError(f"not all {self.machines} machines {what} in {self.patience_s:g} s: start all of them again")
