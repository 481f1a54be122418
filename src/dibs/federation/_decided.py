"""What a round decides once under a name, though whoever claims the name may die, or sleep, before it writes.

That can be where mkdir claims: the folder is the claim, and the record comes after. A claim without a record is followed by
the next number of the name (``again/``), as a trial's attempt is. The highest number that is claimed decides, once it is
written. So who claims a number looks at the lower ones after that, and takes over what is written there by now: whoever
has seen a number written, and after that the next one not claimed, has seen what all later numbers will say.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from dibs.backend import Object
from dibs.errors import NotOwner, RecordError, RoundTimeout
from dibs.record import decode, nonce_of
from dibs.store import Store

__all__ = ["Name", "decide", "decided"]

Name = Callable[[int], str]  # number -> key
_PENDING = "pending"  # claimed and written, and its owner still looks at the lower numbers
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0


def decided(store: Store, name: Name, known: Container[str] = ()) -> Object | None:
    """The record that counts, None while there is none. ``known``: keys that a listing has shown. Raises StoreError."""
    number, there = _highest(store, name, known)
    return None if there is None or _is_open(store, name(number), number, there) else there


def decide(store: Store, name: Name, body: dict[str, Any], *, stale_s: float, within_s: float) -> tuple[Object, bool]:
    """The record that counts, durable, and whether it is ours: it is if nobody was first. Once returned it never changes.

    A claim that is not written is followed after ``stale_s``. Raises RoundTimeout (that takes longer than ``within_s``), StoreError.
    """
    clock, claim = store.machine.clock, store.settler.claim
    began = clock.monotonic()
    ours: set[str] = set()
    watched, since, pause_s = "", began, _FIRST_PAUSE_S
    while True:
        number, there = _highest(store, name, ())
        if there is None:
            held = claim(name(0), body, durable=True)
            if held is not None:
                ours.add(held.nonce)
                continue
            number, there = _highest(store, name, ())  # lost: it is there, or an old view has not got it yet
        if there is not None and not _is_open(store, name(number), number, there):
            return there, nonce_of(there.data) in ours
        now = clock.monotonic()
        if there is not None:
            seen = f"{number} {there.version} {there.modified}"
            if seen != watched:
                watched, since = seen, now
            # by the store's clock, or by one's own where machines' clocks stamp: to be wrong costs a number
            if now - since >= stale_s or store.now() - there.modified > stale_s:
                followed = _follow(store, name, number + 1, body)
                if followed is not None:
                    ours |= followed
                    continue
        if now - began >= within_s:
            raise RoundTimeout(
                f"{name(number)} was claimed and not written within {within_s:g} s; the same call goes on with it",
                run=body["run"], round=body["round"], missing=(),
            )  # fmt: skip
        clock.sleep(pause_s * (0.5 + store.machine.entropy(1)[0] / 256))
        pause_s = min(_LONGEST_PAUSE_S, 1.5 * pause_s)


def _follow(store: Store, name: Name, number: int, body: dict[str, Any]) -> set[str] | None:
    """Claim that number and say under it what counts: what a lower one says by now, else ours. Its nonce if ours; None: it is another's."""
    held = store.settler.claim(name(number), {**body, "state": "running", _PENDING: True}, durable=True)
    if held is None:
        return None
    says, ours = body, True
    for lower in range(number - 1, -1, -1):
        there = store.backend.read(name(lower))
        if there is not None and not _is_open(store, name(lower), lower, there):
            says, ours = decode(there.data, name(lower)), False
            break
    try:
        store.settler.rewrite(held, {"state": "done", **says, _PENDING: False}, durable=True)
    except NotOwner:  # somebody removed it by hand, and another has it now
        return None
    return {held.nonce} if ours else set()


def _highest(store: Store, name: Name, known: Container[str]) -> tuple[int, Object | None]:
    """The highest number that is claimed, and what is there; each is looked for after the one before was read."""
    number, there = 0, store.backend.read(name(0))
    while (there is not None and _by_mkdir(store)) or name(number + 1) in known:
        after = store.backend.read(name(number + 1))
        if after is None:
            break
        number, there = number + 1, after
    return number, there


def _is_open(store: Store, key: str, number: int, there: Object) -> bool:
    """Whether it is claimed and says nothing yet. What does not parse says something, and its readers are told what."""
    if not there.data:
        return _by_mkdir(store)
    if number == 0:
        return False
    try:
        return decode(there.data, key).get(_PENDING) is True
    except RecordError:
        return False


def _by_mkdir(store: Store) -> bool:
    return store.backend.traits.claim == "mkdir"
