"""Slots: K places, each held by one process at a time, handed on by claiming its next generation.

A generation is a name; nobody's is ever removed or claimed twice, so there is no lock to break. Who lets go
marks its own record released. A holder that is certainly dead is passed over; one that is only quiet (no beat for
the patience, and two beats watched) too, and then the cap is soft: if it was alive, one more holds a slot than said.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dibs.backend import Object
from dibs.errors import NotOwner, RecordError, StoreError
from dibs.record import Who, decode
from dibs.store import Held, Store, StudyKeys

from ._fold import Seen
from ._quiet import DEFAULT_BEAT_S, Watch

__all__ = ["Hold", "Rack", "Slots", "Standing", "StudyRack", "choose", "standing"]

log = logging.getLogger("dibs")
_RELEASED = "released"


class Standing(enum.IntEnum):
    """What there is to say about a slot; the lower, the better to take."""

    FREE = 0  # never claimed, or released
    DEAD = 1  # its holder certainly is
    QUIET = 2  # its holder has not been heard of for its patience: taking it is soft
    HELD = 3


# pure


def standing(
    *, released: bool, gone: bool, silent_s: float, watched_s: float, beat_s: float, stale_s: float
) -> Standing:
    """How the newest generation of a slot stands. ``silent_s``: by the store's clock; ``watched_s``: by our own."""
    if released:
        return Standing.FREE
    if gone:
        return Standing.DEAD
    quiet = watched_s >= 2 * beat_s and silent_s > max(stale_s, 3 * beat_s)
    return Standing.QUIET if quiet else Standing.HELD


def choose(standings: Mapping[int, Standing], first: int = 0) -> list[int]:
    """The slots that may be taken, the best to try first; ``first``: where to begin among equals."""
    ready = [slot for slot, stands in standings.items() if stands is not Standing.HELD]
    return sorted(ready, key=lambda slot: (standings[slot], (slot - first) % max(1, len(standings)), slot))


# the edge


class Rack(Protocol):
    """Where the generations of some slots lie, and what is written there."""

    count: int

    def key(self, slot: int, generation: int) -> str: ...
    def newest(self, slot: int) -> int:
        """The highest generation that shows in a listing, -1 if there is none."""
        ...

    def body(self, slot: int, generation: int) -> dict[str, Any]: ...


class StudyRack:
    """``study/<s>/slot/<k>/<generation>.json``: the cap over the running trials of a study."""

    def __init__(self, store: Store, keys: StudyKeys, count: int, me: str | None) -> None:
        self.store, self.keys, self.count, self.me = store, keys, count, me

    def key(self, slot: int, generation: int) -> str:
        return self.keys.slot(slot, generation)

    def newest(self, slot: int) -> int:
        names = self.store.backend.names(self.keys.slots(slot))
        stems = (name.removesuffix(".json") for name in names)
        return max((int(stem) for stem in stems if stem.isascii() and stem.isdigit()), default=-1)

    def body(self, slot: int, generation: int) -> dict[str, Any]:
        head = self.store.head("slot", self.me)
        return {**head, "study": self.keys.name, "slot": slot, "generation": generation, "of": self.count}


class _Top(NamedTuple):
    """The newest generation of a slot as it was read; ``body`` is empty if it does not read."""

    generation: int
    body: dict[str, Any]
    there: Object | None


class Hold:
    """A slot in the hands of this process. Beats like a trial; ``release`` hands it on."""

    def __init__(self, store: Store, rack: Rack, slot: int, generation: int, held: Held) -> None:
        self.n, self.generation, self._store, self._rack, self._held = slot, generation, store, rack, held
        self.beat_s: float = held.body["beat_s"]
        self.closed = False
        self._called = f"slot {slot}"

    def lost(self) -> bool:
        """Whether somebody took this process for dead or quiet and has the slot now."""
        return self._store.backend.read(self._rack.key(self.n, self.generation + 1)) is not None

    def beat(self) -> None:
        """This process lives."""
        with self._held.lock:
            if not self.closed:
                self._write(None)

    def release(self) -> None:
        """Let go; never raises, since whoever finds this process dead or quiet passes over it all the same."""
        with self._held.lock:  # or a beat on its way would write "held" over it
            if not self.closed:
                self.closed = True
                self._write(_RELEASED)

    def _write(self, state: str | None) -> None:
        if self._held.pid != self._store.machine.pid():
            return
        try:
            if state is None and self._store.backend.traits.touch:
                self._store.backend.touch(self._held.key)
            else:
                changes = {"state": state} if state is not None else {}
                self._store.settler.rewrite(self._held, {**self._held.body, **changes})
        except (NotOwner, StoreError) as wrong:  # passed over meanwhile, or an outage
            log.debug("slot %d: %s", self.n, wrong)

    def interrupt(self, reason: str) -> None:
        """A signal's grace is over: the slot stays held until the process has ended."""


