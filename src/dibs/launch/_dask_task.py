"""One worker as a task of Dask, run where Dask says: the command in a cell, of which nothing is left behind.

Loaded by Dask's workers, which need dibs for it, and for the worker itself.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from dibs.cell import Job, Told, run

__all__ = ["busy", "work"]

_busy: set[str] = set()  # keys of tasks whose program has not ended
_GOING = ("closing", "closing_gracefully", "closed", "failed")
_GONE = ("cancelled", "resumed")


def busy() -> int:
    """How many programs run in this process of Dask's."""
    return len(_busy)


def work(call: dict[str, Any]) -> dict[str, Any]:
    """Run ``call`` (of a plan) to its end: ``code`` and ``why``. Raises Reschedule where this Dask worker is closing."""
    missing = [name for name in call["wants"] if name not in os.environ]
    if missing:
        return {"code": 2, "why": f"{missing[0]} goes by its name, and is not set where Dask's workers run"}
    place = Path(call["cwd"])
    if not place.is_dir():
        if call["must"]:
            return {"code": 2, "why": f"there is no folder {place} where Dask's workers run"}
        place = Path(tempfile.mkdtemp(prefix="dibs-"))
        call = {**call, "log": str(place / "worker.log")}
    from distributed import Reschedule, get_worker

    log = Path(call["log"])
    log.parent.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, **call["environ"]}
    environ["PATH"] = f"{environ.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"
    watcher = _Watcher(get_worker())
    _busy.add(watcher.key)
    try:
        ending = run(
            Job(call["argv"], environ, place, (), log, log.with_suffix(".score"), grace_s=call["grace_s"]), watcher
        )
    finally:
        _busy.discard(watcher.key)
    if watcher.closing and not watcher.cancelled:
        raise Reschedule
    seen = ending.evidence
    if seen.not_started:
        return {"code": 127, "why": f"{call['argv'][0]}: {seen.not_started}"}
    code = seen.code if seen.code is not None else 128 + (seen.signal or 9)
    return {"code": code, "why": "" if code in (0, 6) else f"{ending.detail} (see {log})"}


class _Watcher:
    """Looks at this Dask worker's own state. Another thread changes it: what is read late is read at the next look."""

    def __init__(self, worker: Any) -> None:
        self.worker, self.key = worker, worker.get_current_task()
        self.cancelled = self.closing = False

    def progress(self, told: Told) -> bool:
        return False  # a worker's own lines are its own affair

    def stopping(self) -> bool:
        """Whether the task was cancelled or this Dask worker is to go: the program gets its time to end."""
        task = self.worker.state.tasks.get(self.key)
        self.cancelled = task is None or task.state in _GONE
        self.closing = self.worker.status.name in _GOING
        return self.cancelled or self.closing
