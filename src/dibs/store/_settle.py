"""Won, lost or unsure: the one place that finds out. It serves the folder and the bucket alike.

The name decides. Whatever a create answered, the bytes under the name carry somebody's nonce; whatever a
replace answered, the name shows the old bytes or the new. A try is repeated only from the same draft, so
a try that lands late is the same write; giving up removes the draft before anything else may be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from dibs.backend import Backend, Draft, Object, Outcome
from dibs.errors import AlreadyClosed, NotOwner, RecordError, StoreError, Superseded, UnsureError
from dibs.record import decode, encode, is_closed, nonce_of

from ._machine import Machine

__all__ = ["Held", "Pauses", "Settler"]

Lost = Callable[[str, bytes], None]
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 2.0


@dataclass(slots=True)
class Held:
    """A name this process owns: the nonce that proves it and the body last known to be written."""

    key: str
    nonce: str
    body: dict[str, Any]
    data: bytes
    pid: int
    closed: bool = False
    pending: Draft | None = None  # a given-up try whose temporary could not be removed yet
    lock: Any = field(default_factory=RLock, repr=False)


class Settler:
    """Claims and rewrites that end in certainty, or in an error that says they did not.

    ``patience_s``: how long one doubtful write is pursued before UnsureError.
    """

    def __init__(self, backend: Backend, machine: Machine, patience_s: float = 60.0) -> None:
        self.backend, self.machine, self.patience_s = backend, machine, patience_s
        self.bar: Callable[[], None] | None = None  # raises where nothing may be claimed (a copy of another store)

    def claim(
        self, key: str, body: dict[str, Any], *, durable: bool = False, begun: Callable[[Held], None] | None = None
    ) -> Held | None:
        """Create the name only if nobody has; of all callers on all machines at most one gets a Held.

        A fresh nonce goes into the body. None: somebody else's (or unreadable, which is somebody's).
        Raises UnsureError if that could not be learnt in time (others will find the name quiet, if it is
        there), StoreError if the bytes could not even be staged (then nothing was claimed), RefusedError in a copy.
        ``begun`` is told, before anything is written, what will be held: a signal may break this off, and ``settled`` tells
        what came of it.
        """
        held = self._new(key, body)
        if begun is not None:
            begun(held)
        return held if self._create(held, held.body, durable) else None

    def settled(self, held: Held) -> bool:
        """Whether a claim that was broken off is there, and so held after all. One look; raises StoreError."""
        there = self.backend.read(held.key)
        if there is None or nonce_of(there.data) != held.nonce:
            return False
        held.body, held.data = decode(there.data, held.key), there.data
        return True

    def claim_first(self, keys: Iterator[str], body: dict[str, Any], lost: Lost, *, durable: bool = False) -> Held:
        """Claim the first of the names, in their order, that nobody has; at most one caller gets each of them.

        ``keys`` never ends. ``lost`` is told every name that is somebody else's, with its bytes, before the next one is
        tried. All of them are tried with one draft: it is taken on only after a name was certainly another's, under
        which no try of ours can land any more. Raises what ``claim`` raises.
        """
        held = self._new(next(keys), body)

        def on(data: bytes) -> bool:
            lost(held.key, data)
            held.key = next(keys)
            return True

        self._create(held, held.body, durable, on)
        return held

    def rewrite(self, held: Held, body: dict[str, Any], *, durable: bool = False) -> None:
        """Replace an owned record as a whole; unknown fields that are there stay.

        Raises Superseded if the name carries another nonce, AlreadyClosed if a close was written before,
        UnsureError if the outcome could not be learnt in time (call again: no older write can land any more).
        """
        if held.pid != self.machine.pid():
            raise NotOwner(f"{held.key} was claimed before this process was forked: only its owner may write it")
        with held.lock:
            self._rewrite(held, {**body, "nonce": held.nonce}, durable)

    def _new(self, key: str, body: dict[str, Any]) -> Held:
        """What is held once the name is claimed, with a nonce of its own. Raises RefusedError in a copy."""
        if self.bar is not None:
            self.bar()
        nonce = self.machine.entropy(16).hex()
        return Held(key, nonce, {**body, "nonce": nonce}, b"", self.machine.pid())

    def _create(
        self, held: Held, body: dict[str, Any], durable: bool, on: Callable[[bytes], bool] = lambda data: False
    ) -> bool:
        """``on``: told the bytes of a name that is another's; True = the held key is the next name to try."""
        data = encode(body)
        draft = self.backend.stage(data, durable=durable)
        try:
            pauses = Pauses(self, held.key)
            while True:
                outcome = self.backend.create(held.key, draft)
                if outcome is Outcome.LOST and self.backend.traits.claim == "mkdir" and not draft.spent:
                    if on(b""):
                        continue
                    return False  # mkdir alone is plain: EEXIST is lost
                found = data
                if outcome is not Outcome.WON:
                    there = self._look(held.key, pauses)
                    if there is None:
                        next(pauses)  # not there: the same name again, with the same bytes
                        if draft.spent:  # somebody deleted the temporary: no try with it can land any more
                            draft = self.backend.stage(data, durable=durable)
                        continue
                    if nonce_of(there.data) != held.nonce:
                        if draft.owned and not there.data:
                            next(pauses)  # our mkdir won, the record is still on its way
                            continue
                        if on(there.data):
                            pauses = Pauses(self, held.key)
                            continue
                        return False
                    found = there.data  # ours, though perhaps an earlier write of ours that landed only now
                held.body, held.data = (body if found == data else decode(found, held.key)), found
                return True
        finally:
            self.backend.discard(draft)

    def _rewrite(self, held: Held, body: dict[str, Any], durable: bool) -> None:
        if held.pending is not None:
            if not self.backend.discard(held.pending):
                raise UnsureError(f"an earlier write of {held.key} may still land: try again later", key=held.key)
            held.pending = None
        pauses = Pauses(self, held.key)
        draft: Draft | None = None
        data = b""
        tried = False
        try:
            while True:
                there = self._look(held.key, pauses)
                if there is None:  # lost in a power cut or removed by hand: claim it again, never rename over
                    if not self._create(held, body, durable):
                        raise Superseded(f"{held.key} {self._lost_to('somebody')}")
                    if held.data == encode(body):
                        return
                    continue  # an old write of ours came back: write over it
                if tried and there.data == data:
                    break
                body = self._ours(held, there, body)
                if draft is None or draft.spent:
                    data = encode(body)
                    draft = self.backend.stage(data, durable=durable)
                outcome = self.backend.replace(held.key, draft, there.version)
                tried = True
                if outcome is Outcome.WON:
                    break
                if outcome is Outcome.UNSURE:
                    next(pauses)
                elif self.backend.traits.conditional_replace:
                    next(pauses)  # a 412 or a 409 is no verdict: read again, and not in a hurry
                else:
                    # the temporary is gone: it landed (the next look shows our bytes) or somebody removed it
                    draft.spent = True
            held.body, held.data = body, data
        finally:
            if draft is not None and not self.backend.discard(draft):
                held.pending = draft

    def _ours(self, held: Held, there: Object, body: dict[str, Any]) -> dict[str, Any]:
        """The body to write over what is there; raises if it is not ours to write over."""
        if there.data == held.data:
            old = held.body
        else:
            try:
                old = decode(there.data, held.key)
            except RecordError as wrong:
                if nonce_of(there.data) in (None, held.nonce):
                    return body  # torn or empty: a claimed name that does not parse is ours to mend
                raise Superseded(f"{held.key} {self._lost_to('somebody')} ({wrong})") from None
            if old.get("nonce") != held.nonce:
                raise Superseded(f"{held.key} {self._lost_to(_name(old))}")
        if is_closed(old.get("state")):
            raise AlreadyClosed(f"{held.key} is already closed as {old['state']}: the first close is the last write")
        return {**old, **body}

    def _lost_to(self, who: str) -> str:
        """What to say of a name that carries another nonce now; in a bucket the server may have given it twice."""
        server = (
            "" if self.backend.root is not None else "; if nobody removed it, see what dibs doctor says of the server"
        )
        return f"was removed and claimed anew by {who}: this process lost it{server}"

    def _look(self, key: str, pauses: Pauses) -> Object | None:
        """Read until it answers: a read that fails says nothing about the name."""
        while True:
            try:
                return self.backend.read(key)
            except RecordError:
                return Object(b"", "", 0.0)  # a folder or a FIFO: the name is taken, by nobody's nonce
            except StoreError:
                next(pauses)


class Pauses:
    """Growing pauses with jitter until the patience is over; then ``next`` raises UnsureError."""

    __slots__ = ("deadline", "key", "pause_s", "settler")

    def __init__(self, settler: Settler, key: str) -> None:
        self.settler, self.key = settler, key
        self.pause_s = _FIRST_PAUSE_S
        self.deadline: float | None = None  # set at the first doubt: the sure path reads no clock

    def __next__(self) -> None:
        machine, patience_s = self.settler.machine, self.settler.patience_s
        clock = machine.clock
        if self.deadline is None:
            self.deadline = clock.monotonic() + patience_s
        elif clock.monotonic() > self.deadline:
            raise UnsureError(
                f"whether {self.key} was written could not be learnt in {patience_s:g} s; "
                "it is left as it is (if it is there, others will find it quiet)",
                key=self.key,
            )
        jitter = 0.5 + machine.entropy(1)[0] / 256
        clock.sleep(self.pause_s * jitter)
        self.pause_s = min(_LONGEST_PAUSE_S, 2 * self.pause_s)

    def __iter__(self) -> Pauses:
        return self


def _name(body: dict[str, Any]) -> str:
    who = body.get("who")
    return str(who.get("me", "somebody")) if isinstance(who, dict) else "somebody"
