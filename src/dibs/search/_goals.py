"""Several goals as one, and constraints as an order: what the models for one score make of more.

ParEGO (Knowles 2006): each index weighs the goals in a way of its own, drawn by its seed from a small set of weights
spread evenly, and the model sees one score: the augmented Chebyshev distance from the best value of each goal. Weights
from a small set, since what a model fits is remembered for each of them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

import numpy as np

from ._fronts import undominated
from ._stream import Array, Stream

__all__ = ["drawn_weights", "merged", "violation"]

_WEIGHTS = 12  # about so many of them
_AUGMENTED = 0.05


def drawn_weights(goals: int, stream: Stream) -> Array:
    """Non-negative weights of sum 1, one of the few of :func:`_lattice`."""
    lattice = _lattice(goals)
    result: Array = lattice[int(stream.uniform(1)[0] * len(lattice))]
    return result


@lru_cache(maxsize=16)
def _lattice(goals: int) -> Array:
    """Every weight a multiple of 1/s, with s as large as about a dozen combinations allow, at least 2."""
    s = 2
    while math.comb(s + goals, goals - 1) <= _WEIGHTS:
        s += 1
    # s stars among goals - 1 bars
    bars = np.array(list(combinations(range(s + goals - 1), goals - 1)))
    edges = np.concatenate([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), s + goals - 1)], axis=1)
    result: Array = (np.diff(edges, axis=1) - 1) / s
    return result


def merged(table: Array, weights: Array) -> Array:
    """One score for each row of several, less is better; all are finite.

    Every goal runs from 0 at its best value to 1 at the worst one that a row of the front has.
    """
    if not len(table):
        return np.empty(0)
    table = table / np.maximum(1.0, np.abs(table).max(axis=0) / 1e100)
    low, worst = table.min(axis=0), table[undominated(table)].max(axis=0)
    for high in (np.median(table, axis=0), table.max(axis=0)):  # where the front has one value only
        worst = np.where(worst > low, worst, high)
    parts = (table - low) / np.where(worst > low, worst - low, 1.0)
    weighed = parts * weights
    score: Array = weighed.max(axis=1) + _AUGMENTED * weighed.sum(axis=1)
    return score


def violation(excess: Array) -> Array:
    """0.0 for rows that keep their constraints or report none, else how far they are from that."""
    return np.where(excess > 0.0, excess, 0.0)
