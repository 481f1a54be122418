"""What an objective writes to file descriptors 1 and 2 goes to its trial's log: prints, C code, subprocesses.

The descriptors themselves are redirected and put back, Python's buffers flushed at both borders. Meanwhile a stand-in
that writes to the descriptor is ``sys.stdout``: one that lasts, because a logging handler made inside a trial keeps it, and
that a full disk does not fail. Where the log has no room, what is printed is lost and counted; the objective goes on.
"""

from __future__ import annotations

import errno
import io
import logging
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
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE)  # the log's disk, not who prints
_stand_ins: dict[int, TextIO] = {}
_raws: dict[int, _Descriptor] = {}
log = logging.getLogger("dibs")


class _Descriptor(io.RawIOBase):
    """A descriptor as a file that is never closed; ``lost``: bytes for which there was no room."""

    def __init__(self, fd: int, name: str) -> None:
        self._fd, self.name, self.mode = fd, name, "wb"
        self.lost = 0
        self.why = ""

    def write(self, data: Any) -> int | None:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return None
        except OSError as wrong:
            if wrong.errno not in _NO_ROOM:
                raise
            self.lost += len(data)
            self.why = wrong.strerror or str(wrong)
            return len(data)

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def writable(self) -> bool:
        return True


@contextmanager
def captured(path: Path) -> Iterator[None]:
    """Append descriptors 1 and 2 to the file while inside; it exists from the first byte. Raises StoreError.

    What has no room in it is lost, and a warning says how much, as far as it went through ``sys.stdout`` or ``sys.stderr``.
    """
    opened = _opened(path)
    streams = {name: getattr(sys, name) for name, _ in _STREAMS}
    _flush(*streams.values())
    saved: dict[int, int] = {}
    try:
        for name, fd in _STREAMS:
            with suppress(OSError):  # closed: nothing to put back
                saved[fd] = os.dup(fd)
            os.dup2(opened, fd)
            setattr(sys, name, _stand_in(name, fd))
            _raws[fd].lost = 0
        if opened > 2:
            os.close(opened)
        yield
    finally:
        _flush(sys.stdout, sys.stderr, *_stand_ins.values(), *streams.values())
        for name, stream in streams.items():
            setattr(sys, name, stream)
        for _, fd in _STREAMS:
            if fd in saved:
                os.dup2(saved[fd], fd)
                os.close(saved[fd])
            else:
                with suppress(OSError):
                    os.close(fd)
        if lost := sum(raw.lost for raw in _raws.values()):
            why = next(raw.why for raw in _raws.values() if raw.lost)
            log.warning("%d bytes of what was printed are not in the log %s: %s", lost, path, why)


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
    _flush(sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (_stand_in(name, fd) for name, fd in _STREAMS)


def _stand_in(name: str, fd: int) -> TextIO:
    if fd not in _stand_ins or _stand_ins[fd].closed:
        raw = _raws[fd] = _Descriptor(fd, f"<{name}>")
        _stand_ins[fd] = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)
    return _stand_ins[fd]


def _flush(*streams: Any) -> None:
    for stream in streams:
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
