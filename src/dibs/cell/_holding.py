"""Private copies in use: whoever runs a program from them holds them until its process ends, whatever ends it.

A worker may outlive the run that made them by the grace it has. A lock of the kernel's says so, and goes with the process.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dibs.errors import StoreError

__all__ = ["OWNER", "PREFIX", "alone", "hold", "let_go"]

PREFIX, OWNER = "dibs-program-", "owner.json"
_held: dict[str, int] = {}


def hold(copies: Iterable[str]) -> None:
    """Hold the folders that these copies lie in while this process lives. Raises StoreError if they are being removed."""
    for copy in copies:
        bases = [path for path in Path(copy).parents if path.name.startswith(PREFIX)]
        base = next((path for path in bases if (path / OWNER).exists()), bases[-1] if bases else None)
        if base is not None and str(base) not in _held:
            _held[str(base)] = _shared(base)


def let_go(base: Path) -> None:
    """This process is through with them."""
    fd = _held.pop(str(base), None)
    if fd is None:
        return
    with suppress(OSError):  # a program that closes all it did not open may have something else under that number
        if os.path.samestat(os.fstat(fd), (base / OWNER).stat()):
            os.close(fd)


@contextmanager
def alone(base: Path) -> Iterator[bool | None]:
    """Whether no process holds the folder, and none will while inside; None where that cannot be told. Raises OSError."""
    fd = os.open(base / OWNER, os.O_RDONLY | os.O_CLOEXEC)
    try:
        free: bool | None = True
        try:
            _lock(fd, shared=False)
        except BlockingIOError:
            free = False
        except OSError:
            free = None
        yield free
    finally:
        os.close(fd)


def _shared(base: Path) -> int:
    gone = f"the private copies in {base} are gone: the run that made them has ended"
    try:
        fd = os.open(base / OWNER, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise StoreError(gone) from None
    try:
        _lock(fd, shared=True)
    except BlockingIOError:  # somebody removes them at this moment
        os.close(fd)
        raise StoreError(gone) from None
    except OSError:  # nobody can tell, so nobody removes them today
        return fd
    if os.fstat(fd).st_nlink == 0:
        os.close(fd)
        raise StoreError(gone)
    return fd


def _lock(fd: int, *, shared: bool) -> None:
    """Raises BlockingIOError if another process is in the way, OSError where a file system, or all of Windows, has no such locks."""
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOLCK, "there are no such locks") from None
    fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