@dataclass
class Slots:
    """The slots of one rack as one process sees them. ``what``: what they are slots of, for people."""

    store: Store
    rack: Rack
    what: str
    beat_s: float
    stale_s: float
    names: bool = False  # say who holds them
    mixed: bool = False  # somebody else counts with another number of slots

    def __post_init__(self) -> None:
        self._watch = Watch()
        self._tops: dict[int, int] = {}

    def look(self) -> dict[int, Standing]:
        """How every slot stands now. Raises StoreError."""
        return {slot: self._stands(slot, self._top(slot)) for slot in range(self.rack.count)}

    def take(self) -> Hold | None:
        """Hold one slot; None if there is none to be had now. Raises StoreError, UnsureError."""
        tops = {slot: self._top(slot) for slot in range(self.rack.count)}
        self._watch.forget({(slot, top.generation) for slot, top in tops.items()})
        standings = {slot: self._stands(slot, top) for slot, top in tops.items()}
        for slot in choose(standings, self.store.machine.entropy(1)[0]):
            hold = self.claim(slot, tops[slot].generation + 1)
            if hold is not None:
                self._say_soft(slot, standings[slot], tops[slot])
                return hold
        return None

    def claim(self, slot: int, generation: int) -> Hold | None:
        """Claim one generation; None if somebody else has it."""
        body = {**self.rack.body(slot, generation), "state": "held", "beat_s": self.beat_s}
        held = self.store.settler.claim(self.rack.key(slot, generation), body)
        if held is None:
            return None
        self._tops[slot] = generation
        return Hold(self.store, self.rack, slot, generation, held)

    def holder(self, slot: int) -> str:
        """Who holds it, for people."""
        return _name(self._top(slot).body)

    def said(self) -> str:
        """Who holds them, where that is to be said: ``, held by a (host, process 7)``."""
        if not self.names:
            return ""
        held = [self.holder(slot) for slot, stands in self.look().items() if stands is Standing.HELD]
        return f", held by {' and '.join(held)}" if held else ""

    def _top(self, slot: int) -> _Top:
        generation = self._tops[slot] if slot in self._tops else self.rack.newest(slot)
        there = self._read(slot, generation) if generation >= 0 else None
        while (above := self._read(slot, generation + 1)) is not None:
            generation, there = generation + 1, above
        self._tops[slot] = generation
        body: dict[str, Any] = {}
        if there is not None:
            with suppress(RecordError):
                body = decode(there.data, self.rack.key(slot, generation))
        return _Top(generation, body, there)

    def _read(self, slot: int, generation: int) -> Object | None:
        try:
            return self.store.backend.read(self.rack.key(slot, generation))
        except RecordError:
            return Object(b"", "", 0.0)  # a link, a FIFO: the name is taken, by nobody who beats

    def _stands(self, slot: int, top: _Top) -> Standing:
        if top.there is None:
            return Standing.FREE
        mono = self.store.machine.clock.monotonic()
        seen = Seen(slot, top.generation, None, top.there.modified, top.there.version)
        beat_s = _number(top.body.get("beat_s"), DEFAULT_BEAT_S)
        released = top.body.get("state") == _RELEASED
        self.mixed |= not released and top.body.get("of", self.rack.count) != self.rack.count
        watched_s = self._watch.still_s(seen, mono)
        return standing(
            released=released,
            gone=self.store.machine.gone(_who(top.body)),
            watched_s=watched_s,
            # the store is asked for its time only about those that have been watched long enough
            silent_s=self.store.now() - top.there.modified if watched_s >= 2 * beat_s and not released else 0.0,
            beat_s=beat_s,
            stale_s=self.stale_s,
        )

    def _say_soft(self, slot: int, stood: Standing, top: _Top) -> None:
        if stood is Standing.QUIET:
            log.warning(
                "%s is soft: slot %d is taken from %s, which is quiet; if it is alive, one more runs than said",
                self.what, slot, _name(top.body),
            )  # fmt: skip
        if self.mixed:
            self.mixed = False
            log.warning("%s is soft: others work with another number, and only each by its own", self.what)


def _who(body: Mapping[str, Any]) -> Who:
    who = body.get("who")
    if not isinstance(who, dict):
        return Who()
    texts = {name: value for name in ("me", "host", "boot", "token") if isinstance(value := who.get(name), str)}
    pid = who.get("pid")
    return Who(**texts, pid=pid if isinstance(pid, int) else 0)


def _name(body: Mapping[str, Any]) -> str:
    who = _who(body)
    return f"{who.me} ({who.host}, process {who.pid})" if who.me else "somebody"


def _number(value: Any, default: float) -> float:
    with suppress(OverflowError):  # a whole number of hundreds of digits is valid JSON
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else default
    return default
