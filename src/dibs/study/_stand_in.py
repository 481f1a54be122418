"""Stand-ins for ``sys.stdout`` and ``sys.stderr`` that write to descriptors 1 and 2 line by line, in UTF-8.

They last, because a logging handler made inside a trial keeps one, and each trial finds them as new: what an objective has
closed, detached or set otherwise is its own. A full disk does not fail them: what has no room is lost and counted.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from contextlib import suppress
from typing import Any

__all__ = ["STREAMS", "Losses", "flushed", "losses", "stand_in", "standing", "tolerant"]

STREAMS = (("stdout", 1), ("stderr", 2))
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE)  # the log's disk, not who prints
_standing: dict[str, _StandIn] = {}


class Losses:
    """How many bytes had no room, and why."""

    def __init__(self) -> None:
        self.count, self.why = 0, ""


losses = Losses()


class _Descriptor(io.RawIOBase):
    """A descriptor as a file that is never closed."""

    def __init__(self, fd: int, name: str) -> None:
        self._fd, self.name, self.mode = fd, name, "wb"

    def write(self, data: Any) -> int:
        while True:
            try:
                return os.write(self._fd, data)
            except BlockingIOError:  # whoever shares the pipe wants it so: for who prints it is as any other
                poll = select.poll()
                poll.register(self._fd, select.POLLOUT)
                poll.poll()
            except OSError as wrong:
                if wrong.errno not in _NO_ROOM:
                    raise
                losses.count += len(data)
                losses.why = wrong.strerror or str(wrong)
                return len(data)

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def writable(self) -> bool:
        return True


class _StandIn(io.TextIOWrapper):
    mode = "w"  # as the interpreter's own have it

    def __init__(self, name: str, fd: int) -> None:
        super().__init__(io.BufferedWriter(_Descriptor(fd, f"<{name}>")))
        self.at = name, fd


def stand_in(name: str, fd: int) -> io.TextIOWrapper:
    """The stream's stand-in, as if it were new."""
    found = _standing.get(name)
    if found is None or not _set_up(found):
        found = _standing[name] = _StandIn(name, fd)
        _set_up(found)
    return found


def standing(stream: Any) -> Any:
    """The stream, or what stands for it now if it is a stand-in that somebody has made useless."""
    return stand_in(*stream.at) if isinstance(stream, _StandIn) else stream


def flushed(*streams: Any) -> bool:
    """Flush them and all stand-ins; False if something is left in one of them that could not be written."""
    whole = True
    for stream in (*streams, *_standing.values()):
        try:
            with suppress(ValueError, AttributeError):  # closed, detached, or None
                stream.flush()
        except OSError:
            whole = False
    return whole


def tolerant() -> None:
    """Make this process's prints reach the log line by line, in UTF-8, whatever the locale says."""
    flushed(sys.stdout, sys.stderr)
    for name, fd in STREAMS:
        if isinstance(old := getattr(sys, name), io.TextIOWrapper):
            _set_up(old)  # who was imported before us may hold it
        setattr(sys, name, stand_in(name, fd))


def _set_up(stream: io.TextIOWrapper) -> bool:
    """False if it is closed or detached."""
    try:
        stream.reconfigure(
            encoding="utf-8", errors="backslashreplace", newline=None, line_buffering=True, write_through=False
        )
        return not stream.closed
    except (OSError, ValueError):
        return False
