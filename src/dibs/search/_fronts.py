"""Which trials no other one beats, where there are several goals. Pure arithmetic on scores.

Row a dominates row b if a is nowhere worse and somewhere better; among equals none does. Every function here takes
scores that are turned so that less is better, but for ``non_dominated``, which is told the goals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dibs.errors import UsageError

from ._sampler import Goals
from ._stream import Array

__all__ = ["non_dominated", "signs"]


def signs(goals: Goals) -> Array:
    """1.0 for each goal of which less is better, -1.0 for each of which more is."""
    return np.array([-1.0 if goal == "max" else 1.0 for goal in (goals if isinstance(goals, tuple) else (goals,))])


def non_dominated(scores: Any, goals: Goals, excess: Any = None) -> Any:
    """Which rows belong to the front: a bool for each row of ``scores``, an array of shape (rows, goals).

    Guarantee: a row is True if and only if it is finite, keeps its constraints and no such row dominates it; equal
    rows are all True, and the order of the rows means nothing. ``excess``: that of a History, None = no constraints;
    a row keeps them unless it is above 0. With one goal ``scores`` may have one dimension, and all the best are True.

    Raises UsageError for shapes that do not fit. Time grows with rows times the length of the front, with two goals
    with the sorting of the rows.
    """
    wanted = signs(goals)
    table = np.asarray(scores, np.float64)
    if table.ndim == 1:
        table = table.reshape(-1, 1) if len(table) else np.empty((0, len(wanted)))
    if table.ndim != 2 or table.shape[1] != len(wanted):
        raise UsageError(f"scores of shape {table.shape} do not fit {len(wanted)} goals: (rows, goals) is needed")
    good = np.isfinite(table).all(axis=1)
    if excess is not None:
        over = np.asarray(excess, np.float64)
        if over.shape != good.shape:
            raise UsageError(f"excess of shape {over.shape} does not fit {len(table)} rows")
        good &= ~(over > 0.0)
    places = np.flatnonzero(good)
    mask = np.zeros(len(table), bool)
    mask[places[_undominated(table[places] * wanted)]] = True
    return mask


def _undominated(table: Array) -> Any:
    """Places of the rows of the front; all are finite, less is better."""
    order = np.lexsort(table.T[::-1])  # nothing is dominated by what comes later
    rows = table[order]
    if table.shape[1] == 2 and len(rows):
        return order[_with_two(rows)]
    front: list[int] = []
    left = np.arange(len(rows))
    while len(left):
        first = rows[left[0]]
        equal = (rows[left] == first).all(axis=1)
        front += left[equal].tolist()
        left = left[(rows[left] < first).any(axis=1)]
    return order[front]


def _with_two(rows: Array) -> Any:
    """Of rows in order: those whose second number is below that of all with a smaller first, or equal to a front's row."""
    first, second = rows.T
    starts = np.flatnonzero(np.r_[True, first[1:] != first[:-1]])
    group = np.cumsum(np.r_[False, first[1:] != first[:-1]])
    least = second[starts]  # of each group, since rows are in order
    before = np.r_[np.inf, np.minimum.accumulate(least)[:-1]]
    return (second == least[group]) & (second < before[group])
