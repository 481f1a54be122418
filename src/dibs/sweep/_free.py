"""How much is left where a sweep writes, as seen from here."""

from __future__ import annotations

import os
from pathlib import Path

from dibs.study._workplace import temporary_place

from ._budget import Free
from ._models import Task

__all__ = ["free_for"]


def free_for(root: Path | None, task: Task) -> dict[str, Free]:
    """Where durable copies and work folders go (``final``, ``work``). ``root``: the store's folder, None for a bucket's.

    A bucket has no end, and is left out.
    """
    found = {}
    final = Path(task.final) if task.final is not None else root
    if final is not None:
        found["final"] = _free(final)
    out = Path(task.out.partition("{")[0]) if task.out is not None else None
    work = Path(task.here) / out if out is not None else _work(root)
    found["work"] = _free(work)
    return found


def _work(root: Path | None) -> Path:
    if os.environ.get("DIBS_WORK"):
        return Path(os.environ["DIBS_WORK"]).absolute()
    return root if root is not None else temporary_place()


def _free(place: Path) -> Free:
    there = next((each for each in (place, *place.parents) if each.is_dir()), Path("/"))
    try:
        stat = os.statvfs(there)
        disk = str(there.stat().st_dev)
    except OSError:
        return Free(str(place), str(place), None, None)
    # some file systems count no inodes: 0 in all, which is no limit
    return Free(str(place), disk, stat.f_bavail * stat.f_frsize, stat.f_favail if stat.f_files else None)
