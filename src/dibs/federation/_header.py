"""The header of a safetensors file, made and read; whatever the bytes are, the answer is a header or an UpdateError. Pure.

Format: https://huggingface.co/docs/safetensors (8 bytes of length, a header in JSON, and the tensors' bytes without
holes). There is no code in it, and none is run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dibs._canon import dumps
from dibs.errors import UpdateError

from ._exports import Layout
from ._values import BITS

__all__ = ["MOST_BYTES", "Header", "Place", "header_bytes", "parse_header", "places_of"]

MOST_BYTES = 100 << 20  # of a header, as the library has it
_MOST_DIMENSIONS = 32  # numpy's, in its older versions
_METADATA = "__metadata__"


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


def places_of(layout: Layout) -> dict[str, Place]:
    """Where tensors of that layout lie in a file of ours: wide types first, so that all are aligned, then by name."""
    places, at = {}, 0
    for name, (dtype, shape) in sorted(layout.items(), key=lambda item: (-BITS[item[1][0]], item[0])):
        size = math.prod(shape) * BITS[dtype] // 8
        places[name] = Place(dtype, tuple(shape), at, at + size)
        at += size
    return places


def header_bytes(places: Mapping[str, Place], metadata: Mapping[str, str]) -> bytes:
    """Length and header, padded so that the tensors begin at a multiple of 8; equal arguments are equal bytes."""
    body: dict[str, Any] = {
        name: {"dtype": place.dtype, "shape": list(place.shape), "data_offsets": [place.begin, place.end]}
        for name, place in places.items()
    }
    if metadata:
        body[_METADATA] = dict(metadata)
    text = dumps(body)
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_BYTES:
        raise UpdateError(f"the names of {len(places)} tensors take more than {MOST_BYTES >> 20} MiB: that is too many")
    return len(text).to_bytes(8, "little") + text


def parse_header(text: bytes, room: int) -> Header:
    """The header behind its length; ``room``: how many bytes of tensors there are. Raises UpdateError."""
    body = _object(text)
    metadata = body.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise UpdateError("its metadata are not texts by name")
    found = {name: _place(name, told) for name, told in body.items()}
    if not found:
        raise UpdateError("it holds no tensor")
    at = 0
    places = dict(sorted(found.items(), key=lambda item: (item[1].begin, item[1].end)))
    for name, place in places.items():
        if place.begin != at:
            raise UpdateError(f"tensor {name!r:.100} begins at byte {place.begin}, and {at} is what comes next")
        at = place.end
    if at != room:
        raise UpdateError(f"its tensors take {at} bytes, and there are {room}")
    return Header(places, metadata)


def _object(text: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise UpdateError("its header says something twice")
        return found

    try:
        body = json.loads(text.decode(), object_pairs_hook=once)
    except UpdateError:
        raise
    except (ValueError, RecursionError) as wrong:  # no UTF-8, no JSON, a number of thousands of digits, a deep nest
        raise UpdateError(f"its header does not parse ({str(wrong)[:80]})") from None
    if not isinstance(body, dict):
        raise UpdateError("its header is no object")
    return body


def _place(name: str, told: Any) -> Place:
    try:
        dtype, shape, (begin, end) = told["dtype"], told["shape"], told["data_offsets"]
        numbers = [*shape, begin, end]
    except (TypeError, KeyError, ValueError):
        raise UpdateError(f"the header says nothing one can use of {name!r:.100}") from None
    if not isinstance(dtype, str) or dtype not in BITS:
        raise UpdateError(f"tensor {name!r:.100} is of a type nobody knows: {dtype!r:.40}")
    if len(shape) > _MOST_DIMENSIONS or not all(type(k) is int and 0 <= k < 1 << 62 for k in numbers):
        raise UpdateError(f"tensor {name!r:.100} has a shape or a place that nothing has")
    if math.prod(shape) * BITS[dtype] != 8 * (end - begin):
        raise UpdateError(f"tensor {name!r:.100} has not as many bytes as its shape says")
    return Place(dtype, tuple(shape), begin, end)
