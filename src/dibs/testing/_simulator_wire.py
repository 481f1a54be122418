"""Each process's unreliable way to the simulated store.

It gives way before and after each verb and commits the faults the contract allows: answers that are lost, writes that
land late, old listings, errors.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dibs.backend import Backend, Draft, Entry, Object, Outcome
from dibs.errors import StoreError

from ._simulator_machine import Host
from ._simulator_truth import Truth
from ._simulator_world import GreenletExit, Process

__all__ = ["Faults", "Wire"]


@dataclass(frozen=True)
class Faults:
    """Chances per verb. ``lag_s``: how long a listing or a read may be behind. ``slow_s``: the mean way of a verb."""

    lost_answer: float = 0.0
    lost_request: float = 0.0
    late: float = 0.0
    late_s: float = 1.0
    conflict: float = 0.0  # LOST, and nothing happened (a bucket's 409)
    told_lost: float = 0.0  # LOST, and it happened (a request that was sent twice)
    error: float = 0.0
    lag: float = 0.0
    lag_s: float = 10.0
    slow_s: float = 0.02
    keep_temp: float = 0.0  # discard answers that the temporary may still be there


class Wire(Backend):
    """One process's way to the truth. Every verb takes simulated time; a killed process's verb never happens."""

    def __init__(self, truth: Truth, process: Process, host: Host, faults: Faults, stamps: bool) -> None:
        self.truth, self.process, self.host, self.faults = truth, process, host, faults
        self.world = truth.world
        self.traits = truth.traits
        self.stamps = stamps  # this client's clock stamps what it writes
        self.trace: Callable[[str, str, object], None] = lambda verb, key, answer: None

    # how long it takes, and what goes wrong

    def _way(self) -> None:
        if not self.process.alive:
            raise GreenletExit
        rng = self.world.rng
        draw = rng.random()
        if draw < 0.25:
            return  # at once: nobody comes in between
        slow_s = self.faults.slow_s
        self.world.pause(slow_s * (rng.random() if draw < 0.9 else 1 / (0.02 + rng.random())))

    def _hit(self, chance: float) -> bool:
        return chance > 0.0 and not self.world.calm and self.world.rng.random() < chance

    def _sign(self, verb: str, late: bool = False) -> None:
        self.truth.author = (self.process.name, self.process.host, verb, late)
        self.truth.stamp_skew_s = self.host.skew_s if self.stamps else 0.0

    def _fail(self, verb: str, key: str) -> None:
        if self._hit(self.faults.error):
            self.trace(verb, key, "error")
            raise StoreError(f"cannot {verb} {key}: input/output error (simulated)", key=key)

    def _write(self, verb: str, key: str, draft: Draft, call: Callable[[], Outcome]) -> Outcome:
        """A create or a replace on its way: what comes of it, and what is said about it."""
        faults = self.faults
        self._way()
        if self.traits.conditional_replace and self._hit(faults.conflict):
            outcome, note = Outcome.LOST, "lost (conflict)"
        elif self._hit(faults.lost_request):
            outcome, note = Outcome.UNSURE, "unsure (never happens)"
        elif self._hit(faults.late):
            self.world.after(self._late_s(), lambda: self._unheard(verb, key, draft, call, late=True))
            outcome, note = Outcome.UNSURE, "unsure (lands late)"
        elif self._hit(faults.lost_answer):
            self._unheard(verb, key, draft, call, late=False)
            outcome, note = Outcome.UNSURE, "unsure (done)"
        elif self._hit(faults.told_lost):
            self._unheard(verb, key, draft, call, late=False)
            outcome, note = Outcome.LOST, "lost (sent twice)"
        else:
            self._sign(verb)
            outcome = call()
            note = outcome.value
        self.trace(verb, key, note)
        self._way()
        return outcome

    def _late_s(self) -> float:
        return self.faults.late_s * self.world.rng.choice((0.1, 1.0, 10.0)) * self.world.rng.random()

    def _unheard(self, verb: str, key: str, draft: Draft, call: Callable[[], Outcome], late: bool) -> None:
        """It happens, and what it did to the temporary stays unknown to the caller."""
        known = draft.spent
        self._sign(verb, late)
        outcome = call()
        draft.spent = known
        if late:
            self.trace(f"late {verb}", key, outcome.value)

    # the verbs

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        self._way()
        self._fail("stage", "")
        return self.truth.stage(data, durable=durable)

    def create(self, key: str, draft: Draft) -> Outcome:
        if self.traits.claim == "mkdir":
            return self._create_by_mkdir(key, draft)
        return self._write("create", key, draft, lambda: self.truth.create(key, draft))

    def _create_by_mkdir(self, key: str, draft: Draft) -> Outcome:
        if not draft.owned:
            made = self._write("mkdir", key, draft, lambda: Outcome.WON if self.truth.mkdir(key) else Outcome.LOST)
            if made is not Outcome.WON:
                return made
            draft.owned = True
        written = self._write("create", key, draft, lambda: self.truth.replace(key, draft, None))
        return written if written is Outcome.WON else Outcome.UNSURE

    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        return self._write("replace", key, draft, lambda: self.truth.replace(key, draft, version))

    def discard(self, draft: Draft) -> bool:
        if draft.spent or self.traits.conditional_replace:
            return True
        self._way()
        if self._hit(self.faults.keep_temp):
            return False
        return self.truth.discard(draft)

    def read(self, key: str) -> Object | None:
        self._way()
        self._fail("read", key)
        at = self.world.now
        if self._behind(key):
            at = max(at - self._lag_s(), self.host.seen.get(key, 0.0))  # nobody's view goes backwards
        self.host.seen[key] = at
        held = self.truth.was(key, at) if at < self.world.now else self.truth.read(key)
        self.trace("read", key, "old" if held != self.truth.read(key) else held and held.version)
        self._way()
        return held

    def stream(self, key: str, start: int = 0) -> Iterator[bytes] | None:
        self._way()
        self._fail("stream", key)
        return self.truth.stream(key, start)

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        self._way()
        self._fail("list", prefix)
        entries = self.truth.list(prefix, after, details=details)
        if self._hit(self.faults.lag):
            horizon = self.world.now - self._lag_s()
            entries = iter([entry for entry in entries if self._shows(entry.key, horizon)])
        self._way()
        return entries

    def folders(self, prefix: str) -> builtins.list[str]:
        self._way()
        self._fail("list", prefix)
        return self.truth.folders(prefix)

    def stamp(self, prefix: str) -> str | None:
        self._way()
        self._fail("look at", prefix)
        at = self.world.now
        if self._hit(self.faults.lag):
            at = max(at - self._lag_s(), self.host.seen.get(prefix, 0.0))
        self.host.seen[prefix] = at
        return self.truth.stamp_at(prefix, at)

    def touch(self, key: str) -> bool:
        self._way()
        self._fail("touch", key)
        self._sign("touch")
        self.trace("touch", key, "")
        return self.truth.touch(key)

    def delete(self, key: str) -> bool:
        self._way()
        self._fail("delete", key)
        self._sign("delete")
        return self.truth.delete(key)

    def now(self) -> float:
        self._way()
        self._fail("now", "")
        self._sign("now")
        return self.truth.now()

    # views that are behind (a folder's attribute caches): of names that another host wrote

    def _shows(self, key: str, horizon: float) -> bool:
        """Whether an old listing has the name: born before, or known on this host already."""
        born = self.truth.born.get(key, 0.0)
        return born <= max(horizon, self.host.seen.get(key, 0.0)) or self.truth.written_by.get(key) == self.host.name

    def _behind(self, key: str) -> bool:
        other = self.truth.written_by.get(key) not in (None, self.host.name)
        return other and not self.traits.conditional_replace and self._hit(self.faults.lag)

    def _lag_s(self) -> float:
        return self.world.rng.random() * self.faults.lag_s
