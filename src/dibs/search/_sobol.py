"""Scrambled Sobol points: the first 2**k of them fill the cube far more evenly than chance does.

Point n is a xor of direction numbers (Sobol 1967; Bratley and Fox 1988), scrambled by a random linear matrix and
a digital shift (Matousek 1998) keyed by seed and dimension. No state: any index, in any order, at the same price.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from operator import index
from typing import ClassVar

from dibs._canon import chance
from dibs.errors import UsageError
from dibs.space import Space, Value

from ._directions import DIRECTIONS
from ._history import Pair
from ._sampler import Sampler, register

__all__ = ["Sobol"]

_BITS = 32
_SCALE = 2.0**-_BITS
#: dimensions with direction numbers; the axes beyond are drawn at random
_DIMENSIONS = len(DIRECTIONS) + 1


@register
class Sobol(Sampler):
    """Low-discrepancy points; axis k of the cube is the k-th name in sorted order. Needs no history.

    Up to 128 axes have direction numbers, later ones are drawn as by Random. Indexes below 2**32.
    """

    name: ClassVar[str] = "sobol"
    version: ClassVar[int] = 1
    needs_history: ClassVar[bool] = False
    several: ClassVar[bool] = True

    def ask(self, space: Space, n: int, history: Iterable[Pair] = ()) -> dict[str, Value]:
        return space.draw(dict(zip(space.axes, self.unit(space, n), strict=True)).__getitem__)

    def unit(self, space: Space, n: int) -> list[float]:
        """The coordinates of point n, one for each axis."""
        seed, n = self.seed or 0, index(n)
        beyond = (chance(1, self.version, seed, n, name)[0] for name in space.axes[_DIMENSIONS:])
        return [*self._unit(n, len(space.axes)), *beyond]

    def _unit(self, n: int, dims: int) -> list[float]:
        """The first coordinates of point n, each a multiple of 2**-32 in [0, 1)."""
        if not 0 <= n < 2**_BITS:
            raise UsageError(f"index {n} is not in [0, 2**{_BITS})")
        digits = [j for j in range(n.bit_length()) if n >> j & 1]
        unit = []
        for shift, columns in _scrambled(self.version, self.seed or 0, min(dims, _DIMENSIONS)):
            x = shift
            for j in digits:
                x ^= columns[j]
            unit.append(x * _SCALE)
        return unit


@lru_cache(maxsize=16)
def _scrambled(version: int, seed: int, dims: int) -> list[tuple[int, list[int]]]:
    """For each dimension the shift and the scrambled direction numbers."""
    return [_scramble(version, seed, dim) for dim in range(dims)]


def _scramble(version: int, seed: int, dim: int) -> tuple[int, list[int]]:
    shift, *words = (int(u * 2**_BITS) for u in chance(_BITS + 1, version, seed, None, ["sobol", dim]))
    # row p of a lower triangular matrix with ones on its diagonal: digit p and a random choice of those before it
    rows = [(word >> p + 1 << p + 1) | 1 << p for p, word in enumerate(words)]
    columns = [
        sum(((row & column).bit_count() & 1) << p for p, row in enumerate(rows)) for column in _direction_numbers(dim)
    ]
    return shift, columns


def _direction_numbers(dim: int) -> list[int]:
    """The direction numbers of a dimension, top bit = first digit."""
    if dim == 0:
        return [1 << (_BITS - 1 - j) for j in range(_BITS)]
    poly, start = DIRECTIONS[dim - 1]
    degree, m = len(start), list(start)
    while len(m) < _BITS:
        new = m[-degree] ^ m[-degree] << degree
        for k in range(1, degree):
            if poly >> (degree - k) & 1:
                new ^= m[-k] << k
        m.append(new)
    return [value << (_BITS - 1 - j) for j, value in enumerate(m)]
