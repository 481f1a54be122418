"""Old rounds put away: their blobs go, their records stay. An update's blob is its own, as run, round and client stand in it."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import Any

from dibs.errors import RecordError
from dibs.record import decode
from dibs.store import RoundKeys, Store, blob_key

from ._decided import decided

__all__ = ["forget"]

_DIGEST = re.compile(r"[0-9a-f]{64}")


def forget(store: Store, run: str, newest: int, me: str | None = None) -> int:
    """Put away round ``newest`` and those before it, back to one that is put away already; returns how many.

    A round without an end is left alone. Killed in between, it is taken up by the next call. Raises StoreError.
    """
    count = 0
    for number in range(newest, -1, -1):
        key = RoundKeys(run).forgotten(number)
        if _says(store, key).get("state") == "done":
            break
        keys = [entry.key for entry in store.backend.list(RoundKeys(run).round(number))]
        if decided(store, partial(RoundKeys(run).average, number), keys) is None:
            continue
        body = {**store.head("round-forgotten", me), "run": run, "round": number, "state": "running"}
        held = store.settler.claim(key, body, durable=True)
        for digest in sorted(_named(store, keys)):
            store.backend.delete(blob_key(digest))
        if held is not None:
            store.settler.rewrite(held, {**held.body, "state": "done"}, durable=True)
            count += 1
    return count


def _named(store: Store, keys: list[str]) -> set[str]:
    """Every blob of an update, an average or a base that any of the records names, also one that does not count."""
    named = {body.get(name) for body in (_says(store, key) for key in keys) for name in ("blob", "base")}
    return {digest for digest in named if isinstance(digest, str) and _DIGEST.fullmatch(digest)}


def _says(store: Store, key: str) -> dict[str, Any]:
    """The record; nothing where none can be read, as of a claim that was never written."""
    there = store.backend.read(key)
    with suppress(RecordError):
        return decode(there.data, key) if there is not None else {}
    return {}
