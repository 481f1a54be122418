"""Processes that belong together, and how much memory they hold, from /proc; None where there is no /proc."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["family", "marked", "resident"]

_PROC = Path("/proc")


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


def marked(mark: bytes) -> list[int]:
    """The living processes with this in their environment, as far as one may look; empty without /proc."""
    found = []
    for path in _PROC.glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):  # of a zombie it is empty
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


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
