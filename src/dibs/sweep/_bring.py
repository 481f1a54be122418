"""Files brought into a folder of ours: whole or not at all, hashed as they are read and again as they were written.

Nothing is written through a link, and half a file that a killed pull has left is gone on with.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from dibs.errors import StoreError, UsageError
from dibs.store._parts import fill, part_of

from ._files import chunks_of, hash_file

__all__ = ["Damaged", "Source", "bring", "folder_in", "from_file", "put_whole"]

Source = Callable[[int], Iterator[bytes]]
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Damaged(Exception):
    """The source is not what it should be: the sentence says how."""


def bring(source: Source, path: Path, size: int, digest: str) -> bool:
    """Bring the bytes to the file; False if it was there already, the same. ``source``: the bytes from a place on.

    Raises Damaged if the source has other bytes, UsageError if a link is in the way, StoreError if it cannot be written.
    """
    if _there(path, size, digest):
        return False
    try:
        with part_of(path, digest) as (file, part):
            fill(file, digest, lambda start: _read(source, start), lambda found: _other(digest, found))
            if file.tell() != size:
                raise Damaged(f"it has {file.tell()} bytes, and its record says {size}")
            file.flush()
            os.fsync(file.fileno())
            if hash_file(part) != (size, digest):
                file.seek(0)
                file.truncate()
                raise Damaged(f"{path} was written, and reads back with other bytes: look at that disk")
            part.replace(path)
    except OSError as wrong:
        if isinstance(wrong, StoreError):
            raise
        full = "there is no room for it" if wrong.errno in _FULL else wrong.strerror or str(wrong)
        raise StoreError(f"{path} cannot be written: {full}") from wrong
    return True


def folder_in(dest: Path, name: str) -> Path:
    """The folder of that path beneath ``dest``, made if need be. Raises UsageError for a link on the way, StoreError."""
    path = dest
    for part in Path(name).parts:
        path = path / part
        try:
            with contextlib.suppress(FileExistsError):
                path.mkdir()
            if not stat.S_ISDIR(path.lstat().st_mode):
                raise UsageError(f"{path} is in the way: it is a link or a file, where a folder of results is to be")
        except OSError as wrong:
            if isinstance(wrong, StoreError):
                raise
            raise StoreError(f"the folder {path} cannot be made: {wrong.strerror or wrong}") from wrong
    return path


def put_whole(path: Path, data: bytes) -> None:
    """Write a small file as a whole, durable when this returns. Raises StoreError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
    try:
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        finally:
            part.unlink(missing_ok=True)
    except OSError as wrong:
        raise StoreError(f"{path} cannot be written: {wrong.strerror or wrong}") from wrong


def _there(path: Path, size: int, digest: str) -> bool:
    """Whether the file is there, as it should be. Raises UsageError for a link, or anything else but a file."""
    try:
        told = path.lstat()
    except FileNotFoundError:
        return False
    except OSError as wrong:
        raise StoreError(f"{path} cannot be looked at: {wrong.strerror or wrong}") from wrong
    if not stat.S_ISREG(told.st_mode):
        raise UsageError(f"{path} is in the way: it is a link, a folder or a device, and no file; move it away")
    try:
        return told.st_size == size and hash_file(path) == (size, digest)
    except OSError:
        return False  # it does not read: it is replaced


def _other(digest: str, found: str) -> Damaged:
    return Damaged(f"its SHA-256 is {found[:12]}... instead of {digest[:12]}...")


def _read(source: Source, start: int) -> Iterator[bytes]:
    """The source's bytes; what goes wrong there is the source's, and not that of the file that is written."""
    try:
        yield from source(start)
    except FileNotFoundError:
        raise Damaged("it is not there") from None
    except StoreError:
        raise
    except OSError as wrong:
        raise Damaged(f"it cannot be read: {wrong.strerror or wrong}") from None


def from_file(path: Path) -> Source:
    """A file's bytes from a place on."""
    return lambda start: chunks_of(path, start)
