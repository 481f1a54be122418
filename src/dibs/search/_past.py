"""What a model learns from: a history sorted into scored, lost and running rows, bounded in number.

Scores are turned so that less is better. Running points never vote; pruned and failed ones count only as worse than
every scored one. A point that is none of the space is not learnt from, and no reason to fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ._cube import Cube
from ._history import STATES, History
from ._stream import Array

__all__ = ["ForeignPoint", "Past", "own", "past_of", "rows_at"]

_RUNNING, _DONE, _PRUNED, _FAILED = map(STATES.index, ("running", "done", "pruned", "failed"))
_NEWEST = 64


class ForeignPoint(Exception):
    """A point that would be learnt from is none of the space."""


class Past(NamedTuple):
    """Places in ``points``, each in the order of the indexes."""

    points: Sequence[Any]
    scored: Any  # done, with a score
    y: Array  # their scores, less is better
    lost: Any  # pruned and failed
    running: Any  # the newest ones; all of them in a finite space


def past_of(cube: Cube, history: History, sign: float) -> Past:
    """The history as models see it; ``sign`` is -1.0 where more is better."""
    state, score = history.state, history.score
    scored = np.flatnonzero((state == _DONE) & np.isfinite(score))
    running = np.flatnonzero(state == _RUNNING)
    return Past(
        history._points,
        scored,
        score[scored] * sign,
        np.flatnonzero((state == _PRUNED) | (state == _FAILED)),
        running if cube.finite else running[-_NEWEST:],
    )


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
    return past._replace(
        scored=past.scored[keep],
        y=past.y[keep],
        lost=past.lost[good[past.lost]],
        running=past.running[good[past.running]],
    )
