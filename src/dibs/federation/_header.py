"""The header of a safetensors file, made; `dibs.record` has what reads it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dibs._canon import dumps
from dibs.errors import UpdateError
from dibs.record._safetensors import BITS, METADATA, MOST_BYTES, Place

from ._exports import Layout

__all__ = ["header_bytes", "places_of"]


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
        body[METADATA] = dict(metadata)
    text = dumps(body)
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_BYTES:
        raise UpdateError(f"the names of {len(places)} tensors take more than {MOST_BYTES >> 20} MiB: that is too many")
    return len(text).to_bytes(8, "little") + text
