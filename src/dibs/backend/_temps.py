"""Temporaries: unique names over all machines, and a file written whole under one.

``tmp/<host>-<boot>-<pid>-<16 hex>``: who left it, for whoever cleans up, and a part nobody
else draws, not even a forked child or a process that seeded everything else.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from dibs.backend._fsync import sync_file
from dibs.backend._names import TEMPS
from dibs.backend._oserrors import store_error
from dibs.backend._process import this_process

__all__ = ["TempNames", "open_temp", "write_whole"]

_64 = (1 << 64) - 1
_FLAGS = os.O_WRONLY | os.O_CREAT
for _flag in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW"):
    _FLAGS |= getattr(os, _flag, 0)


def _host() -> str:
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-") or "host"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except OSError:
        return "00000000"  # only a hint for cleaning up; the random part makes the name unique


class TempNames:
    """Names for temporaries of this process; notices a fork by the pid.

    The 64 random bits are drawn once per process and counted on from there, and a file is only ever made anew.
    """

    def __init__(self) -> None:
        self._machine = f"{TEMPS}{_host()}-{_boot()}"
        self._head: tuple[int, str] = (0, "")
        self._serial: Iterator[int] = iter(())

    def new(self) -> str:
        """A name below the store's root that nobody has drawn before."""
        head = self._head[1] if self._head[0] == this_process() else self._process()
        return f"{head}{next(self._serial) & _64:016x}"

    def probe(self) -> str:
        """The name of the one file by which this process asks for the store's time."""
        return self._process() + "now"

    def _process(self) -> str:
        pid, head = self._head
        if pid != this_process():
            pid = this_process()
            head = f"{self._machine}-{pid}-"
            self._serial = itertools.count(int.from_bytes(os.urandom(8), "big"))
            self._head = (pid, head)
        return head


def open_temp(path: str, *, exclusive: bool = True) -> int:
    """A descriptor of a file that did not exist (or may); as it came, the error of a missing folder; StoreError otherwise."""
    try:
        return os.open(path, _FLAGS | os.O_EXCL if exclusive else _FLAGS, 0o666)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise store_error(error, "write to the store at", path) from error


def write_whole(fd: int, path: str, data: bytes | Iterable[bytes], *, durable: bool) -> int:
    """Write all of ``data`` to the new file and close it; the number of bytes written.

    Nothing is left behind if that fails, whatever the reason. StoreError: what a file system can say, a full disk
    first of all. What ``data``'s own iteration raises passes unchanged.
    """
    try:
        try:
            if isinstance(data, bytes):
                size = _write_chunk(fd, path, data)
            else:
                size = sum(_write_chunk(fd, path, chunk) for chunk in data)
            if durable:
                _sync(fd, path)
        except BaseException:
            with suppress(OSError):
                os.close(fd)
            raise
        try:
            os.close(fd)
        except OSError as error:  # NFS reports a full disk here
            raise store_error(error, "write to the store at", path) from error
    except BaseException:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - no pathlib on the hot path
        raise
    return size


def _write_chunk(fd: int, path: str, chunk: bytes) -> int:
    try:
        done = os.write(fd, chunk)
        while done < len(chunk):
            done += os.write(fd, memoryview(chunk)[done:])
    except OSError as error:
        raise store_error(error, "write to the store at", path) from error
    return done


def _sync(fd: int, path: str) -> None:
    try:
        sync_file(fd)
    except OSError as error:
        raise store_error(error, "write to the store at", path) from error
