"""Chance for samplers that need much of it: arrays of uniforms and normals, each a pure function of its key.

The words are those of ``_canon.chance``, so the stream is the same in any language; numpy only takes them apart.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dibs._canon import chance_bytes

__all__ = ["Array", "Stream", "uniforms"]

Array: TypeAlias = NDArray[np.float64]


def uniforms(count: int, *key: Any) -> Array:
    """``chance(count, *key)`` as an array."""
    words = np.frombuffer(chance_bytes(count, *key), ">u8")
    numbers: Array = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers


class Stream:
    """One key's numbers, taken piece by piece: the k-th piece depends on the key, on k and on its length only."""

    def __init__(self, *key: Any) -> None:
        self._key, self._piece = key, 0

    def uniform(self, *shape: int) -> Array:
        """Numbers in [0, 1)."""
        count = int(np.prod(shape))
        self._piece += 1
        return uniforms(count, *self._key, self._piece).reshape(shape)

    def normal(self, *shape: int) -> Array:
        """Standard normal numbers (Box and Muller 1958)."""
        u = self.uniform(2, *shape)
        radius: Array = np.sqrt(-2.0 * np.log(1.0 - u[0]))
        result: Array = radius * np.cos(2.0 * np.pi * u[1])
        return result
