"""Plain files as they lie there: what there is beneath a folder, their bytes, their digests. Reads only, and follows no link."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from ._findings import Lying

__all__ = ["NOFOLLOW", "chunks_of", "files_in", "hash_chunks", "hash_file"]

_CHUNK = 1 << 20
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def files_in(folder: Path) -> list[tuple[str, Path, Lying]]:
    """Every file beneath a folder by its path within; what is no plain file, or no folder that reads, says why."""
    found: list[tuple[str, Path, Lying]] = []

    def look(where: Path) -> Iterator[Path]:
        try:
            return iter(sorted(where.iterdir()))
        except OSError as wrong:
            name = where.relative_to(folder).as_posix()
            found.append((name, where, Lying(-1, why=f"the folder cannot be read: {wrong.strerror}")))
            return iter(())

    left = [look(folder)]
    while left:
        path = next(left[-1], None)
        if path is None:
            left.pop()
            continue
        name = path.relative_to(folder).as_posix()
        try:
            told = path.lstat()
        except OSError as wrong:
            found.append((name, path, Lying(-1, why=f"it cannot be looked at: {wrong.strerror}")))
            continue
        if stat.S_ISDIR(told.st_mode):
            left.append(look(path))
        elif stat.S_ISREG(told.st_mode):
            found.append((name, path, Lying(told.st_size)))
        else:
            what = "a link" if stat.S_ISLNK(told.st_mode) else "no plain file"
            found.append((name, path, Lying(-1, why=f"it is {what}")))
    return found


def chunks_of(path: Path, start: int = 0) -> Iterator[bytes]:
    """A plain file's bytes from the ``start``-th on. Raises OSError; a link is not followed."""
    with os.fdopen(os.open(path, os.O_RDONLY | NOFOLLOW), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is no plain file")
        file.seek(start)
        while chunk := file.read(_CHUNK):
            yield chunk


def hash_file(path: Path) -> tuple[int, str]:
    """Size and SHA-256 of what was read, so that both are of the same bytes. Raises OSError."""
    return hash_chunks(chunks_of(path))


def hash_chunks(chunks: Iterable[bytes]) -> tuple[int, str]:
    """Size and SHA-256 of these bytes."""
    hasher, size = hashlib.sha256(), 0
    for chunk in chunks:
        hasher.update(chunk)
        size += len(chunk)
    return size, hasher.hexdigest()
