"""A safetensors file read and checked by dibs itself: a header in JSON and a flat buffer, with no library and no code in it.

Format: https://huggingface.co/docs/safetensors (8 bytes of length, the header, the bytes of each tensor without holes).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ._strict import strict_json

__all__ = ["check_safetensors"]

_MOST_HEADER = 100 << 20
_CHUNK = 1 << 20  # values at a time
#: bits of a value; for numbers with a point also how NaN and infinities are told
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64, "C64": 64,
}  # fmt: skip
_PLAIN = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8"}
#: dtype -> (unsigned word, mask, least): a word is not finite where word & mask >= least
_WORDS = {
    "BF16": ("<u2", 0x7FFF, 0x7F80), "F8_E5M2": ("u1", 0x7F, 0x7C), "F8_E4M3": ("u1", 0x7F, 0x7F), "F8_E8M0": ("u1", 0xFF, 0xFF),
}  # fmt: skip


def check_safetensors(path: Path) -> tuple[int, list[str]]:
    """How many tensors there are, and the names of those that hold NaN or an infinity. Raises ValueError, OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        tensors, start = _header(file, size)
        bad = []
        for name, (dtype, begin, end) in tensors.items():
            file.seek(start + begin)
            if not all(_finite(dtype, chunk) for chunk in _chunks(file, dtype, end - begin)):
                bad.append(name)
        return len(tensors), bad


def _header(file: BinaryIO, size: int) -> tuple[dict[str, tuple[str, int, int]], int]:
    head = file.read(8)
    if len(head) < 8:
        raise ValueError("it has no header")
    length = int.from_bytes(head, "little")
    if length > min(_MOST_HEADER, size - 8):
        raise ValueError(f"its header has {length} bytes, and the file {size}")
    body = strict_json(file.read(length))
    if not isinstance(body, dict):
        raise ValueError("its header is no object")
    found: dict[str, tuple[str, int, int]] = {}
    for name, told in body.items():
        if name != "__metadata__":
            found[name] = _tensor(name, told)
    at = 0
    for name, (_, begin, end) in sorted(found.items(), key=lambda item: item[1][1:]):
        if begin != at:
            raise ValueError(f"{name!r:.100} begins at byte {begin}, and {at} is what comes next")
        at = end
    if at != size - 8 - length:
        raise ValueError(f"its tensors take {at} bytes, and there are {size - 8 - length}")
    if not found:
        raise ValueError("it holds no tensor")
    return found, 8 + length


def _tensor(name: str, told: Any) -> tuple[str, int, int]:
    try:
        dtype, shape, (begin, end) = told["dtype"], told["shape"], told["data_offsets"]
        whole = all(type(k) is int and k >= 0 for k in (*shape, begin, end))
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"the header says nothing one can use of {name!r:.100}") from None
    if dtype not in _BITS:
        raise ValueError(f"{name!r:.100} is of a type nobody knows: {dtype!r:.40}")
    if not whole or math.prod(shape) * _BITS[dtype] != 8 * (end - begin):
        raise ValueError(f"{name!r:.100} has not as many bytes as its shape says")
    return dtype, begin, end


def _chunks(file: BinaryIO, dtype: str, size: int) -> Iterator[bytes]:
    if dtype not in _PLAIN and dtype not in _WORDS:
        return
    step = _CHUNK * _BITS[dtype] // 8
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
