"""Landlock: what a process may write, and which files it may not read, kept by the Linux kernel (landlock(7)).

The warden loads this file by itself, so it imports nothing of the package. A rule lets something beneath a folder; what no
rule lets is refused, to the process and to all it will ever start, root or not. Reading is only ruled where some path is
denied: then everything that is there now, but not beneath that path, is let.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence

__all__ = ["abi", "restrict"]

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_BENEATH = 1  # LANDLOCK_RULE_PATH_BENEATH
_NO_NEW_PRIVS = 38  # of prctl(2)
_WRITE_FILE, _READ_FILE = 1 << 1, 1 << 2
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # since ABI 2 and 3
_CHANGES = sum(1 << bit for bit in range(4, 13))  # removing and making files, folders, links, sockets, pipes, devices
_OF_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE  # a rule on a file may say no more


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64)]


class _Rule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def abi() -> int:
    """The kernel's version of Landlock, 0 if there is none or it is switched off."""
    if sys.platform != "linux":
        return 0
    try:
        return max(0, int(_call(_CREATE, None, 0, 1)))
    except OSError:
        return 0


def restrict(writable: Sequence[str], denied: Sequence[str]) -> None:
    """From now on this process writes only beneath ``writable``, and reads no file beneath ``denied``.

    Names of files can still be listed. Files made later beside a denied path, or beside a folder above it, cannot be
    read unless they are beneath ``writable``. Raises OSError.
    """
    version = abi()
    writes = _WRITE_FILE | _CHANGES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    ruled = writes | (_READ_FILE if denied else 0)
    rules = _Ruleset(ruled)
    ruleset = _call(_CREATE, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    for path in writable:
        _allow(ruleset, path, writes | (ruled & _READ_FILE))
    for path in _around(denied):
        _allow(ruleset, path, _READ_FILE)
    if _libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    _call(_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _around(denied: Sequence[str]) -> Iterator[str]:
    """All there is but what is beneath a denied path, as few paths as possible; links are what they lead to."""
    if not denied:
        return
    folders = ["/"]
    for folder in folders:
        for entry in os.scandir(folder):
            path = os.path.join(folder, entry.name)  # noqa: PTH118 - no import that costs
            if entry.is_symlink() or path in denied:
                continue
            if any(each.startswith(f"{path}/") for each in denied):
                folders.append(path)
            else:
                yield path


def _allow(ruleset: int, path: str, allowed: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # gone meanwhile, or nothing one may look at
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - as above
            allowed &= _OF_FILES
        rule = _Rule(allowed, fd)
        _call(_ADD, ruleset, _BENEATH, ctypes.byref(rule), 0)
    except OSError:
        if allowed & _WRITE_FILE:  # the cell could not work; what is only read is refused, which is safe
            raise
    finally:
        os.close(fd)


def _call(number: int, *arguments: object) -> int:
    answer = int(_libc().syscall(number, *arguments))
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
