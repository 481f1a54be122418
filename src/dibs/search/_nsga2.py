"""NSGA-II for any number of workers: parents are the best of all that is settled, whoever has run it.

Deb, Pratap, Agarwal and Meyarivan 2002: non-dominated sorting, crowding distance, constraint-domination, binary
tournaments, simulated binary crossover and polynomial mutation. There are no generations to wait for: index n is a
child of the population there is when n is asked for, and what is running takes no part.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ._checks import a_count
from ._columns import BELOW_ONE
from ._cube import Cube
from ._fresh import Fresh, copies
from ._model import Model
from ._past import Past, rows_at
from ._population import population_of
from ._sampler import Goals, register
from ._stream import Array, Stream

__all__ = ["NSGA2"]

_CROSSED = 0.9
_SPREAD_CROSSED, _SPREAD_MUTATED = 15.0, 20.0
_NEWEST = 64  # of them, and of what is running, no child is a copy
_TRIES = 16  # children, of which the first that is news is taken


@register
class NSGA2(Model):
    """For two goals or more, with or without constraints, and trials that are cheap; for any space. One goal will do.

    Guarantee: the parents are a function of the settled trials alone. ``population``: how many of the best, the most
    spread among equals, may be parents; index n is a Sobol point until so many are scored. A parameter that is
    inactive in one parent is the other's, and drawn anew if it is in neither. UsageError for a population below 2.
    """

    name: ClassVar[str] = "nsga2"
    version: ClassVar[int] = 1

    def __init__(self, population: int = 24, seed: int | None = None, goal: Goals | None = None) -> None:
        super().__init__(seed, goal)
        self.population = a_count("population", population, 2)

    def args(self) -> dict[str, Any]:
        return {"population": self.population}

    def _startup(self) -> int:
        return self.population

    def _propose(self, cube: Cube, past: Past, stream: Stream, fresh: Fresh) -> Array | None:
        best = population_of(past, self.population)
        rows = rows_at(cube, past, past.scored[best])
        # the better of two at random, twice; the population is sorted
        parents = np.floor(stream.uniform(2, _TRIES, 2) * len(rows)).astype(np.int64).min(axis=2)
        children = _crossed(cube, rows[parents[0]], rows[parents[1]], stream)
        children = cube.closed(_mutated(cube, children, stream))
        if cube.choices.any() or cube.cells.any():
            known = rows_at(cube, past, np.concatenate([past.scored[best], past.scored[-_NEWEST:], past.running]))
            children = children[~copies(children, known)]
        children = fresh.of(children)
        return children[0] if len(children) else None


def _crossed(cube: Cube, a: Array, b: Array, stream: Stream) -> Array:
    """A child of each pair: numbers by simulated binary crossover (Deb and Agrawal 1995), choices from either parent."""
    u, swaps, other = stream.uniform(3, *a.shape)
    crosses = stream.uniform(len(a), 1) < _CROSSED
    a, b = np.where(np.isnan(a), b, a), np.where(np.isnan(b), a, b)
    a, b = (np.where(np.isnan(row), other, row) for row in (a, b))
    spread = np.where(u < 0.5, 2.0 * u, 0.5 / np.maximum(1.0 - u, 1e-12)) ** (1.0 / (_SPREAD_CROSSED + 1.0))
    first = 0.5 * ((1.0 + spread) * a + (1.0 - spread) * b)
    mixed = np.where(swaps < 0.5, np.where(cube.choices > 0, a, first), b)
    return np.where(crosses, np.clip(mixed, 0.0, 1.0), a)


def _mutated(cube: Cube, rows: Array, stream: Stream) -> Array:
    """Each coordinate with chance 1/d and at least one: numbers by a polynomial step, at least to the next cell;
    choices to any other value."""
    draw, u = stream.uniform(2, *rows.shape)
    moves = draw < 1.0 / cube.dims
    moves[np.arange(len(rows)), np.argmin(draw, axis=1)] = True
    power = 1.0 / (_SPREAD_MUTATED + 1.0)
    step = np.where(u < 0.5, (2.0 * u) ** power - 1.0, 1.0 - (2.0 - 2.0 * u) ** power)
    step = np.where(u < 0.5, np.minimum(step, -2.0 * cube.half_cells), np.maximum(step, 2.0 * cube.half_cells))
    there = rows + step
    # beyond an end it is at the end; what is there already, or has cells, goes the other way
    turns = (cube.cells > 0) | (rows <= 0.0) | (rows >= BELOW_ONE)
    there = np.clip(np.where(((there < 0.0) | (there >= 1.0)) & turns, rows - step, there), 0.0, BELOW_ONE)
    count = np.maximum(cube.choices, 1)
    other = (rows + (1.0 + np.floor(u * (count - 1.0))) / count) % 1.0
    return np.where(moves, np.where(cube.choices > 0, other, there), rows)
