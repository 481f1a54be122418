"""Processes that belong together, and how much memory they hold, from /proc; None where there is no /proc."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["family", "marked", "resident"]

_PROC = Path("/proc")
_PF_KTHREAD = 0x00200000  # of linux/sched.h


def family(pid: int) -> list[int]:
    """The process and its descendants, itself first. One whose parent died meanwhile is init's, and not in it."""
    found = [pid]
    known: dict[int, list[int]] | None = None  # of all processes, where the kernel does not tell children
    for member in found:  # grows on the way
        children = _children(member) if known is None else known.get(member, [])
        if children is None:
            known = _all_children()
            children = known.get(member, [])
        found += [child for child in children if child not in found]
    return found


def resident(pid: int, beyond: int = 0, *, itself: bool = True) -> int | None:
    """Resident bytes of the process (unless ``itself`` is False) and its descendants; None if that cannot be seen here.

    Pages that several of them share count in each; only where that sum is over ``beyond`` are they told apart,
    which costs the kernel a walk through their page tables.
    """
    members = family(pid)[not itself :]
    sizes = [size for member in members if (size := _resident(member)) is not None]
    if not sizes:
        return None
    if sum(sizes) <= beyond or len(members) == 1:
        return sum(sizes)
    return sum(size for member in members if (size := _proportional(member)) is not None)


def marked(mark: bytes) -> tuple[list[int], list[int]]:
    """The living processes with this in their environment, and those that cannot be told yet; empty without /proc.

    A process that is between two programs (execve(2)) or on its way out has no environment for a moment. Other users'
    processes are never among either.
    """
    found, unclear = [], []
    for path in _PROC.glob("[0-9]*"):
        try:
            environ = (path / "environ").read_bytes()
        except PermissionError:
            continue
        except OSError:  # newer kernels: ESRCH for what has no memory
            environ = b""
        if mark in environ.split(b"\0"):
            found.append(int(path.name))
        elif not environ and _may_have_one(path):
            unclear.append(int(path.name))
    return found, unclear


def _may_have_one(process: Path) -> bool:
    """Whether what showed no environment is a living process of ours that was not started with none (proc(5), stat)."""
    try:
        if os.geteuid() not in (0, process.stat().st_uid):
            return False
        fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:  # gone
        return False
    state, flags, start, end = fields[0], int(fields[6]), *fields[47:49]
    return state not in (b"Z", b"X") and not flags & _PF_KTHREAD and (start != end or end == b"0")


def _children(pid: int) -> list[int] | None:
    """The children of a process by its threads; None if this kernel does not tell (CONFIG_PROC_CHILDREN)."""
    found: list[int] = []
    try:
        for thread in (_PROC / str(pid) / "task").iterdir():
            try:
                found += [int(child) for child in (thread / "children").read_text().split()]
            except FileNotFoundError:
                if thread.exists():
                    return None
    except OSError:  # the process has ended
        return found
    return found


def _all_children() -> dict[int, list[int]]:
    """The children of every process, by one look at all of them."""
    found: dict[int, list[int]] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        try:
            text = path.read_text(errors="replace")  # a command may be called by any bytes
        except OSError:
            continue
        found.setdefault(int(text[text.rindex(")") + 2 :].split()[1]), []).append(int(path.parent.name))
    return found


def _resident(pid: int) -> int | None:
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return None


def _proportional(pid: int) -> int | None:
    """PSS: shared pages divided by those who share them (proc(5), smaps_rollup)."""
    try:
        text = (_PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return _resident(pid)
    line = next((line for line in text.splitlines() if line.startswith("Pss:")), None)
    return int(line.split()[1]) * 1024 if line is not None else _resident(pid)
