"""Why a program ended, from what was seen. Pure; a table of cases is its test.

The exit status alone says little: 137 is a killed process, whoever killed it. What counts is named in ``Evidence``, in
the order in which it is believed: a limit of ours, the kernel's counters, the scheduler's words, the program's last lines.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["LOST", "Cause", "Evidence", "classify", "detail_of"]


class Cause(StrEnum):
    """How a cell came to its end."""

    OK = "ok"
    CODE = "code error"
    HOST_MEMORY = "out of memory (host)"
    CGROUP_MEMORY = "out of memory (cgroup)"
    DEVICE_MEMORY = "out of memory (accelerator)"
    TIME = "time limit"
    PREEMPTED = "pre-empted"
    DISK = "disk full"
    SYNC = "sync failed"
    VANISHED = "vanished"


#: not the program's doing: the attempt is interrupted, and anybody may take the next one
LOST = (Cause.PREEMPTED, Cause.VANISHED)


@dataclass(frozen=True)
class Evidence:
    """What was seen of a program that ended; what was not seen is None, 0 or empty.

    ``code``: its exit status; ``signal``: the one that ended it. ``not_started``: why it never ran. ``limit``: ours
    that it was over. ``memory_limit``: whether that one was memory. ``cgroup_kills``, ``host_kills``: by how much the
    counters of out-of-memory kills rose, of its cgroup and of the machine. ``free_bytes``, ``free_files``: room left
    where it writes. ``log_lost``: bytes of output that the log could not take. ``synced``: whether what it made was
    kept; None = nothing to keep. ``tail``: its last lines. ``scheduler``: variables of the batch system. ``left``:
    processes it left, killed.
    """

    code: int | None = None
    signal: int | None = None
    not_started: str = ""
    limit: str = ""
    memory_limit: bool = False
    cgroup_kills: int = 0
    host_kills: int = 0
    free_bytes: int | None = None
    free_files: int | None = None
    log_lost: int = 0
    synced: bool | None = None
    tail: tuple[str, ...] = ()
    scheduler: dict[str, str] = field(default_factory=dict)
    left: int = 0
    peak_bytes: int | None = None
    cpu_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """What of it is worth keeping: everything that says something."""
        return {name: value for name, value in asdict(self).items() if value or (value == 0 and name == "code")}


_DEVICE = re.compile(
    r"(cuda|hip|mps backend|xpu|device|gpu)\b.{0,40}\bout of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|"
    r"CUBLAS_STATUS_ALLOC_FAILED|OutOfMemoryError: (CUDA|HIP|XPU)|RESOURCE_EXHAUSTED: .*(memory|allocat)|"
    r"XlaRuntimeError: RESOURCE_EXHAUSTED|OOM when allocating tensor",
    re.I,
)
_DISK = re.compile(r"no space left on device|disk quota exceeded|\[Errno (28|122)\]|\b(ENOSPC|EDQUOT)\b", re.I)
_HOST = re.compile(
    r"\bMemoryError\b|std::bad_alloc|cannot allocate memory|unable to allocate [\d.]+ ?[KMGT]?i?B|java\.lang\.OutOfMemoryError|"
    r"\[Errno 12\]|\bENOMEM\b|memory allocation of \d+ bytes failed|fatal error: runtime: out of memory",
    re.I,
)
_SLURM_MEMORY = re.compile(r"(oom[-_]kill|out[- ]of[- ]memory).{0,60}(StepId|event|handler)|slurmstepd: .*oom", re.I)
_SLURM_TIME = re.compile(r"DUE TO TIME LIMIT|DUE TO DEADLINE|PBS: job killed: walltime|TERM_RUNLIMIT", re.I)
_SLURM_PREEMPT = re.compile(r"DUE TO PREEMPTION|DUE TO NODE FAILURE|CANCELLED AT|TERM_PREEMPT", re.I)
_ASKED = {signal.SIGTERM, signal.SIGHUP, signal.SIGINT, *({signal.SIGPWR} if hasattr(signal, "SIGPWR") else ())}
_NO_ROOM = 64 << 10  # bytes free: nothing could be written any more


def classify(seen: Evidence) -> Cause:
    """The cause of an end, by the strongest evidence there is."""
    if seen.not_started:
        return Cause.CODE
    if seen.limit:
        return Cause.CGROUP_MEMORY if seen.memory_limit else Cause.TIME
    if seen.code == 0:
        return Cause.SYNC if seen.synced is False else Cause.OK
    by = _signal(seen)
    if by == signal.SIGKILL and seen.cgroup_kills > 0:
        return Cause.CGROUP_MEMORY
    if by == signal.SIGKILL and seen.host_kills > 0:
        return Cause.HOST_MEMORY
    for pattern, cause in (
        (_SLURM_MEMORY, Cause.CGROUP_MEMORY), (_SLURM_TIME, Cause.TIME), (_SLURM_PREEMPT, Cause.PREEMPTED),
    ):  # fmt: skip
        if by is not None and _found(pattern, seen.tail):
            return cause
    if by == signal.SIGKILL:
        return Cause.VANISHED
    if by is not None and by == getattr(signal, "SIGXCPU", -1):
        return Cause.TIME
    if by in _ASKED:
        return Cause.PREEMPTED
    if _found(_DEVICE, seen.tail):
        return Cause.DEVICE_MEMORY
    no_room = seen.free_files == 0 or (seen.free_bytes is not None and seen.free_bytes < _NO_ROOM)
    if _found(_DISK, seen.tail) or seen.log_lost or no_room:
        return Cause.DISK
    if _found(_HOST, seen.tail):
        return Cause.HOST_MEMORY
    if seen.code is None and seen.signal is None:
        return Cause.VANISHED
    return Cause.CODE


def detail_of(cause: Cause, seen: Evidence) -> str:
    """The cause in one line, with what it rests on: ``code error: exit status 3: ValueError: x``."""
    if seen.limit:
        return seen.limit
    if seen.not_started:
        return f"{cause}: {seen.not_started}"
    if cause is Cause.OK:
        return f"exit status {seen.code}"
    parts = [str(cause), _status(seen)]
    if cause is Cause.CGROUP_MEMORY and seen.cgroup_kills:
        parts.append("the cgroup's counter of out-of-memory kills rose")
    elif cause is Cause.HOST_MEMORY and seen.host_kills and _signal(seen) == signal.SIGKILL:
        parts.append("the machine's counter of out-of-memory kills rose")
    elif cause is Cause.VANISHED and _signal(seen) is not None:
        parts.append("by somebody else, and no counter says it was for memory")
    elif cause is Cause.DISK and not _found(_DISK, seen.tail):
        parts.append("there was no room left where it writes")
    else:
        parts += [_line(cause, seen)] if seen.tail else []
    return ": ".join(part for part in parts if part)


def _line(cause: Cause, seen: Evidence) -> str:
    """The line the verdict rests on, else the last one."""
    pattern = {Cause.DEVICE_MEMORY: _DEVICE, Cause.DISK: _DISK, Cause.HOST_MEMORY: _HOST}.get(cause)
    lines = [line for line in seen.tail if pattern is None or pattern.search(line)]
    return (lines or list(seen.tail))[-1].strip()[:200]


def _status(seen: Evidence) -> str:
    if seen.signal is not None:
        return f"killed by {_name(seen.signal)}"
    return f"exit status {seen.code}" if seen.code is not None else "its end was not seen"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _signal(seen: Evidence) -> int | None:
    """The signal that ended it, or the one a shell says ended what it ran (128 + number)."""
    if seen.signal is not None or seen.code is None:
        return seen.signal
    return seen.code - 128 if 128 < seen.code < 193 else None


def _found(pattern: re.Pattern[str], lines: Iterable[str]) -> bool:
    return any(pattern.search(line) for line in lines)
