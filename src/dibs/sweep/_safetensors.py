"""A safetensors file checked by dibs itself: the header by `dibs.record`, and here whether the values are finite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dibs.record._safetensors import BITS, read_header

__all__ = ["check_safetensors"]

_CHUNK = 1 << 20  # values at a time
#: how NaN and infinities are told
_PLAIN = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8"}
#: dtype -> (unsigned word, mask, least): a word is not finite where word & mask >= least
_WORDS = {
    "BF16": ("<u2", 0x7FFF, 0x7F80), "F8_E5M2": ("u1", 0x7F, 0x7C), "F8_E4M3": ("u1", 0x7F, 0x7F), "F8_E8M0": ("u1", 0xFF, 0xFF),
}  # fmt: skip


def check_safetensors(path: Path) -> tuple[int, list[str]]:
    """How many tensors there are, and the names of those that hold NaN or an infinity. Raises ValueError, OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        header, start = read_header(file, size)
        bad = []
        for name, place in header.places.items():
            file.seek(start + place.begin)
            if not all(_finite(place.dtype, chunk) for chunk in _chunks(file, place.dtype, place.end - place.begin)):
                bad.append(name)
        return len(header.places), bad


def _chunks(file: BinaryIO, dtype: str, size: int) -> Iterator[bytes]:
    if dtype not in _PLAIN and dtype not in _WORDS:
        return
    step = _CHUNK * BITS[dtype] // 8
    while size > 0:
        data = file.read(min(step, size))
        if not data:
            raise ValueError("it ends before its last tensor does")
        size -= len(data)
        yield data


def _finite(dtype: str, data: bytes) -> bool:
    if dtype in _PLAIN:
        return bool(np.isfinite(np.frombuffer(data, _PLAIN[dtype])).all())
    word, mask, least = _WORDS[dtype]
    return not bool(((np.frombuffer(data, word) & mask) >= least).any())
