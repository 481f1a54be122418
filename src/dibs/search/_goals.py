"""Several goals as one, and constraints as an order: what the models for one score make of more.

ParEGO (Knowles 2006): each index weighs the goals in a way of its own, drawn by its seed, and the model sees one score:
the augmented Chebyshev distance from the best value of each goal. Knowles draws from a small set of weights. Here that
set is only what lengths are fitted for, since a fit is remembered; a front of as many points as weights is a poor one.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

import numpy as np

from ._fronts import both, undominated
from ._stream import Array, Stream

__all__ = ["drawn_weights", "merged", "near_weights", "violation"]

_WEIGHTS = 12  # about so many of them
_AUGMENTED = 0.05
_BLOCK = 256
_ALONE = 0.2  # else the ends of the front are found late, and with them what a goal's range is


def drawn_weights(goals: int, stream: Stream) -> Array:
    """Non-negative weights of sum 1: one goal alone in one of five draws, else evenly distributed over all there are."""
    choice, *rest = stream.uniform(goals + 1).tolist()
    if choice < _ALONE:
        alone: Array = np.eye(goals)[int(choice / _ALONE * goals)]
        return alone
    parts = -np.log(1.0 - np.array(rest))
    result: Array = parts / max(float(parts.sum()), 1e-300)
    return result


def near_weights(weights: Array) -> Array:
    """The nearest of about a dozen; one goal's is what it is."""
    if len(weights) == 1:
        return weights
    lattice = _lattice(len(weights))
    distance = np.round(np.square(lattice - weights).sum(axis=1), 9)
    result: Array = lattice[int(np.argmin(distance))]
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
    low, worst = table.min(axis=0), _front(table).max(axis=0)
    for high in (np.median(table, axis=0), table.max(axis=0)):  # where the front has one value only
        worst = np.where(worst > low, worst, high)
    parts = (table - low) / np.where(worst > low, worst - low, 1.0)
    weighed = parts * weights
    score: Array = weighed.max(axis=1) + _AUGMENTED * weighed.sum(axis=1)
    return score


def _front(table: Array) -> Array:
    """The rows of the front, of equal ones one at least: looked for at every ask among what is new only.

    What is new is the last one or two blocks, so that a trial may be settled late and move nothing that is remembered.
    """
    settled = max(0, len(table) // _BLOCK - 1) * _BLOCK if table.shape[1] > 2 else 0
    new = table[settled:]
    new = new[undominated(new)]
    return both(_remembered(table[:settled].tobytes(), table.shape[1]), new) if settled else new


@lru_cache(maxsize=8)
def _remembered(table: bytes, goals: int) -> Array:
    rows = np.frombuffer(table).reshape(-1, goals)
    front: Array = rows[undominated(rows)]
    return front


def violation(excess: Array) -> Array:
    """0.0 for rows that keep their constraints or report none, else how far they are from that."""
    return np.where(excess > 0.0, excess, 0.0)
