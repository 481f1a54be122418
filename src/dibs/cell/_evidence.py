"""What the machine knows about an end: counters of memory kills, room on the disk, the scheduler, the log's last lines."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["kills", "room", "scheduler_of", "tail_of"]

_LINES, _BYTES, _WIDTH = 30, 32 << 10, 500
_SCHEDULER = (
    "SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT", "SLURM_JOB_PARTITION",
    "SLURM_JOB_END_TIME", "PBS_JOBID", "LSB_JOBID", "JOB_ID",
)  # fmt: skip
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def kills() -> tuple[int, int]:
    """(of this process's cgroup, of the machine): kills for want of memory since they began to count; 0 = not told."""
    return _cgroup_kills(), _counter(Path("/proc/vmstat"), "oom_kill")


def room(folder: Path) -> tuple[int | None, int | None]:
    """(bytes, files) that may still be written there; None where that cannot be known."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None, None
    return found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None


def scheduler_of(environ: Mapping[str, str]) -> dict[str, str]:
    """What a batch system has told this process about its job."""
    return {name: environ[name] for name in _SCHEDULER if environ.get(name)}


def tail_of(log: Path) -> tuple[str, ...]:
    """The last lines of a log, whatever is in it, without what a terminal would obey."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _BYTES))
            data = file.read(_BYTES)
    except OSError:
        return ()
    text = data.decode(errors="replace")
    lines = [_CONTROL.sub("?", line.rstrip("\r").rpartition("\r")[2])[:_WIDTH] for line in text.split("\n")]
    return tuple([line for line in lines if line.strip()][-_LINES:])


def _cgroup_kills() -> int:
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:  # cgroup v2: memory.events counts the folder's and those below
                for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
                    found = _counter(Path(mount + path) / "memory.events", "oom_kill")
                    if found:
                        return found
            elif "memory" in controllers.split(","):
                return _counter(Path(f"/sys/fs/cgroup/memory{path}") / "memory.oom_control", "oom_kill")
    return 0


def _counter(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), 0)
