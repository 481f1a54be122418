"""A history as generations of an evolution strategy: ranges of indexes, full ones only, each sorted best first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._cube import Cube
from ._goals import violation
from ._history import STATES, History
from ._past import scored_of
from ._stream import Array

__all__ = ["Told", "told"]

_SETTLED = [STATES.index(state) for state in ("done", "pruned", "failed")]


class Told(NamedTuple):
    """Generations in order: their numbers, and of each its indexes and rows, best first."""

    generations: Any  # shape (generations,)
    ns: Any  # (generations, size)
    rows: Array  # (generations, size, dims)


def told(cube: Cube, history: History, turned: Array, size: int, before: int) -> Told:
    """The generations below ``before`` of which every trial is settled.

    Left out are those that hold a point from elsewhere, and those in which at most one trial has a score: nothing is
    better than anything there.
    """
    settled = np.flatnonzero(np.isin(history.state, _SETTLED) & (history.n >= 0) & (history.n < before * size))
    ns, first = np.unique(history.n[settled], return_index=True)
    numbers, counts = np.unique(ns // size, return_counts=True)
    full = np.isin(ns // size, numbers[counts == size])
    places, ns = settled[first][full].reshape(-1, size), ns[full].reshape(-1, size)
    points = history._points
    rows, good = cube.rows([points[i] for i in places.ravel().tolist()])
    scored, scores, excess = scored_of(history, turned)
    last = len(history)
    rank = np.full(last, last)
    over = np.zeros(len(scored)) if excess is None else violation(excess)
    rank[scored[np.lexsort((scores[:, 0], over))]] = np.arange(len(scored))
    ranks = rank[places]
    kept = good.reshape(-1, size).all(axis=1) & ((ranks < last).sum(axis=1) > 1)
    order = np.argsort(ranks[kept], axis=1, kind="stable")
    by_rank = np.take_along_axis(rows.reshape(-1, size, cube.dims)[kept], order[:, :, None], 1)
    return Told(ns[kept, 0] // size, np.take_along_axis(ns[kept], order, 1), by_rank)
