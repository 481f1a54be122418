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

__all__ = ["both", "crowding", "non_dominated", "ranks", "signs", "undominated"]

_FEW = 64  # of so many rows every pair is looked at
_PAIRS = 1 << 14


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
    mask[places[undominated(table[places] * wanted)]] = True
    return mask


def undominated(table: Array) -> Any:
    """Places of the rows of the front; all are finite, less is better. From three goals on by Kung, Luccio and
    Preparata 1975: a front as long as the table costs little more than a short one."""
    order = np.lexsort(table.T[::-1])  # nothing is dominated by what comes later
    rows = table[order]
    if table.shape[1] == 2 and len(rows):
        return order[_with_two(rows)]
    first = np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)][: len(rows)]  # of equal ones
    different = rows[first]
    front = np.zeros(len(different), bool)
    front[_among(different, np.arange(len(different)))] = True
    return order[front[np.cumsum(first) - 1]]


def both(front: Array, other: Array) -> Array:
    """The rows of the front of two fronts together; a row that both have is one of ``front``'s."""
    goals, rows = front.shape[1], np.concatenate([front, other])
    ours, theirs = np.arange(len(front)), np.arange(len(front), len(rows))
    theirs = _beside(rows, ours, theirs, goals)
    kept: Array = rows[np.r_[_beside(rows, theirs, ours, goals), theirs]]
    return kept


def _among(rows: Array, places: Any) -> Any:
    """Those of the places, of different rows in order, that are in the front of these."""
    if len(places) <= _FEW:
        below = (rows[places][:, None] <= rows[places][None]).all(axis=2)
        return places[below.sum(axis=0) == 1]  # each is below itself
    middle = len(places) // 2
    front = _among(rows, places[:middle])
    return np.concatenate([front, _beside(rows, front, _among(rows, places[middle:]), rows.shape[1] - 1)])


def _beside(rows: Array, front: Any, places: Any, columns: int) -> Any:
    """Those of ``places``, in order, that no row of ``front`` is below or equal to in each of the last ``columns``."""
    if not len(front) or not len(places):
        return places
    theirs, ours = rows[front, -columns:], rows[places, -columns:]
    if columns == 1:
        return places[ours[:, 0] < theirs.min()]
    if columns == 2:
        order = np.argsort(theirs[:, 0], kind="stable")
        least = np.r_[np.inf, np.minimum.accumulate(theirs[order, 1])]  # of those up to there in the first column
        return places[ours[:, 1] < least[np.searchsorted(theirs[order, 0], ours[:, 0], side="right")]]
    if len(front) * len(places) <= _PAIRS:
        return places[~(theirs[:, None] <= ours[None]).all(axis=2).any(axis=0)]
    middle = np.median(theirs[:, 0])
    middle = middle if (theirs[:, 0] > middle).any() else theirs[:, 0].min()
    near, low = theirs[:, 0] <= middle, ours[:, 0] <= middle
    if near.all():  # all in one place of that column
        return np.sort(
            np.r_[places[ours[:, 0] < middle], _beside(rows, front, places[ours[:, 0] >= middle], columns - 1)]
        )
    high = _beside(rows, front[near], places[~low], columns - 1)
    return np.sort(np.r_[_beside(rows, front[near], places[low], columns), _beside(rows, front[~near], high, columns)])


def _with_two(rows: Array) -> Any:
    """Of rows in order: those whose second number is below that of all with a smaller first, or equal to a front's row."""
    first, second = rows.T
    starts = np.flatnonzero(np.r_[True, first[1:] != first[:-1]])
    group = np.cumsum(np.r_[False, first[1:] != first[:-1]])
    least = second[starts]  # of each group, since rows are in order
    before = np.r_[np.inf, np.minimum.accumulate(least)[:-1]]
    return (second == least[group]) & (second < before[group])


def ranks(table: Array, over: Array) -> Any:
    """The front of each row, from 0 on: non-dominated sorting with constraint-domination (Deb et al. 2002).

    Behind all rows that keep their constraints come the others, by ``over``, the nearer the better. Memory and time
    grow with the square of the rows.
    """
    rank = np.zeros(len(table), np.int64)
    good = np.flatnonzero(over == 0.0)
    rows = table[good]
    better: Any = (rows[:, None] <= rows[None]).all(axis=2)
    better &= ~better.T  # equal rows do not dominate one another
    above, left, front = better.sum(axis=0), np.ones(len(rows), bool), 0
    while left.any():
        now = left & (above == 0)
        rank[good[now]] = front
        above, left, front = above - better[now].sum(axis=0), left & ~now, front + 1
    bad = np.flatnonzero(over != 0.0)
    rank[bad] = front + np.unique(over[bad], return_inverse=True)[1]
    return rank


def crowding(table: Array, rank: Any) -> Array:
    """The crowding distance of each row in its front (Deb et al. 2002): infinite at the ends of each goal's range."""
    scale = np.maximum(1.0, np.abs(table).max(axis=0, initial=0.0) / 1e100)
    distance = np.zeros(len(table))
    for values in (table / scale).T:
        order = np.lexsort((values, rank))
        sorted_values, fronts = values[order], np.asarray(rank)[order]
        first = np.r_[True, fronts[1:] != fronts[:-1]][: len(order)]
        last = np.r_[first[1:], True][: len(order)]
        starts = np.flatnonzero(first)
        width = (sorted_values[last] - sorted_values[first])[np.cumsum(first) - 1] if len(starts) else np.empty(0)
        gap = np.roll(sorted_values, -1) - np.roll(sorted_values, 1)
        gap = np.where(width > 0.0, gap / np.where(width > 0.0, width, 1.0), 0.0)
        distance[order] += np.where(first | last, np.where(width > 0.0, np.inf, 0.0), gap)
    return distance
