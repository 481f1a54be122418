"""What an objective writes to file descriptors 1 and 2 goes to its trial's log: prints, C code, subprocesses.

The descriptors themselves are redirected and put back, Python's buffers flushed at both borders. ``sys.stdout``
stays the same object where it writes to descriptor 1, because a logging handler made inside a trial keeps it;
where it does not (a notebook), a lasting stand-in takes its place.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from dibs.errors import StoreError

__all__ = ["captured", "tolerant"]

# no link is followed, and a FIFO somebody put there is found out instead of waited for
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
_STREAMS = (("stdout", 1), ("stderr", 2))
_stand_ins: dict[int, TextIO] = {}


@contextmanager
def captured(path: Path) -> Iterator[None]:
    """Append descriptors 1 and 2 to the file while inside; it exists from the first byte. Raises StoreError."""
    log = _opened(path)
    _flush()
    saved: dict[int, int] = {}
    replaced: dict[str, Any] = {}
    try:
        for name, fd in _STREAMS:
            with suppress(OSError):  # closed: nothing to put back
                saved[fd] = os.dup(fd)
            os.dup2(log, fd)
            stream = getattr(sys, name)
            if not _writes_to(stream, fd):
                replaced[name] = stream
                setattr(sys, name, _stand_in(fd))
        if log > 2:
            os.close(log)
        yield
    finally:
        _flush()
        for name, stream in replaced.items():
            setattr(sys, name, stream)
        for _, fd in _STREAMS:
            if fd in saved:
                os.dup2(saved[fd], fd)
                os.close(saved[fd])
            else:
                with suppress(OSError):
                    os.close(fd)


def _opened(path: Path) -> int:
    try:
        log = os.open(path, _FLAGS, 0o666)
    except OSError as wrong:
        raise StoreError(f"the log {path} cannot be written: {wrong.strerror or wrong}") from wrong
    if not stat.S_ISREG(os.fstat(log).st_mode):
        os.close(log)
        raise StoreError(f"the log {path} is no file: remove what is there")
    os.set_blocking(log, True)
    return log


def tolerant() -> None:
    """Make this process's prints reach the log line by line, in UTF-8, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _writes_to(stream: Any, fd: int) -> bool:
    try:
        return bool(stream.fileno() == fd)
    except (OSError, ValueError, AttributeError):  # a notebook's, a test's, or None
        return False


def _stand_in(fd: int) -> TextIO:
    if fd not in _stand_ins:
        _stand_ins[fd] = open(fd, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    return _stand_ins[fd]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
