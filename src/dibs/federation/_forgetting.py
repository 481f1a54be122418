"""Old rounds put away: their blobs go, their records stay. An update's blob is its own, as run, round and client stand in it."""

from __future__ import annotations

import logging

from dibs.record import decode
from dibs.store import RoundKeys, Store, blob_key

from ._look import Round

__all__ = ["forget"]

log = logging.getLogger("dibs")


def forget(store: Store, run: str, newest: int, me: str | None = None) -> int:
    """Put away round ``newest`` and those before it, back to one that is put away already; returns how many.

    A round without an end is left alone. Killed in between, it is taken up by the next call. Raises StoreError.
    """
    count = 0
    for number in range(newest, -1, -1):
        key = RoundKeys(run).forgotten(number)
        there = store.backend.read(key)
        if there is not None and decode(there.data, key).get("state") == "done":
            break
        round = Round(store, run, number).refresh()
        if round.end is None:
            continue
        body = {**store.head("round-forgotten", me), "run": run, "round": number, "state": "running"}
        held = store.settler.claim(key, body, durable=True)
        blobs = {update.blob for update in round.updates.values()} | {round.end.blob}
        if round.terms is not None:
            blobs.add(round.terms.base)
        for digest in sorted(blob for blob in blobs if blob is not None):
            store.backend.delete(blob_key(digest))
        if held is not None:
            store.settler.rewrite(held, {**held.body, "state": "done"}, durable=True)
            count += 1
    return count
