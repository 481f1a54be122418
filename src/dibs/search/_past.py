"""What a model learns from: a history sorted into scored, lost and running rows, bounded in number.

Scores are turned so that less is better. Running points never vote; pruned and failed ones count only as worse than
every scored one. A point that is none of the space is not learnt from, and no reason to fail. Of several goals one
score is made, as the weights say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ._cube import Cube
from ._goals import merged, violation
from ._history import STATES, History
from ._stream import Array

__all__ = ["ForeignPoint", "Past", "best_first", "own", "past_of", "rows_at", "scored_of", "scores_of"]

_RUNNING, _DONE, _PRUNED, _FAILED = map(STATES.index, ("running", "done", "pruned", "failed"))
_NEWEST = 64
_FAR = 1e300  # what is further from feasible, or deeper in it, is not told apart


class ForeignPoint(Exception):
    """A point that would be learnt from is none of the space."""


class Past(NamedTuple):
    """Places in ``points``, each in the order of the indexes."""

    points: Sequence[Any]
    scored: Any  # done, with a score
    y: Array  # their scores, less is better
    lost: Any  # pruned and failed
    running: Any  # the newest ones; all of them in a finite space
    excess: Array | None  # of the scored ones, nan where none is reported; None = nobody reported any
    many: Array  # their scores goal by goal, less is better
    weights: Array  # of the goals; y is what they make of ``many``


def past_of(cube: Cube, history: History, signs: Array, weights: Array) -> Past:
    """The history as models see it; ``signs``: for each goal -1.0 where more is better, else 1.0."""
    state = history.state
    scored, many, excess = scored_of(history, signs)
    running = np.flatnonzero(state == _RUNNING)
    return Past(
        history._points,
        scored,
        scores_of(many, weights),
        np.flatnonzero((state == _PRUNED) | (state == _FAILED)),
        running if cube.finite else running[-_NEWEST:],
        excess,
        many,
        weights,
    )


def scored_of(history: History, signs: Array) -> tuple[Any, Array, Array | None]:
    """Places of the done trials with as many finite scores as there are goals, these turned, and their excess if any
    reported one."""
    scores, goals = history.scores, len(signs)
    known = np.isfinite(scores)
    full = known[:, :goals].all(axis=1) & (known.sum(axis=1) == goals)
    places = np.flatnonzero((history.state == _DONE) & full)
    excess = None
    if history._excess is not None and not np.isnan(history._excess[places]).all():
        excess = np.clip(history._excess[places], -_FAR, _FAR)
    many = scores[places, :goals] * signs if scores.shape[1] >= goals else np.empty((0, goals))
    return places, many, excess


def scores_of(many: Array, weights: Array) -> Array:
    """One score for each row, less is better."""
    return many[:, 0] if len(weights) == 1 else merged(many, weights)


def best_first(past: Past) -> Any:
    """Places in ``past.y``: those that keep their constraints by their scores, then the others by how near they are."""
    if past.excess is None:
        return np.argsort(past.y, kind="stable")
    return np.lexsort((past.y, violation(past.excess)))


def rows_at(cube: Cube, past: Past, places: Any) -> Array:
    """The rows at ``places``; ForeignPoint if one of them is no point of the space."""
    rows, good = cube.rows([past.points[i] for i in places.tolist()])
    if not good.all():
        raise ForeignPoint
    return rows


def own(cube: Cube, past: Past) -> Past:
    """The past without points that are none of the space: a sweep over all of it, rarely needed."""
    good = cube.rows(past.points)[1]
    keep = good[past.scored]
    many = past.many[keep]
    return past._replace(
        scored=past.scored[keep],
        y=scores_of(many, past.weights),
        lost=past.lost[good[past.lost]],
        running=past.running[good[past.running]],
        excess=None if past.excess is None or np.isnan(past.excess[keep]).all() else past.excess[keep],
        many=many,
    )
