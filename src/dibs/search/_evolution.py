"""The state of an evolution strategy after some generations: replayed from the history, remembered on the way.

The library ``cmaes`` is told every generation; what it would do by chance is done by whoever asks. What came out of
a prefix of generations is a function of that prefix, hence remembered by its digest: most asks replay one generation
or none. Of steps and ordered choices it is told the middle of the cell; telling it any place in the cell, so that it
never shrinks below one, was tried and found less in 300 trials.
"""

from __future__ import annotations

import copy
import hashlib
from typing import Any, NamedTuple

import numpy as np

from ._cube import Cube
from ._generations import Told
from ._stream import Array, Stream

__all__ = ["Evolution", "state_after"]

_SIGMA = 0.25
_SMALLEST = 1e-8  # of the range: what has shrunk to this starts anew elsewhere
_REMEMBERED = 512

_known: dict[bytes, Any] = {}


class Evolution(NamedTuple):
    """What points are drawn from."""

    mean: Array
    sigma: float
    root: Array  #: symmetric, of the covariance: the same whatever eigenvectors a machine finds
    chances: list[Array]  #: of the values of each unordered choice


def state_after(cube: Cube, size: int, key: tuple[Any, ...], told: Told) -> Evolution:
    """The state after what is told, generations of ``size`` trials; ``key``: its chance."""
    space = cube.choices.tobytes() + cube.half_cells.tobytes() + cube.prior.tobytes()
    prefix = hashlib.sha256(repr((key, size)).encode() + space)
    digests = [prefix.digest()]
    for ns, rows in zip(told.ns, told.rows, strict=True):
        prefix.update(ns)
        prefix.update(rows)
        digests.append(prefix.digest())
    done, strategy = len(told.generations), _known.get(digests[-1])
    while done and strategy is None:
        done -= 1
        strategy = _known.get(digests[done])
    strategy = _started(cube, size, key, None) if strategy is None else strategy
    for k in range(done, len(told.generations)):
        strategy = copy.deepcopy(strategy)  # what is remembered does not change
        strategy.tell(_solutions(cube, strategy, key, told.ns[k], told.rows[k]))
        if _over(strategy):
            strategy = _started(cube, size, key, int(told.generations[k]))
        for old in list(_known)[: max(0, len(_known) - _REMEMBERED + 1)]:  # another thread may be about the same
            _known.pop(old, None)
        _known[digests[k + 1]] = strategy
    return _seen(cube, strategy)


def _started(cube: Cube, size: int, key: tuple[Any, ...], generation: int | None) -> Any:
    """A new strategy: in the middle, or where a good value is believed to be; a later one anywhere."""
    import cmaes

    dims = _dims(cube)
    if generation is None:
        mean = np.full(dims, 0.5)
        prior = cube.prior[cube.numeric]
        mean[: len(prior)] = np.where(np.isnan(prior), 0.5, prior)
    else:
        mean = Stream(*key, generation, "again").uniform(dims)
    choices = cube.choices[cube.choices > 0]
    if len(choices):
        return cmaes.CatCMA(mean=mean, sigma=_SIGMA, cat_num=choices, population_size=size, seed=0)
    return cmaes.CMA(mean=mean, sigma=_SIGMA, population_size=size, seed=0)


def _dims(cube: Cube) -> int:
    """Numbers of a row; with choices at least two, as the library wants it: what is too much means nothing."""
    return max(len(cube.numeric), 2 if (cube.choices > 0).any() else 1)


def _solutions(cube: Cube, strategy: Any, key: tuple[Any, ...], ns: Any, rows: Array) -> list[Any]:
    """A generation as the library takes it; of its values only the order counts."""
    dims = _dims(cube)
    numbers = np.full((len(rows), dims), 0.5)
    numbers[:, : len(cube.numeric)] = rows[:, cube.numeric]
    idle = np.ones(dims, bool)  # axes on which nothing can be chosen: they are told what changes nothing
    idle[: len(cube.numeric)] = cube.cells[cube.numeric] == 1
    if idle.any():
        steps = np.stack([Stream(*key, n, "idle").normal(dims) for n in ns.tolist()])
        numbers[:, idle] = (strategy._mean + strategy._sigma * steps)[:, idle]
    axes = np.flatnonzero(cube.choices).tolist()
    if not axes:
        return [(x, float(k)) for k, x in enumerate(numbers)]
    hot = np.zeros((len(rows), len(axes), int(cube.choices.max())), bool)
    for a, j in enumerate(axes):
        hot[np.arange(len(rows)), a, cube.numbers(rows[:, j], j)] = True
    return [((x, c), float(k)) for k, (x, c) in enumerate(zip(numbers, hot, strict=True))]


def _over(strategy: Any) -> bool:
    """Whether there is nothing more to be found where it is, or nothing to compute with."""
    numbers = strategy._mean, strategy._C, strategy._sigma, getattr(strategy, "_q", 0.0)
    if not all(np.isfinite(each).all() for each in numbers):
        return True
    widths = strategy._sigma * np.sqrt(np.maximum(np.diag(strategy._C), 0.0))
    return bool(widths.max() < _SMALLEST or widths.max() > 1e4 or strategy.should_stop())


def _seen(cube: Cube, strategy: Any) -> Evolution:
    values, vectors = np.linalg.eigh(0.5 * (strategy._C + strategy._C.T))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    choices = cube.choices[cube.choices > 0].tolist()
    return Evolution(
        strategy._mean, float(strategy._sigma), root, [strategy._q[a, :count] for a, count in enumerate(choices)]
    )
