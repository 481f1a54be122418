"""Blobs: bytes under their SHA-256, streamed and hashed on the way in, verified on the way out.

A blob is never a claim: whoever writes the same digest writes the same bytes, so the last rename wins and
nothing changes. It is durable before its digest is told to anybody.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from dibs.backend import Backend, Outcome
from dibs.errors import NotFound, RecordError, StoreError, UsageError

from ._keys import blob_key
from ._parts import fill, part_of

__all__ = ["check", "fetch", "get", "has", "put"]

_CHUNK_BYTES = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_TRIES = 5
RENEWED_S = 12 * 3600.0  # half the age at which a collector takes a blob that nobody names


def put(backend: Backend, data: bytes | os.PathLike[str] | BinaryIO | Iterable[bytes]) -> str:
    """Store the bytes; returns their digest once they are durable. Raises StoreError."""
    if isinstance(data, bytes | bytearray | memoryview):
        raw = bytes(data)
        digest = hashlib.sha256(raw).hexdigest()
        if _renewed(backend, digest):
            return digest
        return _name(backend, backend.stage(raw, durable=True), digest)
    hasher = hashlib.sha256()
    chunks = _chunks(data)

    def passing() -> Iterator[bytes]:
        for chunk in chunks:
            hasher.update(chunk)
            yield chunk

    draft = backend.stage(passing(), durable=True)
    return _name(backend, draft, hasher.hexdigest())


def _renewed(backend: Backend, digest: str) -> bool:
    """Whether the blob is there, now with a stamp of today: a collector of old blobs must not take it meanwhile."""
    key = blob_key(digest)
    if backend.traits.touch:
        return backend.touch(key)
    if backend.version(key) is None:
        return False
    folder = key.rpartition("/")[0] + "/"
    there = next((entry for entry in backend.list(folder, details=True) if entry.key == key), None)
    return there is not None and backend.now() - there.modified < RENEWED_S  # an older one is written anew


def _name(backend: Backend, draft: Any, digest: str) -> str:
    key = blob_key(digest)
    try:
        for _ in range(_TRIES):
            outcome = backend.put(key, draft)
            if outcome is Outcome.WON or has(backend, digest):
                return digest
    finally:
        backend.discard(draft)
    raise StoreError(f"the blob {digest} could not be stored: the store gave no clear answer {_TRIES} times", key=key)


def get(backend: Backend, digest: str) -> bytes:
    """The verified bytes. Raises NotFound or RecordError."""
    return b"".join(_verified(backend, digest))


def fetch(backend: Backend, digest: str, path: Path) -> Path:
    """Write the verified bytes to a file of that name, whole or not at all.

    What an earlier fetch had brought before it broke, or was killed, is used: it lies beside the file.
    """
    with part_of(path, check(digest)) as (file, part):
        fill(file, digest, lambda start: _stream(backend, digest, start), lambda _: _damaged(digest))
        file.flush()
        part.replace(path)
    return path


def _stream(backend: Backend, digest: str, start: int = 0) -> Iterator[bytes]:
    chunks = backend.stream(_key(digest), start)
    if chunks is None:
        raise NotFound(f"there is no blob {digest} in this store")
    return chunks


def has(backend: Backend, digest: str) -> bool:
    """Whether there is a blob of that digest."""
    return backend.version(_key(digest)) is not None


def _verified(backend: Backend, digest: str) -> Iterator[bytes]:
    hasher = hashlib.sha256()
    for chunk in _stream(backend, digest):
        hasher.update(chunk)
        yield chunk
    if hasher.hexdigest() != digest:
        raise _damaged(digest)


def _damaged(digest: str) -> RecordError:
    text = f"the blob {digest} is damaged: its bytes have another digest; delete it and store it again"
    return RecordError(text, key=_key(digest))


def check(digest: str) -> str:
    """The digest itself. Raises UsageError for what cannot be one."""
    if not isinstance(digest, str) or not _DIGEST.match(digest):
        raise UsageError(f"a digest is 64 characters of 0-9a-f, not {digest!r}")
    return digest


def _key(digest: str) -> str:
    return blob_key(check(digest))


def _chunks(data: Any) -> Iterator[bytes]:
    if isinstance(data, os.PathLike):
        with Path(data).open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
    elif hasattr(data, "read"):
        while chunk := data.read(_CHUNK_BYTES):
            yield _bytes(chunk)
    elif isinstance(data, str) or not isinstance(data, Iterable):
        raise UsageError(f"give bytes, a Path, an open binary file or chunks of bytes, not {type(data).__name__}")
    else:
        for chunk in data:
            yield _bytes(chunk)


def _bytes(chunk: Any) -> bytes:
    if not isinstance(chunk, bytes | bytearray | memoryview):
        raise UsageError(f"a blob is bytes, not {type(chunk).__name__}: open the file in binary mode")
    return bytes(chunk)
