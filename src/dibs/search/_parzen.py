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
        self._cube = cube
        believes = belief > 0.0 and not np.isnan(cube.prior).all()
        extra = np.full((1 + believes, cube.dims), np.nan)
        if believes:
            extra[1] = cube.prior
        mixed = np.concatenate([weights, [1.0, belief][: 1 + believes]])
        self._weights = mixed / mixed.sum()
        self._numbers = np.flatnonzero(cube.choices == 0)
        self._choices = np.flatnonzero(cube.choices)
        every = np.concatenate([rows, extra])
        self._centres = every[:, self._numbers]
        self._widths = self._width(self._centres, len(rows))
        self._centres = np.where(np.isnan(self._centres), 0.5, self._centres)
        self._chances = [self._table(j, every, len(rows)) for j in self._choices.tolist()]

    def _width(self, centres: Array, observed: int) -> Array:
        """The larger gap to a neighbour on the axis, at least 1/100 and half a cell; of the extra kernels, their own."""
        width = np.full(centres.shape, _WIDEST)
        # the flat kernel's centre, in the middle, counts as a neighbour
        line = np.where(np.isnan(centres[: observed + 1]), np.inf, centres[: observed + 1])
        line[observed] = 0.5
        count = np.isfinite(line).sum(axis=0)
        order = np.argsort(line, axis=0, kind="stable")
        line = np.minimum(np.take_along_axis(line, order, 0), 1.0)
        gaps = np.concatenate([line[:1], line[1:] - line[:-1], 1.0 - line[-1:]])
        wide = np.maximum(gaps[:-1], gaps[1:])
        axes = np.flatnonzero(count >= 4)  # the ends have one neighbour
        wide[0, axes] = gaps[1, axes]
        wide[count[axes] - 1, axes] = gaps[count[axes] - 1, axes]
        np.put_along_axis(width, order, wide, 0)
        width[observed] = _WIDEST
        width = np.clip(width, 1.0 / min(100, observed + 1), _WIDEST)
        width[observed + 1 :] = _BELIEVED
        width[np.isnan(centres)] = _WIDEST
        cells = self._cube.cells[self._numbers]
        result: Array = np.maximum(width, np.where(cells > 0, 0.5 / np.maximum(cells, 1), 0.0))
        return result

    def _table(self, j: int, every: Array, observed: int) -> Array:
        """Kernel by value: the chance of each value of a choice."""
        values = self._cube.numbers(every[:, j], j)
        table = np.full((len(every), self._cube.choices[j]), 1.0 / (observed + 1))
        there = np.flatnonzero(values >= 0)
        table[there, values[there]] += 1.0
        result: Array = table / table.sum(axis=1, keepdims=True)
        return result

    def sample(self, count: int, stream: Stream) -> Array:
        """Rows drawn from the mixture, every coordinate given."""
        u = stream.uniform(count, self._cube.dims + 1)
        kernels = np.minimum(np.searchsorted(np.cumsum(self._weights), u[:, -1], side="right"), len(self._weights) - 1)
        rows = np.empty((count, self._cube.dims))
        flat = self._numbers
        rows[:, flat] = truncated(u[:, flat], self._centres[kernels], self._widths[kernels])
        for j, table in zip(self._choices.tolist(), self._chances, strict=True):
            below = np.cumsum(table[kernels], axis=1) <= u[:, j, None]
            cells = self._cube.choices[j]
            rows[:, j] = (np.minimum(below.sum(axis=1), cells - 1) + 0.5) / cells
        return rows

    def log_density(self, rows: Array) -> Array:
        """The logarithm of the mixture's density at closed rows; inactive coordinates count for nothing."""
        x = rows[:, self._numbers]
        active = ~np.isnan(x)
        x = np.where(active, x, 0.0)
        s, m = 1.0 / self._widths, self._centres
        cut = cdf((1.0 - m) * s) - cdf(-m * s)
        scale = np.log(s / (cut * _SQRT_2PI)) - 0.5 * np.square(m * s)
        # the square of (x - m) / s, taken apart so that it is three matrix products
        each = product(active * 1.0, scale.T) + product(x, (m * s * s).T) - 0.5 * product(x * x, (s * s).T)
        for j, table in zip(self._choices.tolist(), self._chances, strict=True):
            values = self._cube.numbers(rows[:, j], j)
            logs = np.log(table)[:, np.maximum(values, 0)].T
            each += np.where((values >= 0)[:, None], logs, 0.0)
        each += np.log(self._weights)
        top = each.max(axis=1)
        result: Array = top + np.log(np.exp(each - top[:, None]).sum(axis=1))
        return result
