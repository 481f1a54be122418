"""Between points and rows: a space as columns of the unit cube, many points at once.

A row has one number per axis, in the order of ``space.axes``: the centre of its cell where a parameter has cells,
nan where it is inactive. Nothing is kept between asks, so nothing can be stale: columns are read in one sweep each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from dibs.errors import SpaceError
from dibs.space import Choice, Constant, Int, Space, Tree, Value, all_levels

from ._columns import ABSENT, BELOW_ONE, FEW, log_centre, reader_of
from ._stream import Array

__all__ = ["Cube", "cube_of"]

_LISTED = 512  # a space of so few points is looked at as a whole


class Cube:
    """What samplers need to know of a space, made once for each.

    ``choices``: number of values for an unordered Choice, else 0. ``cells``: number of values, 0 for a continuum
    (or beyond counting). ``prior``: where a good value is believed to lie, nan without a belief.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        params: list[Any] = [space.params[name] for name in space.axes]
        self.dims = len(params)
        self.params = params
        self.choices = np.array(
            [p.cells if isinstance(p, Choice) and not p.ordered and p.cells > 1 else 0 for p in params], np.int64
        )
        self.numeric = np.flatnonzero(self.choices == 0)  #: the axes that are no such Choice
        self.cells = np.array([p.cells if p.cells is not None and p.cells <= FEW else 0 for p in params], np.int64)
        self.log_ints = np.array([isinstance(p, Int) and p.log and p.cells > 1 for p in params], bool)
        self.prior = np.array([np.nan if p.prior_at is None else p.prior_at for p in params], np.float64)
        self._log_axes = np.flatnonzero(self.log_ints).tolist()
        self._celled = np.flatnonzero((self.cells > 0) & ~self.log_ints)
        self.half_cells = np.where(self.cells > 0, 0.5 / np.maximum(self.cells, 1), 0.0)
        self.finite = bool(params) and all(p.cells is not None for p in params)
        self.conditional = any(p.when is not None for p in space.params.values())
        axes = [np.full(count, j) for j, count in enumerate(self.choices.tolist())]
        self.value_axes = np.concatenate([np.empty(0, np.int64), *axes])  #: the axis of each value of each choice
        self._values = (np.concatenate([[], *map(np.arange, self.choices)]) + 0.5) / self.choices[self.value_axes]
        self._read = [reader_of(param) for param in params]
        self._place = {name: j for j, name in enumerate(space.axes)}
        self._conditions = [
            (self._place[name], tests) for name in space.order if name in self._place and (tests := self._tests(name))
        ]

    def rows(self, points: Sequence[Mapping[str, Any]]) -> tuple[Array, Any]:
        """(rows, which of them are points of the space). What is foreign or missing is nan and never an error."""
        rows = np.empty((len(points), self.dims))
        for j, values in enumerate(self._columns(points)):
            rows[:, j] = self._read[j](values)
        active = self.active(rows)
        good = ~(np.isnan(rows) & active).any(axis=1)
        rows[~active] = np.nan
        return rows, good

    def _columns(self, points: Sequence[Mapping[str, Any]]) -> Iterable[Sequence[Any]]:
        """Each axis's values, ABSENT where there is none."""
        if self.dims > 1 and not self.conditional:
            try:
                return list(zip(*map(itemgetter(*self.space.axes), points), strict=True))
            except KeyError:
                pass  # a point from elsewhere
        return ([point.get(name, ABSENT) for point in points] for name in self.space.axes)

    def active(self, rows: Array) -> Any:
        """Which coordinates belong to the point, by the conditions of the space; bool, shaped like ``rows``."""
        active = np.ones(rows.shape, bool)
        for j, conditions in self._conditions:
            for parent, allowed in conditions:
                active[:, j] &= active[:, parent] & np.isin(self.numbers(rows[:, parent], parent), allowed)
        return active

    def _tests(self, name: str) -> list[tuple[int, Any]]:
        """(parent's axis, its cells that make ``name`` active). A constant has the one value that is waited for, so
        whoever waits for it waits for what it waits for."""
        tests = []
        for parent, values in (self.space.params[name].when or {}).items():
            above = self.space.params[parent]
            if isinstance(above, Constant):
                tests += self._tests(parent)
            else:
                units = np.array([above.unit(value) for value in values])
                tests.append((self._place[parent], self.numbers(units, self._place[parent])))
        return tests

    def closed(self, rows: Array) -> Array:
        """Rows with every coordinate, made rows of points: to the centres of cells, inactive ones out."""
        rows = np.clip(rows, 0.0, BELOW_ONE)
        whole = (np.floor(rows[:, self._celled] * self.cells[self._celled]) + 0.5) / self.cells[self._celled]
        for j in self._log_axes:
            rows[:, j] = log_centre(self.params[j], self._log_values(rows[:, j], self.params[j]))
        rows[:, self._celled] = whole
        if self.conditional:
            rows[~self.active(rows)] = np.nan
        return rows

    def numbers(self, column: Array, j: int) -> Any:
        """The cells' numbers in a column, -1 for nan; whole, so that last bits do not count."""
        if self.log_ints[j]:
            k = self._log_values(column, self.params[j]) - self.params[j].low
        else:
            k = np.floor(column * (self.cells[j] or 2**53))
        return np.where(np.isnan(column), -1.0, k).astype(np.int64)

    @staticmethod
    def _log_values(column: Array, param: Any) -> Array:
        values = np.floor((param.low - 0.5) * np.exp(column * param._width) + 0.5)
        result: Array = np.clip(values, param.low, param.high)
        return result

    def indicators(self, rows: Array) -> Any:
        """Whether rows have each value of each unordered choice, all beside one another; bool."""
        return rows[:, self.value_axes] == self._values

    def keys(self, rows: Array) -> list[bytes]:
        """What tells rows of a finite space apart."""
        if not len(rows):
            return []
        table = np.stack([self.numbers(rows[:, j], j) for j in range(self.dims)], axis=1)
        return [line.tobytes() for line in table]

    def point(self, row: Array) -> dict[str, Value]:
        """The point at a row."""
        return self.space.draw(dict(zip(self.space.axes, row.tolist(), strict=True)).__getitem__)

    # -- finite spaces ---------------------------------------------------------------------------------------------

    @property
    def tree(self) -> Tree | None:
        """All points by number; None for a continuum, or conditions too entangled to count."""
        return _tree(self.space) if self.finite else None

    @property
    def listed(self) -> Array | None:
        """Every row of a space with few points, else None."""
        tree = self.tree
        if tree is None or tree.size > _LISTED:
            return None
        return self.rows([tree.point(k) for k in range(tree.size)])[0]


@lru_cache(maxsize=16)
def cube_of(space: Space) -> Cube:
    """The cube of a space."""
    return Cube(space)


@lru_cache(maxsize=16)
def _tree(space: Space) -> Tree | None:
    try:
        return Tree(space, {name: all_levels(param) for name, param in space.params.items()})
    except SpaceError:
        return None
