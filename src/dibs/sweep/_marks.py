"""Steps of a sweep that are taken once, as claims: a pull was verified, that was taken back, a doubt was answered, the machines may go.

``verified/<manifest>-<k>`` counts unless ``revoked/<manifest>-<k>`` is there, or it does not parse: who verifies the same manifest again,
after it was mended, takes the next k. ``accepted/<doubt>``: a person's answer. ``placed/<place>-<k>``:
the folder of ``--final`` got its mark, the last k counts. ``release/<k>``: the releases, in their order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dibs.errors import RecordError
from dibs.record import decode
from dibs.store import Store, SweepKeys

from ._doubts import Accepted

__all__ = [
    "Mark",
    "accepted_in",
    "claim_accepted",
    "claim_placed",
    "claim_release",
    "mark_verified",
    "placed",
    "places",
    "releases",
    "revoke",
    "verified",
]

_VERIFIED = re.compile(r"([0-9a-f]{64})-(\d+)\Z")


@dataclass(frozen=True)
class Mark:
    """One of them: its name behind the kind, and what was written."""

    name: str
    body: Mapping[str, Any]


def mark_verified(store: Store, sweep: str, manifest: str, body: Mapping[str, Any], me: str | None = None) -> bool:
    """Say that this manifest was verified; False if that was said before, and counts. Durable when it returns."""
    if any(mark.name.startswith(f"{manifest}-") for mark in verified(store, sweep)):
        return False
    taken = _numbers(store, sweep, "verified", manifest)  # revoked, or damaged, which proves nothing
    return _claim(store, sweep, "verified", f"{manifest}-{max(taken, default=-1) + 1}", body, me)


def revoke(store: Store, sweep: str, manifest: str, why: str, me: str | None = None) -> bool:
    """Take back that the manifest was verified; False if it was not."""
    taken, revoked = _numbers(store, sweep, "verified", manifest), _numbers(store, sweep, "revoked", manifest)
    left = [f"{manifest}-{k}" for k in sorted(taken - revoked)]  # what cannot be read now may be read again
    claimed = [_claim(store, sweep, "revoked", name, {"why": why}, me) for name in left]
    return any(claimed)


def verified(store: Store, sweep: str) -> list[Mark]:
    """What was verified and not taken back; a mark that does not parse proves nothing."""
    gone = set(_names(store, sweep, "revoked"))
    names = [name for name in _names(store, sweep, "verified") if name not in gone and _VERIFIED.match(name)]
    return _read(store, sweep, "verified", names)


def claim_accepted(store: Store, sweep: str, doubt: str, body: Mapping[str, Any], me: str | None = None) -> bool:
    """Answer a doubt; False if somebody has. Durable when it returns."""
    return _claim(store, sweep, "accepted", doubt, body, me)


def accepted_in(store: Store, sweep: str) -> list[Accepted]:
    """Every answer that was given; one that does not parse, or names nobody, is none."""
    marks = _read(store, sweep, "accepted", _names(store, sweep, "accepted"))
    said = [(mark.name, mark.body.get("approve"), mark.body.get("why")) for mark in marks]
    return [
        Accepted(name, who, why if isinstance(why, str) else "")
        for name, who, why in said
        if isinstance(who, str) and who.strip()
    ]


def placed(store: Store, sweep: str, place: str) -> Mapping[str, Any] | None:
    """What was written when the folder got its mark, which has the same ``token``; None if it has got none."""
    names = [f"{_place(place)}-{k}" for k in sorted(_numbers(store, sweep, "placed", _place(place)))]
    return next(
        (mark.body for mark in reversed(_read(store, sweep, "placed", names)) if mark.body.get("place") == place), None
    )


def places(store: Store, sweep: str) -> list[str]:
    """Every folder that ever got a mark of this sweep, sorted."""
    found = (mark.body.get("place") for mark in _read(store, sweep, "placed", _names(store, sweep, "placed")))
    return sorted({place for place in found if isinstance(place, str)})


def claim_placed(store: Store, sweep: str, place: str, token: str, me: str | None = None) -> bool:
    """Write down the folder's mark; False if somebody else has written another one at this moment. Durable when it returns."""
    k = max(_numbers(store, sweep, "placed", _place(place)), default=-1) + 1
    return _claim(store, sweep, "placed", f"{_place(place)}-{k}", {"place": place, "token": token}, me)


def _place(place: str) -> str:
    return hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()


def releases(store: Store, sweep: str) -> list[Mark]:
    """Every release, the first one first."""
    names = sorted((name for name in _names(store, sweep, "release") if name.isdecimal()), key=int)
    return _read(store, sweep, "release", names)


def claim_release(store: Store, sweep: str, body: Mapping[str, Any], me: str | None = None) -> bool:
    """Write the next release; False if somebody else was quicker. Durable when it returns."""
    k = max((int(name) for name in _names(store, sweep, "release") if name.isdecimal()), default=-1) + 1
    return _claim(store, sweep, "release", str(k), body, me)


def _claim(store: Store, sweep: str, kind: str, name: str, body: Mapping[str, Any], me: str | None) -> bool:
    whole = {**store.head(f"sweep-{kind}", me), "sweep": sweep, **body}
    return store.settler.claim(SweepKeys(sweep).mark(kind, name), whole, durable=True) is not None


def _names(store: Store, sweep: str, kind: str) -> list[str]:
    prefix = SweepKeys(sweep).marks(kind)
    return sorted(entry.key.removeprefix(prefix).removesuffix(".json") for entry in store.backend.list(prefix))


def _numbers(store: Store, sweep: str, kind: str, manifest: str) -> set[int]:
    found = [_VERIFIED.match(name) for name in _names(store, sweep, kind)]
    return {int(match[2]) for match in found if match is not None and match[1] == manifest}


def _read(store: Store, sweep: str, kind: str, names: list[str]) -> list[Mark]:
    keys = [SweepKeys(sweep).mark(kind, name) for name in names]
    found = []
    for name, key, there in zip(names, keys, store.backend.read_many(keys), strict=True):
        if there is None or isinstance(there, RecordError):
            continue
        try:
            body = decode(there.data, key)
        except RecordError:
            continue
        if body.get("kind") == f"sweep-{kind}" and body.get("sweep") == sweep:
            found.append(Mark(name, body))
    return found
