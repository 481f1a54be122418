"""Half a download, kept so that the next try goes on where this one broke: ``.<name>.<digest>.part`` beside the file.

Of several processes that fetch the same file one has the part (a lock of the system's, which dies with it); the others
get one of their own, which is not kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from dibs.errors import NotFound, RecordError

__all__ = ["fill", "part_of"]

_CHUNK_BYTES = 1 << 20


@contextlib.contextmanager
def part_of(path: Path, digest: str) -> Iterator[tuple[BinaryIO, Path]]:
    """An open file, at its beginning, and its path, which the caller renames once it is whole."""
    part = path.with_name(f".{path.name}.{digest[:16]}.part")
    file = _locked(part)
    if file is not None:
        with file:
            try:
                yield file, part
            except BaseException as wrong:
                if isinstance(wrong, NotFound | RecordError) or not file.tell():
                    part.unlink(missing_ok=True)  # nothing to go on with
                raise
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
    try:
        with part.open("x+b") as own:
            yield own, part
    finally:
        part.unlink(missing_ok=True)


def fill(
    file: BinaryIO, digest: str, source: Callable[[int], Iterable[bytes]], damaged: Callable[[str], Exception]
) -> None:
    """Bring an open part to the whole, from wherever it is. ``source``: the bytes from a place on.

    Raises what ``damaged`` makes of the SHA-256 that was found instead; then the part is empty.
    """
    hasher = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        hasher.update(chunk)
    had = file.tell()
    for chunk in source(had):
        hasher.update(chunk)
        file.write(chunk)
    if hasher.hexdigest() == digest:
        return
    file.seek(0)
    file.truncate()
    if not had:
        raise damaged(hasher.hexdigest())
    fill(file, digest, source, damaged)  # what was there was something else: once more, from nothing


def _locked(part: Path) -> BinaryIO | None:
    """The part, opened and ours alone; None if somebody else has it or this system cannot say."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except IsADirectoryError:
        return None
    file: BinaryIO = os.fdopen(fd, "r+b")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ours = os.path.samestat(os.fstat(fd), part.lstat())  # not one that was renamed before the lock was ours
    except OSError:
        ours = False
    if not ours:
        file.close()
        return None
    return file
