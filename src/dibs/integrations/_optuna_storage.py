"""An Optuna storage on a store: Optuna's own replay of its operations over a journal of claimed entries.

Nothing here decides anything about studies or trials: Optuna's replay does, from operations that everybody sees in one
order. No pickle is written or read; what stands for Optuna's snapshot is a roll of 1,024 entries (docs/design/006).
The surprising part: a replay that was cut short (Ctrl-C, a fork in a thread's midst) has lost its place, and starts anew.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend

from dibs.store import Store

from ._journal import Journal

__all__ = ["Storage"]

log = logging.getLogger("dibs")


class StoreBackend(BaseJournalBackend):
    """Operations as entries of a journal. Picklable; like Optuna's own, its user has the lock."""

    def __init__(self, store: Store, log: str, me: str | None = None) -> None:
        self._store, self._log, self._me = store, log, me
        self.begin()

    def begin(self) -> None:
        """From the first operation on."""
        self._journal = Journal(self._store, self._log, self._me)
        self._logs: list[dict[str, Any]] = []  # the last operations that were read
        self._from = 0  # the number of the first of them
        self._fresh = False  # an append has just read up to its own entry

    def __getstate__(self) -> dict[str, Any]:
        return {"store": self._store, "log": self._log, "me": self._me}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["store"], state["log"], state["me"])  # type: ignore[misc]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append them as one entry; all of them are there, in this order, or none."""
        self._journal.append([json.dumps(log, separators=(",", ":")) for log in logs], self._seen)
        self._fresh = True

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The operations from that number on, in the one order; never ends in an error because of a damaged entry."""
        fresh, self._fresh = self._fresh, False
        if log_number_from < self._from:
            self.begin()
            fresh = False
        while True:
            yield from self._logs[max(0, log_number_from - self._from) :]
            if fresh:  # what came after our own entry is for the next look
                return
            found = self._journal.read()
            if found is None:
                return
            self._from += len(self._logs)
            self._logs = []
            self._seen(found)

    def _seen(self, entries: list[list[str]]) -> None:
        self._logs += [operation for texts in entries for text in texts if (operation := _operation(text)) is not None]


def _operation(text: str) -> dict[str, Any] | None:
    """What an entry's text says; None, which is told, if somebody's hand was in it and it is no operation any more."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and type(found.get("op_code")) is int and isinstance(found.get("worker_id"), str):
        return found
    log.warning("an entry of the journal holds no operation of Optuna, and is left out: %.80r", text)
    return None


class Storage(JournalStorage):  # type: ignore[misc,unused-ignore]
    """``Storage("/mnt/shared/studies")``: an Optuna storage in a folder that several machines mounted, or in a bucket.

    Guarantee: everybody sees the same operations in the same order, and one whose call returned is kept (on the disk,
    unless the store says ``fsync="none"``); a writer that is killed at any moment stops nobody, and an entry that was
    damaged is left out, logged, and named by ``dibs check``. Thread-safe, picklable, usable after a fork (in a bucket: by
    one who opens it in the child) and after a call that Ctrl-C cut short.

    ``store``: a Store or what one is opened with. ``log``: one of several journals in the store, each with Optuna
    studies of its own. Raises StoreError, UsageError, and RefusedError in a store that claims by mkdir.
    """

    def __init__(self, store: Store | str | os.PathLike[str], log: str = "journal", *, me: str | None = None) -> None:
        self.store = store if isinstance(store, Store) else Store(store)
        self._cut = False  # a replay ended in the middle of an operation
        super().__init__(StoreBackend(self.store, log, me))
        _STORAGES.add(self)

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__({**state, "_cut": False})
        _STORAGES.add(self)

    def _write_log(self, op_code: int, extra_fields: dict[str, Any]) -> None:
        with self._whole():
            super()._write_log(op_code, extra_fields)

    def _sync_with_backend(self) -> None:
        with self._whole():
            super()._sync_with_backend()

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Either all of what is read is replayed, or the next call replays from the first operation on."""
        if self._cut:
            self._anew()
        self._cut = True
        try:
            yield
        except MemoryError:
            raise
        except Exception:  # Optuna's refusals come after the operation was counted, the store's errors before
            self._cut = False
            raise
        self._cut = False

    def _anew(self) -> None:
        """As another worker, so that what Optuna has refused once is not told again."""
        backend: Any = self._backend
        backend.begin()
        self._worker_id_prefix = self._another()
        self._replay_result = type(self._replay_result)(self._worker_id_prefix)
        self._cut = False

    def _another(self) -> str:
        return f"{self.store.machine.entropy(16).hex()}-"

    def _forked(self) -> None:
        """In the child: another worker than the parent, whose operations are not ours, nor its threads."""
        if self._thread_lock.locked():
            self._cut = True
        self._thread_lock = threading.Lock()
        self._worker_id_prefix = self._another()
        self._replay_result._worker_id_prefix = self._worker_id_prefix


_STORAGES: WeakSet[Storage] = WeakSet()


def _in_child() -> None:
    for storage in list(_STORAGES):
        storage._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
