"""CMA-ES for any number of workers: generations are ranges of indexes, and nobody waits for one to be full.

Hansen and Ostermeier 2001; with unordered choices CatCMA (Hamano et al. 2024). Both are those of the library ``cmaes``,
told again at every ask what has come out: its state is a function of the history, and the chance that makes a point
of it is ours, keyed by seed and index.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any, ClassVar

import numpy as np

from dibs.errors import UsageError
from dibs.space import Space, Value

from ._checks import a_count
from ._cube import Cube, cube_of
from ._evolution import Evolution, state_after
from ._fresh import Fresh
from ._fronts import signs
from ._generations import told
from ._history import History, Pair
from ._past import past_of
from ._sampler import Goal, Sampler, register
from ._stream import Array, Stream

__all__ = ["CMAES"]

_TRIES = 100  # draws, the first of which that lies in the space is taken


@register
class CMAES(Sampler):
    """For numbers, 5 to 50 or so, that depend on one another, and some hundreds of trials or more.

    Guarantee: the point of index n is a function of (seed, n) and of the settled trials of earlier generations, index
    n belonging to generation n // ``population``. A generation counts from when all of its trials are settled, running
    ones are not waited for; failed and pruned trials rank last, those that break constraints by how far.

    ``population``: trials to a generation, 4 + 3 ln d if None. Choices without an order are drawn from probabilities that
    are learnt. UsageError for a space with conditions, without the library ``cmaes``, and for a population below 4.
    """

    name: ClassVar[str] = "cmaes"
    version: ClassVar[int] = 1

    def __init__(self, population: int | None = None, seed: int | None = None, goal: Goal | None = None) -> None:
        super().__init__(seed, goal)
        self.population = None if population is None else a_count("population", population, 4)

    def args(self) -> dict[str, Any]:
        return {"population": self.population}

    def size(self, space: Space) -> None:
        """All indexes have a point. Raises UsageError where none has: conditions, or no library."""
        if cube_of(space).conditional:
            raise UsageError("sampler 'cmaes' searches no space with conditions (when=...): take tpe, nsga2 or auto")
        try:
            import cmaes  # noqa: F401 because only whether it is there is asked
        except ImportError:
            raise UsageError("sampler 'cmaes' needs the library cmaes: pip install 'dibs[cmaes]'") from None

    def ask(self, space: Space, n: int, history: Iterable[Pair] = ()) -> dict[str, Value]:
        turned = signs(self._needed_goal())
        self.size(space)
        n, seed, cube = index(n), self.seed or 0, cube_of(space)
        if not cube.dims:
            return space.draw(lambda _: 0.5)
        stream = Stream(self.version, seed, n, self.name)
        with np.errstate(all="ignore"):  # scores and points may be anything
            history = History.coerce(history)
            state = self._state(cube, history, turned, n)
            rows = cube.closed(_drawn(cube, state, stream))
            past = past_of(cube, history, turned, np.ones(1))
            row = Fresh(cube, past).first(rows, stream)
        return cube.point(row)

    def _state(self, cube: Cube, history: History, turned: Array, n: int) -> Evolution:
        """What index n is drawn from."""
        size = self.population or 4 + int(3 * np.log(cube.dims))
        key = (self.version, self.seed or 0, self.name)
        return state_after(cube, size, key, told(cube, history, turned, size, n // size))


def _drawn(cube: Cube, state: Evolution, stream: Stream) -> Array:
    """Rows, those that lie in the space before those that had to be moved into it."""
    numbers = state.mean + state.sigma * (stream.normal(_TRIES, len(state.mean)) @ state.root)
    inside = ((numbers >= 0.0) & (numbers < 1.0)).all(axis=1)
    numbers = numbers[np.argsort(~inside, kind="stable")]
    rows = np.empty((_TRIES, cube.dims))
    rows[:, cube.numeric] = numbers[:, : len(cube.numeric)]
    u = stream.uniform(_TRIES, cube.dims)
    for j, chances in zip(np.flatnonzero(cube.choices).tolist(), state.chances, strict=True):
        below = np.cumsum(chances)[:-1] <= u[:, j, None] * chances.sum()
        rows[:, j] = (below.sum(axis=1) + 0.5) / len(chances)
    return rows
