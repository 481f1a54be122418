"""Reading one file whole or in chunks, and nothing that is not a regular file.

No link is followed and no FIFO waited for: whoever can write to a shared folder could plant either.
A file is never written in place, so one open reads one write, whatever is renamed over the name meanwhile.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from stat import S_ISREG

from dibs.backend._base import Object
from dibs.backend._oserrors import store_error
from dibs.backend._walk import version_of
from dibs.errors import RecordError

__all__ = ["CHUNK", "LIMIT_BYTES", "Chunks", "read_whole"]

LIMIT_BYTES = 64 << 20  # what is larger is a blob and is streamed
CHUNK = 1 << 20

_FLAGS = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"):
    _FLAGS |= getattr(os, _flag, 0)


def read_whole(path: str, key: str) -> Object:
    """The file's bytes, version and stamp. FileNotFoundError, NotADirectoryError: no such key.

    RecordError: not a regular file, or more than LIMIT_BYTES. Any other OSError as it came.
    """
    fd = _open(path, key)
    try:
        stat = os.fstat(fd)
        _demand_regular(stat, path, key)
        size = stat.st_size
        if size > LIMIT_BYTES:
            raise _too_large(path, key)
        data = os.read(fd, size + 1)
        if len(data) != size:  # a short read, or a file that somebody else than us writes in place
            data = _read_on(fd, data, path, key)
    finally:
        os.close(fd)
    return Object(data, version_of(stat, len(data)), stat.st_mtime)


class Chunks(Iterator[bytes]):
    """A regular file's bytes from ``start`` on in chunks of at most 1 MiB; closed at the end, or with this object."""

    def __init__(self, path: str, key: str, start: int = 0) -> None:
        self._fd = -1
        self._path, self._key = path, key
        fd = _open(path, key)
        try:
            _demand_regular(os.fstat(fd), path, key)
            os.lseek(fd, start, os.SEEK_SET)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def __next__(self) -> bytes:
        if self._fd >= 0:
            try:
                chunk = os.read(self._fd, CHUNK)
            except OSError as error:
                raise store_error(error, "read", self._path, self._key) from error
            if chunk:
                return chunk
            self.close()
        raise StopIteration

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


def _open(path: str, key: str) -> int:
    try:
        return os.open(path, _FLAGS)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):  # a link; a socket; a device without its driver
            raise _not_a_record(path, key) from error
        raise


def _demand_regular(stat: os.stat_result, path: str, key: str) -> None:
    if not S_ISREG(stat.st_mode):
        raise _not_a_record(path, key)


def _read_on(fd: int, data: bytes, path: str, key: str) -> bytes:
    parts, total = [data], len(data)
    while chunk := os.read(fd, CHUNK):
        parts.append(chunk)
        total += len(chunk)
        if total > LIMIT_BYTES:
            raise _too_large(path, key)
    return b"".join(parts)


def _not_a_record(path: str, key: str) -> RecordError:
    return RecordError(
        f"{path} is a folder, link, FIFO, socket or device where a file belongs: remove it by hand", key=key
    )


def _too_large(path: str, key: str) -> RecordError:
    return RecordError(
        f"{path} is larger than a record may be ({LIMIT_BYTES >> 20} MiB): it can only be streamed", key=key
    )
