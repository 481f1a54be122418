"""Where an attempt at a cell has its log, and whether isolation holds here: for people, nothing is decided by it."""

from __future__ import annotations

import os
from pathlib import Path

from dibs.cell import isolation_status
from dibs.store import Store, SweepKeys
from dibs.study._workplace import temporary_place

from ._models import Task

__all__ = ["isolation_said", "log_of"]


def log_of(store: Store, sweep: str, n: int, attempt: int) -> Path:
    """The log's path, if the attempt ran on this machine or in a folder all machines see; it need not be there."""
    work, root = SweepKeys(sweep).work(n, attempt), store.backend.root
    if os.environ.get("DIBS_WORK"):
        return Path(os.environ["DIBS_WORK"]).absolute() / work / "log.txt"
    return (root if root is not None else temporary_place()) / work / "log.txt"


def isolation_said(task: Task) -> str | None:
    """How the task's isolation is kept on this host: ``enforced (...)`` or ``advisory (...)``; None if it asks for none."""
    return isolation_status() if task.isolate or task.deny_read else None
