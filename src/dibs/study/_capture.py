"""What an objective writes to file descriptors 1 and 2 goes to its trial's log: prints, C code, subprocesses.

The descriptors themselves are redirected, and put back afterwards. Python's own buffers are flushed at both
borders, so that no line ends up in the neighbour's log.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dibs.errors import StoreError

__all__ = ["captured", "tolerant"]

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND


@contextmanager
def captured(path: Path) -> Iterator[None]:
    """Append descriptors 1 and 2 to the file while inside; it exists from the first byte. Raises StoreError."""
    _flush()
    try:
        log = os.open(path, _FLAGS, 0o666)
    except OSError as wrong:
        raise StoreError(f"the log {path} cannot be written: {wrong.strerror or wrong}") from wrong
    saved: dict[int, int] = {}
    try:
        for fd in (1, 2):
            with suppress(OSError):  # closed: nothing to put back
                saved[fd] = os.dup(fd)
            os.dup2(log, fd)
        if log > 2:
            os.close(log)
        yield
    finally:
        _flush()
        for fd in (1, 2):
            if fd in saved:
                os.dup2(saved[fd], fd)
                os.close(saved[fd])
            else:
                with suppress(OSError):
                    os.close(fd)


def tolerant() -> None:
    """Make this process's prints reach the log line by line, in UTF-8, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
