"""Where the cells of a sweep may write and what they may not read, on this host."""

from __future__ import annotations

import os
from pathlib import Path

from dibs.cell import Isolation, Template
from dibs.errors import UsageError
from dibs.store import Store
from dibs.study._workplace import temporary_place

from ._models import Task

__all__ = ["isolation_of"]


def isolation_of(task: Task, store: Store, out: Template | None) -> Isolation | None:
    """The task's isolation as this host can have it. Raises UsageError for a path that is missing here, or denied and needed."""
    if not (task.isolate or task.deny_read):
        return None
    here, root = Path(task.here), store.backend.root
    kept = [root if root is not None else temporary_place()]
    kept += [Path(os.environ["DIBS_WORK"])] if os.environ.get("DIBS_WORK") else []
    kept += [here / _above(out, here)] if out is not None else []
    writable = [here / path for path in task.writable]
    missing = next((path for path in writable if not path.is_dir()), None)
    if missing is not None:
        raise UsageError(f"there is no folder {missing} to be written to (--writable)")
    return Isolation.of(os.environ, kept=kept, more=writable, denied=[here / path for path in task.deny_read])


def _above(out: Template, here: Path) -> str:
    """What stands before the first hole that differs, up to a slash."""
    text = f"{here}{out.parts[2]}" if out.names[:1] == ("here",) and not out.parts[0] else out.parts[0]
    return text.rpartition("/")[0] or ("/" if text.startswith("/") else "")
