"""An Optuna storage on a store: Optuna's own replay of its operations over a journal of claimed entries.

Nothing here decides anything about studies or trials: Optuna's replay does, from operations that everybody sees in one
order. No pickle is written or read; what stands for Optuna's snapshot is a roll of 1,024 entries (docs/design/006).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend

from dibs.backend import this_process
from dibs.store import Store

from ._journal import Journal

__all__ = ["Storage"]


class StoreBackend(BaseJournalBackend):
    """Operations as entries of a journal. Picklable; like Optuna's own, its user has the lock."""

    def __init__(self, store: Store, log: str, me: str | None = None) -> None:
        self._store, self._log, self._me = store, log, me
        self._begin()

    def _begin(self) -> None:
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
            self._begin()
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
        self._logs += [json.loads(text) for texts in entries for text in texts]


class Storage(JournalStorage):  # type: ignore[misc,unused-ignore]
    """``Storage("/mnt/shared/studies")``: an Optuna storage in a folder that several machines mounted, or in a bucket.

    Guarantee: everybody sees the same operations in the same order, and one whose call returned is kept (on the disk,
    unless the store says ``fsync="none"``); a writer that is killed at any moment stops nobody, and an entry that was
    damaged is left out, logged, and named by ``dibs check``. Thread-safe, picklable, usable after a fork.

    ``store``: a Store or what one is opened with. ``log``: one of several journals in the store, each with Optuna
    studies of its own. Raises StoreError, UsageError, and RefusedError in a store that claims by mkdir.
    """

    def __init__(self, store: Store | str | os.PathLike[str], log: str = "journal", *, me: str | None = None) -> None:
        self.store = store if isinstance(store, Store) else Store(store)
        self._process = this_process()
        super().__init__(StoreBackend(self.store, log, me))

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self._process = this_process()

    def _write_log(self, op_code: int, extra_fields: dict[str, Any]) -> None:
        self._know_oneself()
        super()._write_log(op_code, extra_fields)

    def _sync_with_backend(self) -> None:
        self._know_oneself()
        super()._sync_with_backend()

    def _know_oneself(self) -> None:
        """After a fork: another worker than the parent, whose operations are not ours."""
        if self._process != this_process():
            self._process = this_process()
            self._worker_id_prefix = f"{self.store.machine.entropy(16).hex()}-"
            self._replay_result._worker_id_prefix = self._worker_id_prefix
