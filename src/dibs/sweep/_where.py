"""Where an attempt at a cell has its log, and whether isolation holds here: for people, nothing is decided by it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from dibs.cell import isolation_status
from dibs.errors import StoreError
from dibs.record import decode_trial
from dibs.store import Store, SweepKeys
from dibs.study._workplace import places_of

from ._models import Task

__all__ = ["isolation_said", "log_of"]


def log_of(store: Store, sweep: str, n: int, attempt: int) -> Path:
    """The log's path, if the attempt ran on this machine or in a folder all machines see; it need not be there."""
    keys = SweepKeys(sweep)
    key, work = keys.attempt(n, attempt), os.environ.get("DIBS_WORK")
    nonce = ""
    with suppress(StoreError):
        there = store.backend.read(key)
        nonce = decode_trial(there.data, key).nonce if there is not None else ""
    places = places_of(store, keys.work(n, attempt), nonce, Path(work) if work else None)
    return next((place for place in places if (place / "log.txt").is_file()), places[0]) / "log.txt"


def isolation_said(task: Task) -> str | None:
    """How the task's isolation is kept on this host: ``enforced (...)`` or ``advisory (...)``; None if it asks for none."""
    return isolation_status() if task.isolate or task.deny_read else None
