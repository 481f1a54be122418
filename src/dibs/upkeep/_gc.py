"""Removing what nothing can need: provably unreferenced, old by the store's own clock, and looked at twice.

Nothing at all is removed while any record does not read or is a later version's, since nobody knows what it refers
to. Records, rolls, notes and claims are never removed: a removed name could be claimed again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dibs.backend import Entry
from dibs.errors import StoreError
from dibs.store import Store

from ._inventory import Inventory, Step, take_inventory
from ._walk import part_at

__all__ = ["Garbage", "Removal", "collect", "find_garbage"]

BLOB_AGE_S = 24 * 3600.0  # who puts a blob that is there renews it, and names it within this time
OTHER_AGE_S = 3600.0
_PART = "/final/.part-"


@dataclass(frozen=True, slots=True)
class Removal:
    """One object that may go: why, how large (bytes), how old by the store's clock (seconds)."""

    key: str
    why: str
    size: int
    age_s: float
    version: str
    modified: float = 0.0


@dataclass(frozen=True, slots=True)
class Garbage:
    """What may go, what is still too young, and why nothing may go, if so."""

    removals: tuple[Removal, ...]
    young: int
    refused: str | None

    @property
    def bytes(self) -> int:
        return sum(removal.size for removal in self.removals)


def find_garbage(
    store: Store, *, blob_age_s: float = BLOB_AGE_S, other_age_s: float = OTHER_AGE_S, step: Step | None = None
) -> Garbage:
    """Look, and remove nothing. Raises StoreError for an outage."""
    found = take_inventory(store, step)
    if found.unreadable:
        refused = f"{found.unreadable} objects do not read, so nobody knows what they refer to: see `dibs check`"
        return Garbage((), 0, refused)
    now = store.now()
    removals, young = [], 0
    for why, age_s, entries in _candidates(found, blob_age_s, other_age_s):
        for entry in entries:
            if now - entry.modified > age_s:
                age, size = now - entry.modified, max(0, entry.size)
                removals.append(Removal(entry.key, why, size, age, entry.version, entry.modified))
            else:
                young += 1
    return Garbage(tuple(removals), young, None)


def _candidates(found: Inventory, blob_age_s: float, other_age_s: float) -> Iterator[tuple[str, float, list[Entry]]]:
    blobs = [entry for digest, entry in sorted(found.blobs.items()) if digest not in found.references]
    live = [
        entry
        for (study, n, attempt), entry in sorted(found.live.items())
        if (record := found.records.get(study, {}).get((n, attempt))) is not None and record.closed
    ]
    yield "a blob nothing refers to", blob_age_s, blobs
    yield "the live curve of a closed attempt", other_age_s, live
    yield "a write that was never finished", other_age_s, found.temporaries
    yield "a durable copy that was never finished", blob_age_s, found.parts  # a large one is read back for hours


def collect(store: Store, removals: Sequence[Removal]) -> list[Removal]:
    """Remove them, each only if it is still what it was; returns what was removed. Raises StoreError."""
    removed = []
    for removal in removals:
        if _PART in removal.key:
            removed += [removal] if _remove_part(store, removal) else []
            continue
        current = next(
            (e for e in store.backend.list(_folder(removal.key), details=True) if e.key == removal.key), None
        )
        if current is None or (current.version, current.modified) != (removal.version, removal.modified):
            continue  # gone, or put again, which a bucket's version of the same bytes does not tell: it will be named
        try:
            if store.backend.delete(removal.key):
                removed.append(removal)
        except StoreError as wrong:
            raise StoreError(f"{len(removed)} objects were removed, then: {wrong}", key=removal.key) from None
    return removed


def _remove_part(store: Store, removal: Removal) -> bool:
    """Remove a folder of half copies, if it is what it was."""
    root = store.backend.root
    current = part_at(root, removal.key) if root is not None else None
    if root is None or current is None or (current.version, current.modified) != (removal.version, removal.modified):
        return False
    try:
        shutil.rmtree(root / removal.key)
    except OSError as wrong:
        raise StoreError(f"{root / removal.key} cannot be removed: {wrong.strerror or wrong}") from wrong
    return True


def _folder(key: str) -> str:
    return key.rpartition("/")[0] + "/"
