"""Grid search: every combination of levels once, in a mixed order, then None.

The order is a permutation without a table (a Feistel network walked in circles until it lands inside the grid:
Black and Rogaway 2002), so that whatever part of the grid gets done is spread over all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from operator import index
from typing import Any, ClassVar

from dibs._canon import chance
from dibs.errors import UsageError
from dibs.space import Float, Int, Levels, Param, Space, Tree, Value, all_levels, these_levels

from ._history import Pair
from ._sampler import Goals, Sampler, register

__all__ = ["Grid"]

_ROUNDS = 4


@register
class Grid(Sampler):
    """All combinations of ``steps`` levels of each Float and Int, ends included, and all values of each Choice.

    Levels are evenly spaced, in the log if the parameter is log; a parameter with fewer values has them all, and an Int
    that others depend on also has the values they wait for. An inactive parameter is absent and multiplies nothing.
    ``ask`` returns None from ``size(space)`` on.
    """

    name: ClassVar[str] = "grid"
    version: ClassVar[int] = 1
    needs_history: ClassVar[bool] = False
    several: ClassVar[bool] = True
    steps: int

    def __init__(self, steps: int = 5, seed: int | None = None, goal: Goals | None = None) -> None:
        super().__init__(seed, goal)
        if type(steps) is not int or steps < 1:
            raise UsageError(f"steps={steps!r} must be an int above 0")
        self.steps = steps

    def ask(self, space: Space, n: int, history: Iterable[Pair] = ()) -> dict[str, Value] | None:
        tree, n = _tree(space, self.steps), index(n)
        if not 0 <= n < tree.size:
            return None
        return tree.point(_shuffled(n, tree.size, self.version, self.seed or 0))

    def size(self, space: Space) -> int:
        return _tree(space, self.steps).size

    def args(self) -> dict[str, Any]:
        return {"steps": self.steps}


@lru_cache(maxsize=16)
def _tree(space: Space, steps: int) -> Tree:
    waited_for: dict[str, set[Any]] = {name: set() for name in space.params}
    for param in space.params.values():
        for parent, values in (param.when or {}).items():
            waited_for[parent].update(values)
    return Tree(space, {name: _levels(param, steps, waited_for[name]) for name, param in space.params.items()})


def _levels(param: Param, steps: int, waited_for: set[Any]) -> Levels:
    if not isinstance(param, Float | Int) or (param.cells is not None and param.cells <= steps):
        return all_levels(param)
    return these_levels(sorted(waited_for.union(_spread(param, steps))))


def _spread(param: Float | Int, steps: int) -> list[Any]:
    """Levels from one end to the other; fewer than ``steps`` where they round to the same number."""
    if steps == 1:
        return [param.value(0.5)]
    if isinstance(param, Int) and param.log:
        ratio = param.high / param.low
        inner = [round(param.low * math.exp(math.log(ratio) * j / (steps - 1))) for j in range(1, steps - 1)]
        return [param.low, *inner, param.high]
    if param.cells is not None:
        # whole numbers, rounded half up: the same on every machine
        ks = [(2 * j * (param.cells - 1) + steps - 1) // (2 * (steps - 1)) for j in range(steps)]
        return [param.cell(k) for k in ks]
    return [param.value(j / (steps - 1)) for j in range(steps)]


def _shuffled(n: int, size: int, version: int, seed: int) -> int:
    """Where ``n`` stands in a permutation of range(size) that depends on nothing but the seed."""
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    while True:
        n = _feistel(n, half, version, seed)
        if n < size:
            return n


def _feistel(n: int, half: int, version: int, seed: int) -> int:
    mask = (1 << half) - 1
    left, right = n >> half, n & mask
    for turn in range(_ROUNDS):
        words = chance(-(-half // 32), version, seed, None, ["grid", turn, right])
        key = 0
        for word in words:
            key = key << 32 | int(word * 2**32)
        left, right = right, left ^ (key & mask)
    return left << half | right
