"""Making writes survive a power cut: fsync of files and of the folders that name them.

A new name is durable once its folder is synced, and a new folder once *its* parent is (fsync(2)).
macOS needs F_FULLFSYNC to reach the platter; some file systems refuse to sync a folder, which is let pass.
"""

from __future__ import annotations

import errno
import os
from typing import Any

__all__ = ["sync_file", "sync_folder"]

_REFUSALS = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOSYS, errno.EACCES, errno.EPERM, errno.EISDIR})


def _full_fsync() -> Any:
    try:
        import fcntl

        return fcntl.fcntl, fcntl.F_FULLFSYNC  # type: ignore[attr-defined, unused-ignore] # only macOS has it
    except (ImportError, AttributeError):
        return None


_FULL = _full_fsync()


def sync_file(fd: int) -> None:
    """The file's bytes are on the disk when this returns; OSError if they may not be."""
    if _FULL is not None:
        call, command = _FULL
        try:
            call(fd, command)
            return
        except OSError:
            pass  # a network share refuses it; plain fsync asks its server
    os.fsync(fd)


def sync_folder(path: str) -> None:
    """The names in the folder are on the disk when this returns, as far as the file system lets us ask."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # Windows opens no folders; NTFS journals the names by itself
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
    finally:
        os.close(fd)
