"""What all samplers that learn have in common: Sobol points first, then a model, and no repeats in a finite space.

The law: the point is a function of (space, n, history) alone. Chance comes from streams keyed by seed and index, a
model only chooses among finitely many candidates they gave, and no arithmetic reaches a point but through that choice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from operator import index
from typing import ClassVar

import numpy as np

from dibs.space import Space, Value

from ._cube import Cube, cube_of
from ._fresh import Fresh
from ._fronts import signs
from ._goals import drawn_weights
from ._history import History, Pair
from ._normal import truncated
from ._past import ForeignPoint, Past, own, past_of
from ._sampler import Sampler
from ._sobol import Sobol
from ._stream import Array, Stream

__all__ = ["STARTUP", "Model", "believed"]

STARTUP = 10  #: scored trials before a model is asked
_BELIEF = 0.1  # deviation of a prior, in the unit interval


class Model(Sampler):
    """A sampler that learns. Subclasses say how: ``_propose``. Asked without a goal it raises UsageError.

    With several goals ``past.y`` is one score, of weights that belong to the index.
    """

    several: ClassVar[bool] = True

    def ask(self, space: Space, n: int, history: Iterable[Pair] = ()) -> dict[str, Value]:
        turned = signs(self._needed_goal())
        n, seed = index(n), self.seed or 0
        cube = cube_of(space)
        if not cube.dims:
            return space.draw(lambda _: 0.5)
        weights = np.ones(1)
        if len(turned) > 1:
            weights = drawn_weights(len(turned), Stream(self.version, seed, n, f"{self.name} goals"))
        with np.errstate(all="ignore"):  # scores and points may be anything
            past = past_of(cube, History.coerce(history), turned, weights)
            row = self._row(cube, past, n, Stream(self.version, seed, n, self.name))
        return cube.point(row)

    def _row(self, cube: Cube, past: Past, n: int, stream: Stream) -> Array:
        fresh, row = Fresh(cube, past), None
        if len(past.y) >= self._startup():
            try:
                row = self._propose(cube, past, stream, fresh)
            except ForeignPoint:
                past = own(cube, past)
                row = self._propose(cube, past, stream, fresh) if len(past.y) >= self._startup() else None
        return fresh.first(self._start(cube, n), stream) if row is None else row

    @abstractmethod
    def _propose(self, cube: Cube, past: Past, stream: Stream, fresh: Fresh) -> Array | None:
        """The best row among candidates that ``fresh`` lets through, None if it lets none through."""

    def _startup(self) -> int:
        """How many trials are scored before ``_propose`` is asked."""
        return STARTUP

    def _start(self, cube: Cube, n: int) -> Array:
        """Sobol point n, half of the points drawn towards what is believed; index 0 is the belief itself."""
        row = np.array([Sobol(seed=self.seed).unit(cube.space, n)])
        row = believed(cube, row)
        if n == 0:
            row = np.where(np.isnan(cube.prior), row, cube.prior)
        return cube.closed(row)


def believed(cube: Cube, rows: Array) -> Array:
    """Uniform rows with one half of each believed coordinate moved near the belief, the other spread over all."""
    rows = np.array(rows)
    for j in np.flatnonzero(~np.isnan(cube.prior)).tolist():
        u, at = rows[:, j], cube.prior[j]
        near = np.full(u.shape, at)
        if not cube.choices[j]:
            near = truncated(np.minimum(2.0 * u, 1.0), near, np.full(u.shape, _BELIEF))
        rows[:, j] = np.where(u < 0.5, near, 2.0 * u - 1.0)
    return rows
