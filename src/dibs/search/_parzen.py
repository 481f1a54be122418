"""Parzen estimators over mixed rows: one kernel per observation, and a flat one that keeps everything possible.

Numbers have normal kernels cut to the unit interval, as wide as the gap to their neighbours (Bergstra et al. 2011);
choices have a smoothed indicator. A kernel is the product over the axes; an axis its observation lacks is flat.
"""

from __future__ import annotations

import math

import numpy as np

from ._cube import Cube
from ._linear import product
from ._normal import cdf, truncated
from ._stream import Array, Stream

__all__ = ["Parzen"]

_WIDEST = 1.0
_BELIEVED = 0.15
_SQRT_2PI = math.sqrt(2.0 * math.pi)


class Parzen:
    """The mixture of the kernels of ``rows``, with weights, and of the flat kernel, whose weight is 1.

    ``belief``: a kernel around what is believed joins, of that weight.
    """

    def __init__(self, cube: Cube, rows: Array, weights: Array, belief: float = 0.0) -> None:
        self._cube, observed = cube, len(rows)
        believes = belief > 0.0 and not np.isnan(cube.prior).all()
        extra = np.full((1 + believes, cube.dims), np.nan)
        if believes:
            extra[1] = cube.prior
        mixed = np.concatenate([weights, [1.0, belief][: 1 + believes]])
        self._weights = mixed / mixed.sum()
        every = np.concatenate([rows, extra])
        # axis by kernel from here on
        centres = every.T[cube.numeric]
        self._widths = self._width(centres, observed)
        self._centres = np.where(np.isnan(centres), 0.5, centres)
        chances = cube.indicators(every).T + 1.0 / (observed + 1)
        starts = np.flatnonzero(np.diff(cube.value_axes, prepend=-1))
        self._chances = np.split(chances, starts[1:])
        for table in self._chances:
            table /= table.sum(axis=0)
        self._terms = self._logarithms(chances)

    def _width(self, centres: Array, observed: int) -> Array:
        """The larger gap to a neighbour on the axis, at least 1/100 and half a cell; of the extra kernels, their own."""
        width = np.full(centres.shape, _WIDEST)
        missing = np.isnan(centres)
        # the flat kernel's centre, in the middle, counts as a neighbour
        line = np.where(missing[:, : observed + 1], np.inf, centres[:, : observed + 1])
        line[:, observed] = 0.5
        count = np.isfinite(line).sum(axis=1)
        order = np.argsort(line, axis=1, kind="stable")
        line = np.minimum(np.take_along_axis(line, order, 1), 1.0)
        gaps = np.concatenate([line[:, :1], line[:, 1:] - line[:, :-1], 1.0 - line[:, -1:]], axis=1)
        wide = np.maximum(gaps[:, :-1], gaps[:, 1:])
        axes = np.flatnonzero(count >= 4)  # the ends have one neighbour
        wide[axes, 0] = gaps[axes, 1]
        wide[axes, count[axes] - 1] = gaps[axes, count[axes] - 1]
        np.put_along_axis(width, order, wide, 1)
        width = np.clip(width, 1.0 / min(100, observed + 1), _WIDEST)
        width[:, observed + 1 :] = _BELIEVED
        width[missing] = _WIDEST
        result: Array = np.maximum(width, self._cube.half_cells[self._cube.numeric, None])
        return result

    def _logarithms(self, chances: Array) -> Array:
        """What a row's terms are multiplied with: the square of (x - m) / s taken apart, so that it is one product."""
        m, s = self._centres, 1.0 / self._widths
        inside = cdf(np.stack([(1.0 - m) * s, m * s]))  # of the kernel, this lies in the unit interval
        scale = np.log(s / ((inside[0] + inside[1] - 1.0) * _SQRT_2PI)) - 0.5 * np.square(m * s)
        return np.concatenate([scale, m * s * s, -0.5 * s * s, np.log(chances), np.log(self._weights)[None]])

    def sample(self, count: int, stream: Stream) -> Array:
        """Rows drawn from the mixture, every coordinate given."""
        u = stream.uniform(count, self._cube.dims + 1)
        kernels = np.minimum(np.searchsorted(np.cumsum(self._weights), u[:, -1], side="right"), len(self._weights) - 1)
        rows = np.empty((count, self._cube.dims))
        numeric = self._cube.numeric
        rows[:, numeric] = truncated(u[:, numeric], self._centres[:, kernels].T, self._widths[:, kernels].T)
        for j, table in zip(np.flatnonzero(self._cube.choices).tolist(), self._chances, strict=False):
            below = np.cumsum(table[:, kernels], axis=0) <= u[:, j]
            rows[:, j] = (np.minimum(below.sum(axis=0), len(table) - 1) + 0.5) / len(table)
        return rows

    def log_density(self, rows: Array) -> Array:
        """The logarithm of the mixture's density at closed rows; inactive coordinates count for nothing."""
        x = rows[:, self._cube.numeric]
        active = ~np.isnan(x)
        x = np.where(active, x, 0.0)
        terms = [active, x, x * x, self._cube.indicators(rows), np.ones((len(rows), 1))]
        each = product(np.concatenate(terms, axis=1), self._terms)
        top = each.max(axis=1)
        result: Array = top + np.log(np.exp(each - top[:, None]).sum(axis=1))
        return result
