"""What an objective writes to file descriptors 1 and 2 goes to its trial's log: prints, C code, subprocesses.

The descriptors themselves are redirected and put back, Python's buffers emptied at both borders, and stand-ins that write
to the descriptors are ``sys.stdout`` and ``sys.stderr`` meanwhile. Where the log has no room, what is printed is lost and
counted; the objective goes on. Captures may lie within one another, or overlap in several threads: the latest gets it all.
"""

from __future__ import annotations

import errno
import fcntl
import io
import logging
import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from dibs.errors import StoreError

from ._stand_in import STREAMS, flushed, losses, stand_in, standing

__all__ = ["captured"]

# no link is followed, and a FIFO somebody put there is found out instead of waited for
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
log = logging.getLogger("dibs")


class _Before:
    """What was there before a capture. A descriptor that was closed is None."""

    def __init__(self, fds: dict[int, int | None]) -> None:
        self.fds = fds
        self.streams: dict[str, Any] = {name: getattr(sys, name) for name, _ in STREAMS}


_now: list[_Before] = []  # of the captures that are on, as they began
_lock = threading.Lock()


@contextmanager
def captured(path: Path) -> Iterator[None]:
    """Append descriptors 1 and 2 to the file while inside; it exists from the first byte. Raises StoreError.

    What has no room in it is lost, and a warning says how much, as far as it went through ``sys.stdout`` or ``sys.stderr``.
    """
    with _lock:
        before = _begin(path)
    theirs = [stream for stream in before.streams.values() if _by_line(stream)]
    outer, losses.count = losses.count, 0
    try:
        yield
    finally:
        whole = flushed(sys.stdout, sys.stderr, *before.streams.values())
        with _lock:
            _end(before, drop=not whole)
        for stream in theirs:
            with suppress(OSError, ValueError):
                stream.reconfigure(line_buffering=False)
        lost, losses.count = losses.count, outer
        if lost:
            log.warning("%d bytes of what was printed are not in the log %s: %s", lost, path, losses.why)


def _begin(path: Path) -> _Before:
    flushed(sys.stdout, sys.stderr)
    with ExitStack() as undo:
        opened = _opened(path)
        undo.callback(os.close, opened)
        before = _Before({})
        undo.push(lambda kind, *_: _close(before) if kind is not None else None)
        for _, fd in STREAMS:
            before.fds[fd] = _kept(fd, path)
        for name, fd in STREAMS:
            os.dup2(opened, fd)
            setattr(sys, name, stand_in(name, fd))
    _now.append(before)
    return before


def _end(before: _Before, *, drop: bool) -> None:
    """``drop``: what could not be written is not to turn up in whatever is there next."""
    at = _now.index(before)
    _now.remove(before)
    if at < len(_now):  # one that began later is still on: what was before this one is put back after that one
        later = _now[at]
        before.fds, later.fds = later.fds, before.fds
        later.streams = before.streams
        _close(before)
        return
    if drop:
        _drop(before)
    for name, stream in before.streams.items():
        setattr(sys, name, standing(stream))
    for fd, kept in before.fds.items():
        if kept is None:
            with suppress(OSError):
                os.close(fd)
        else:
            os.dup2(kept, fd)
    _close(before)


def _drop(before: _Before) -> None:
    with suppress(OSError):
        nowhere = _above(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
        for fd in before.fds:
            os.dup2(nowhere, fd)
        os.close(nowhere)
        flushed(sys.stdout, sys.stderr, *before.streams.values())


def _close(before: _Before) -> None:
    for kept in before.fds.values():
        if kept is not None:
            os.close(kept)


def _opened(path: Path) -> int:
    try:
        opened = _above(os.open(path, _FLAGS, 0o666))
    except OSError as wrong:
        raise StoreError(f"the log {path} cannot be written: {wrong.strerror or wrong}") from wrong
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise StoreError(f"the log {path} is no file: remove what is there")
    os.set_blocking(opened, True)
    return opened


def _kept(fd: int, path: Path) -> int | None:
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError as wrong:
        if wrong.errno == errno.EBADF:
            return None
        raise StoreError(f"the log {path} cannot be written: {wrong.strerror or wrong}") from wrong


def _above(fd: int) -> int:
    """The same file at a number that is none of the three that programs know, one of which may have been free."""
    if fd > 2:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _by_line(stream: Any) -> bool:
    """Have who kept a stream from before write line by line, so that the lines are in order; False if there is no need."""
    try:
        if not isinstance(stream, io.TextIOWrapper) or stream.line_buffering or stream.fileno() not in (1, 2):
            return False
        stream.reconfigure(line_buffering=True)
    except (OSError, ValueError):
        return False
    return True


def _forked() -> None:
    global _lock
    _lock = threading.Lock()  # a thread of the parent's may hold it, and is not here


os.register_at_fork(after_in_child=_forked)
