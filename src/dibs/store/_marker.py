"""The marker of a store, ``dibs.json``: claimed once, never rewritten, and the same in a folder and in a bucket."""

from __future__ import annotations

import logging
from typing import Any

from dibs._clock import iso
from dibs.backend import Backend
from dibs.errors import NewerFormat, RecordError, StoreError
from dibs.record import FORMAT, decode

from ._keys import MARKER
from ._machine import Machine
from ._settle import Settler

__all__ = ["create_marker", "read_marker"]

log = logging.getLogger("dibs")


def read_marker(backend: Backend, where: str) -> dict[str, Any] | None:
    """The marker's body, None if there is none. ``where``: the store, as people know it.

    Raises NewerFormat for a later version's, StoreError for one that does not read or is something else's.
    """
    there = backend.read(MARKER)
    if there is None:
        return None
    try:
        body = decode(there.data, MARKER)
    except NewerFormat as wrong:
        raise NewerFormat(f"{where}: {wrong}", key=MARKER) from None
    except RecordError as wrong:
        raise StoreError(
            f"{where}: {str(wrong).partition(';')[0]}; the marker of a store is never rewritten: restore it or start a "
            "new store",
            key=MARKER,
        ) from None
    bucket = backend.root is None
    if body.get("kind") != "dibs" or (bucket and body.get("claim") != "put"):
        what, cure = ("a store in a bucket", "give another prefix") if bucket else ("a store", "give another folder")
        raise StoreError(f"{where}/{MARKER} is not the marker of {what}: {cure}", key=MARKER)
    return body


def create_marker(backend: Backend, machine: Machine, where: str, verdict: str) -> dict[str, Any]:
    """Make the place a store; returns the body of the marker that is there now, which is another's if that was faster."""
    folder = backend.root is not None
    body = {
        "v": FORMAT, "kind": "dibs", "backend": "folder" if folder else "bucket",
        "claim": backend.traits.claim, "verdict": verdict, "created_at": iso(machine.clock.wall()), "who": machine.who(""),
    }  # fmt: skip
    held = Settler(backend, machine).claim(MARKER, body, durable=folder)
    if held is not None:
        log.info("created the store %s%s", where, f" (on {verdict})" if folder else "")
        return held.body
    marker = read_marker(backend, where)
    assert marker is not None, "a lost claim has a name"
    return marker
