"""What a server that was sent some bytes may answer to prove that it has them. Pure.

The etag of an object in S3 (and of SeaweedFS, MinIO, R2) is the MD5 of its bytes, and of one sent in parts the MD5 of the
parts' MD5s, a dash and their number; not so where the server encrypts with keys of its own, nor at Azure and Google.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Checksums", "checksums"]


class Checksums(NamedTuple):
    """``whole`` and ``by_parts``: the two etags; ``sha256``: for a comparison byte for byte."""

    whole: str
    by_parts: str
    sha256: str


def checksums(chunks: Iterable[bytes]) -> Checksums:
    """Of an object that was sent in these parts."""
    whole, parts, count = hashlib.md5(usedforsecurity=False), hashlib.md5(usedforsecurity=False), 0
    sha256 = hashlib.sha256()
    for chunk in chunks:
        count += 1
        whole.update(chunk)
        parts.update(hashlib.md5(chunk, usedforsecurity=False).digest())
        sha256.update(chunk)
    return Checksums(whole.hexdigest(), f"{parts.hexdigest()}-{count}", sha256.hexdigest())
