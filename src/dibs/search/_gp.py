"""A bounded Gaussian process: propose where the score is likely to improve on the best that is believed in.

At most 120 scored trials speak and at most 96 others repel, so an ask costs the same after 100 trials and 100,000.
Running trials shrink the variance around them without a vote on the mean, as if each had come out as expected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ._cube import Cube
from ._feasible import log_feasibility
from ._fresh import Fresh, copies
from ._gaussian import Features, Posterior, fitted, scaled, standardised
from ._goals import near_weights, violation
from ._model import Model, believed
from ._normal import log_improvement
from ._past import Past, best_first, rows_at, scores_of
from ._sampler import register
from ._stream import Array, Stream

__all__ = ["GP", "propose_by_improvement"]

_BEST, _REST = 60, 60
_LOST, _RUNNING = 32, 64
_LADDER = 1.25
_FIRST_RUNG = 10
_UNIFORM, _NEAR, _ROUND = 192, 192, 96
_TOPS = (6, 5, 4, 3)
_BELIEF = 10.0
_CLOSE = 0.01  # of the range: nobody is sent where somebody is already at work,
_TAKEN = 1e6  # unless there is nothing else
_AT_ONCE = 64


@register
class GP(Model):
    """For up to about 20 dimensions, numbers and a few choices. Conditions are taken as coordinates that do not matter.

    Several goals: ParEGO's weights (:class:`Model`). Constraints: the improvement on what keeps them is multiplied by the
    probability of keeping them (Gardner et al. 2014); as long as nothing keeps them that probability alone is looked
    at (Gelbart et al. 2014).
    Sobol points until 10 trials are scored. ``goal`` and ``seed`` are the study's if left out.
    """

    name: ClassVar[str] = "gp"
    version: ClassVar[int] = 2

    def _propose(self, cube: Cube, past: Past, stream: Stream, fresh: Fresh) -> Array | None:
        return propose_by_improvement(cube, past, stream, fresh)


def propose_by_improvement(cube: Cube, past: Past, stream: Stream, fresh: Fresh) -> Array | None:
    """The candidate of the largest expected improvement."""
    features = Features(cube)
    fit = _fit(cube, past, features)
    chosen = _bounded(best_first(past))
    flying = past.running[-_RUNNING:]
    others = np.concatenate([past.lost[-_LOST:], flying])
    rows = rows_at(cube, past, np.concatenate([past.scored[chosen], others]))
    known, others = rows[: len(chosen)], rows[len(chosen) :]
    posterior = Posterior(features, fit, known, standardised(scaled(past.y)[chosen]), others)
    means = posterior.of(rows)[0]
    keeps, over, best = None, np.zeros(len(known)), float(means.min())
    if past.excess is not None:
        excess = past.excess[chosen]
        keeps = log_feasibility(features, excess, known, others, _early_excess(cube, past, past.excess))
        over = violation(excess)
        best = float(means[: len(known)][over == 0.0].min(initial=np.inf))
    trust = _BELIEF / len(past.y)
    running = features.of(others[len(others) - len(flying) :])

    def gain(candidates: Array) -> Array:
        mean, deviation = posterior.of(candidates)
        value = np.zeros(len(candidates))
        if best < np.inf:
            value += np.log(deviation) + log_improvement((best - mean) / deviation)
        if keeps is not None:
            value += keeps(candidates)
        value -= _TAKEN * _taken(features.of(candidates), running)
        return np.round(value + trust * _log_belief(cube, candidates), 9)

    candidates = fresh.all()
    if candidates is not None:
        return candidates[np.argmax(gain(candidates))] if len(candidates) else None
    ranked = np.round(means, 9)
    near = np.lexsort((ranked[: len(known)], over))[:8]
    hoped = len(known) + np.argsort(ranked[len(known) :], kind="stable")[:4]
    uniform = stream.uniform(_UNIFORM, cube.dims)
    uniform[::2] = believed(cube, uniform[::2])
    moved = _moved(cube, rows[np.resize(np.concatenate([near, hoped]), _NEAR)], stream, 0.0)
    candidates = fresh.of(cube.closed(np.concatenate([uniform, moved])))
    return _first_new(_climbed(cube, candidates, gain, stream, fresh), rows)


def _climbed(cube: Cube, candidates: Array, gain: Callable[[Array], Array], stream: Stream, fresh: Fresh) -> Array:
    """The candidates, and those found around the best of them in a few rounds, best first."""
    if not len(candidates):
        return candidates
    gains = gain(candidates)
    for turn, top in enumerate(_TOPS):
        tops = candidates[np.argsort(-gains, kind="stable")[:top]]
        closer = _moved(cube, tops[np.resize(np.arange(len(tops)), _ROUND)], stream, 0.5 * (turn + 1))
        closer = fresh.of(cube.closed(closer))
        if len(closer):
            candidates = np.concatenate([candidates, closer])
            gains = np.concatenate([gains, gain(closer)])
    return candidates[np.argsort(-gains, kind="stable")]


def _first_new(candidates: Array, known: Array) -> Array | None:
    """The first that is none of ``known``: a step within a cell, or a choice drawn again, ends where it began."""
    for start in range(0, len(candidates), _AT_ONCE):
        some = candidates[start : start + _AT_ONCE]
        new = ~copies(some, known)
        if new.any():
            found: Array = some[np.argmax(new)]
            return found
    return None


def _taken(rows: Array, running: Array) -> Any:
    """Which rows no coordinate sets apart from a running one."""
    if not len(running):
        return np.zeros(len(rows), bool)
    close: Any = np.abs(rows[:, None] - running) < _CLOSE
    return close.all(axis=2).any(axis=1)


def _fit(cube: Cube, past: Past, features: Features) -> Array:
    """Fitted on the lowest indexes, as many as the highest rung that is reached: most asks find it done already."""
    y = scores_of(past.many[: _rung(len(past.y))], near_weights(past.weights))
    chosen = _bounded(np.argsort(y, kind="stable"))
    rows = rows_at(cube, past, past.scored[chosen])
    return fitted(features.of(rows), features.axis, standardised(scaled(y)[chosen]))


def _early_excess(cube: Cube, past: Past, excess: Array) -> tuple[Array, Array]:
    """Of the lowest indexes, as for ``_fit``: some of those that reported an excess, the nearest to 0 first; and rows."""
    told = np.flatnonzero(~np.isnan(excess[: _rung(len(excess))]))
    told = told[_bounded(np.argsort(np.abs(excess[told]), kind="stable"))]
    return excess[told], rows_at(cube, past, past.scored[told])


def _rung(count: int) -> int:
    """The highest rung that so many scored trials reach."""
    rung = float(_FIRST_RUNG)
    while int(rung * _LADDER) <= count:
        rung *= _LADDER
    return int(rung)


def _bounded(order: Any) -> Any:
    """Of places, the best first: the best and others spread evenly over the ranks of the rest."""
    if len(order) <= _BEST + _REST:
        return np.sort(order)
    rest = len(order) - _BEST
    return np.sort(np.concatenate([order[:_BEST], order[_BEST + np.arange(_REST) * (rest - 1) // (_REST - 1)]]))


def _moved(cube: Cube, rows: Array, stream: Stream, closer: float) -> Array:
    """Rows with at least one coordinate moved, by 10^-2.5 to 10^-0.5 of the range, less by powers of ten ``closer``."""
    count, dims = rows.shape
    scale = 10.0 ** (-2.5 - closer + 2.0 * stream.uniform(count, 1))
    step = stream.normal(count, dims) * np.maximum(scale, 2.0 * cube.half_cells)
    other, draw = stream.uniform(2, count, dims)
    moves = draw < max(2.0, 0.5 * dims) / dims
    moves[np.arange(count), np.argmin(draw, axis=1)] = True
    there = np.abs(rows + step)
    there = np.where(there > 1.0, 2.0 - there, there)  # reflected at the ends
    elsewhere = (cube.choices > 0) | np.isnan(rows)
    there = np.where(elsewhere, other, np.clip(there, 0.0, 1.0))
    return np.where(moves | np.isnan(rows), there, rows)


def _log_belief(cube: Cube, rows: Array) -> Array:
    """The logarithm of the density of what is believed, never below that of half a uniform one."""
    total = np.zeros(len(rows))
    for j in np.flatnonzero(~np.isnan(cube.prior)).tolist():
        if cube.choices[j]:
            near = cube.choices[j] * (cube.numbers(rows[:, j], j) == cube.numbers(cube.prior[j : j + 1], j))
        else:
            near = np.exp(-0.5 * np.square((rows[:, j] - cube.prior[j]) / 0.1)) / (0.1 * np.sqrt(2.0 * np.pi))
        total += np.log(0.5 + 0.5 * np.where(np.isnan(rows[:, j]), 1.0, near))
    return total
