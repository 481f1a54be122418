"""Whose a sink's folder is, in a file of it: evidence by which others may find that it is nobody's any more.

Age is none, nor is silence. A folder is left behind if the process that made it is gone (its number and start time, of this
boot and these namespaces) and no fork of it lives, which would hold the file's lock on. All else is somebody's.
"""

from __future__ import annotations

import json
import os
import stat
import struct
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from dibs._passing import interrupts

from ._spool import TEMP

__all__ = ["OWNER", "boot", "is_left_behind", "let_go", "own"]

OWNER = f"{TEMP}owner"
_LONGEST = 4096
_FAILED = 2 ** (8 * struct.calcsize("P")) - 1
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)

# folder -> the descriptor that holds its lock, of which file it is, and where that is mapped
_locks: dict[str, tuple[int, tuple[int, int], int]] = {}


def own(folder: str) -> None:
    """Write down whose it is, as long as this process and its forks live. Raises OSError."""
    path = f"{folder}/{OWNER}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        _lock(fd)  # a fork has the descriptor, too, and what is executed by one has not
        os.write(fd, json.dumps({"v": 1, **_me(os.getpid())}).encode("ascii"))
    except BaseException:
        os.close(fd)
        raise
    _locks[folder] = (fd, _file(fd), _mapped(fd))


def let_go(folder: str) -> None:
    """The folder goes: its lock is of no use, and where NFS serves it, what is open cannot be removed."""
    fd, file, address = _locks.pop(folder, (-1, (0, 0), 0))
    if address:
        _libc().munmap(address, 1)
    with suppress(OSError):  # somebody may have closed all descriptors, and the number be another file's by now
        if fd >= 0 and _file(fd) == file:
            os.close(fd)


def is_left_behind(folder: str) -> bool:
    """Whether it is a folder of this user's whose owner and all forks of it are certainly dead."""
    try:
        if not _is_ours(os.lstat(folder), stat.S_ISDIR):
            return False
        fd = os.open(f"{folder}/{OWNER}", _READ)
        try:
            if not _is_ours(os.fstat(fd), stat.S_ISREG):
                return False
            return _is_gone(json.loads(os.read(fd, _LONGEST))) and _lock(fd)
        finally:
            os.close(fd)
    except (OSError, ValueError, RecursionError) as error:
        if interrupts(error):
            raise
        return False


def _is_ours(there: os.stat_result, kind: Any) -> bool:
    return bool(kind(there.st_mode)) and there.st_uid == os.geteuid()


def _is_gone(owner: Any) -> bool:
    """Whether that process is certainly dead. False where anything about it is not known."""
    ours = _me(os.getpid())
    if not isinstance(owner, dict) or not all(ours.values()):
        return False
    if any(owner.get(name) != ours[name] for name in ("boot", "namespaces")):
        return False
    pid, start = owner.get("pid"), owner.get("start")
    if type(pid) is not int or not 0 < pid < 1 << 31 or type(start) is not str or not start:
        return False
    try:
        os.kill(pid, 0)  # /proc may hide a process that lives
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    now = _stat(pid)
    # a zombie has ended; only its parent has not looked yet
    return now is not None and (now[0] != start or now[1] in "ZX")


def _me(pid: int) -> dict[str, Any]:
    """This process, by what tells it from every other one; empty texts where that cannot be known."""
    mine = _stat(pid)
    return {"boot": boot(), "namespaces": _namespaces(), "pid": pid, "start": mine[0] if mine else ""}


@cache
def boot() -> str:
    """Which machine, and since when it runs; empty where that cannot be known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        if interrupts(error):
            raise
        return ""


def _namespaces() -> str:
    """Where numbers of processes, and the times at which they began, mean the same; empty where /proc has other ones."""
    numbers = []
    try:
        if os.readlink("/proc/self") != str(os.getpid()):  # noqa: PTH115
            return ""
    except OSError as error:
        if interrupts(error):
            raise
        return ""
    for name in ("pid", "time"):
        try:
            numbers.append(str(os.stat(f"/proc/self/ns/{name}").st_ino))  # noqa: PTH116 - a text, as all around
        except OSError as error:
            if interrupts(error):
                raise
            if name == "pid":
                return ""
    return "-".join(numbers)


def _stat(pid: int) -> tuple[str, str] | None:
    """(start time in clock ticks since boot, state letter) of a process (proc(5), stat), None if that cannot be read."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")  # a command may be called by any bytes
        fields = text[text.rindex(")") + 2 :].split()
        return fields[19], fields[0]
    except (OSError, ValueError, IndexError) as error:
        if interrupts(error):
            raise
        return None


def _lock(fd: int) -> bool:
    """Whether the file's lock is this process's now. False where somebody has it, or locks are not to be had."""
    try:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError) as error:
        if interrupts(error):
            raise
        return False
    return True


def _mapped(fd: int) -> int:
    """Where the file lies in memory now, 0 for nowhere: a fork that closes all its descriptors, as daemons do, still has the lock with that.

    Not by Python's mmap, which has a descriptor of its own and closes that number whoever has it by then.
    """
    try:
        address = _libc().mmap(None, 1, 1, 2, fd, 0)  # PROT_READ, MAP_PRIVATE: the same on Linux, macOS and the BSDs
    except (ImportError, OSError, AttributeError, TypeError) as error:
        if interrupts(error):
            raise
        return 0
    return 0 if address in (None, _FAILED) else int(address)


@cache
def _libc() -> Any:
    import ctypes

    libc = ctypes.CDLL(None)
    libc.mmap.restype, libc.munmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    return libc


def _file(fd: int) -> tuple[int, int]:
    there = os.fstat(fd)
    return there.st_dev, there.st_ino
