"""The header of a safetensors file, read and checked; whatever the bytes are, the answer is a header or a ValueError. Pure.

Format: https://huggingface.co/docs/safetensors (8 bytes of length, a header in JSON, and the tensors' bytes without
holes). There is no code in it, and none is run. Everybody who reads such a file reads it here.
"""

from __future__ import annotations

import json
import math
from typing import Any, BinaryIO, NamedTuple

__all__ = ["BITS", "METADATA", "MOST_BYTES", "MOST_DIMENSIONS", "Header", "Place", "parse_header", "read_header"]

MOST_BYTES = 100 << 20  # of a header, as the library has it
METADATA = "__metadata__"
#: bits of a value, by the name of its type
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64, "C64": 64,
}  # fmt: skip
MOST_DIMENSIONS = 32  # numpy's, in its older versions


class Place(NamedTuple):
    """Where a tensor lies: type, shape, and its bytes from the end of the header on."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """What a file holds: tensors by name, in the order in which they lie, and texts by name."""

    places: dict[str, Place]
    metadata: dict[str, str]


def read_header(file: BinaryIO, size: int) -> tuple[Header, int]:
    """The header of an open file of ``size`` bytes, and where its tensors begin. Raises ValueError, OSError."""
    head = file.read(8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or length > min(MOST_BYTES, size - 8):
        raise ValueError(f"it has no header: its length would be {length} of {size} bytes")
    return parse_header(file.read(length), size - 8 - length), 8 + length


def parse_header(text: bytes, room: int) -> Header:
    """The header behind its length; ``room``: how many bytes of tensors there are. Raises ValueError."""
    body = _object(text)
    metadata = body.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata are not texts by name")
    found = {name: _place(name, told) for name, told in body.items()}
    if not found:
        raise ValueError("it holds no tensor")
    at = 0
    places = dict(sorted(found.items(), key=lambda item: (item[1].begin, item[1].end)))
    for name, place in places.items():
        if place.begin != at:
            raise ValueError(f"tensor {name!r:.100} begins at byte {place.begin}, and {at} is what comes next")
        at = place.end
    if at != room:
        raise ValueError(f"its tensors take {at} bytes, and there are {room}")
    return Header(places, metadata)


def _object(text: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("its header says something twice")
        return found

    try:
        body = json.loads(text.decode(), object_pairs_hook=once)
    except (ValueError, RecursionError) as wrong:  # no UTF-8, no JSON, a number of thousands of digits, a deep nest
        raise ValueError(f"its header does not parse ({str(wrong)[:80]})") from None
    if not isinstance(body, dict):
        raise ValueError("its header is no object")
    return body


def _place(name: str, told: Any) -> Place:
    try:
        dtype, shape, (begin, end) = told["dtype"], told["shape"], told["data_offsets"]
        numbers = [*shape, begin, end]
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"the header says nothing one can use of {name!r:.100}") from None
    if not isinstance(dtype, str) or dtype not in BITS:
        raise ValueError(f"tensor {name!r:.100} is of a type nobody knows: {dtype!r:.40}")
    if len(shape) > MOST_DIMENSIONS or not all(type(k) is int and 0 <= k < 1 << 62 for k in numbers):
        raise ValueError(f"tensor {name!r:.100} has a shape or a place that nothing has")
    if math.prod(shape) * BITS[dtype] != 8 * (end - begin):
        raise ValueError(f"tensor {name!r:.100} has not as many bytes as its shape says")
    return Place(dtype, tuple(shape), begin, end)
