"""A Gaussian process over rows of the unit cube: Matern-5/2 with a length for each axis, plain numpy.

Linear algebra differs in last bits between machines. So the fitted logarithms are rounded to 1e-3, and whatever is
computed from them is only compared, never made into a point.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ._cube import Cube
from ._linear import half_inverse, product
from ._minimise import minimise
from ._stream import Array

__all__ = ["Features", "Posterior", "fitted", "scaled", "standardised"]

_STEPS = 20
_START_NOISE = -5.0  # not the mode: where there is noise, few steps do not climb out of having none
_JITTER = 1e-10
_ROOT_5 = math.sqrt(5.0)


class Features:
    """Rows as coordinates in which a squared distance is a sum over axes: a number as it is, a choice as an indicator
    of length 1/2 (two values are half a unit square apart), activity of a conditional axis as half a unit."""

    def __init__(self, cube: Cube) -> None:
        self._cube = cube
        activity = np.arange(cube.dims if cube.conditional else 0)
        self.axis = np.concatenate([cube.numeric, cube.value_axes, activity])  #: feature -> axis

    def of(self, rows: Array) -> Array:
        """The features of rows."""
        numbers = rows[:, self._cube.numeric]
        parts = [np.where(np.isnan(numbers), 0.5, numbers), 0.5 * self._cube.indicators(rows)]
        if self._cube.conditional:
            parts.append(0.5 * ~np.isnan(rows))
        return np.concatenate(parts, axis=1)


def scaled(y: Array) -> Array:
    """Scores as a model likes them: the better half linear, the worse half logarithmic, mean 0 and deviation 1."""
    y = y / max(1.0, float(np.abs(y).max()) / 1e100)
    middle = float(np.median(y))
    unit = middle - float(y.min())
    if unit <= 0.0:  # more than half are the best
        unit = float(y.max()) - middle
    if unit <= 0.0:
        return np.zeros(len(y))
    v = (y - middle) / unit
    return np.where(v < 0.0, v, np.log1p(np.maximum(v, 0.0)))


def standardised(v: Array) -> Array:
    """Mean 0, deviation 1; all 0 if all are alike."""
    centred = v - v.mean()
    deviation = math.sqrt(float((centred * centred).mean()))
    return centred / deviation if deviation > 1e-12 else np.zeros(len(v))


def fitted(features: Array, axis: Any, z: Array) -> Array:
    """The most probable (log 1/length^2 of each axis, log signal, log noise), rounded.

    A pure function of what is given, hence remembered.
    """
    return np.array(_fitted(features.tobytes(), features.shape, axis.tobytes(), z.tobytes()))


@lru_cache(maxsize=64)
def _fitted(features: bytes, shape: tuple[int, int], axis: bytes, z: bytes) -> tuple[float, ...]:
    x, axes, target = np.frombuffer(features).reshape(shape), np.frombuffer(axis, np.int64), np.frombuffer(z)
    dims = int(axes.max()) + 1
    apart = np.zeros((dims, shape[0] ** 2))
    for f, j in enumerate(axes.tolist()):
        apart[j] += np.square(x[:, f, None] - x[None, :, f]).ravel()
    mode = np.append(np.full(dims, -2.0 * (math.log(0.5) + 0.5 * math.log(max(dims, 1) / 4.0))), [0.0, -8.0])
    spread = np.append(np.full(dims, 2.0), [1.0, 2.5])
    start = np.append(mode[:-1], _START_NOISE)
    eye = np.eye(shape[0])

    def loss(p: Array) -> tuple[float, Array]:
        theta, signal, noise = np.exp(p[:dims]), math.exp(p[dims]), math.exp(p[dims + 1])
        r = np.sqrt(np.einsum("d,dn->n", theta, apart)).reshape(eye.shape)
        decay = signal * np.exp(-_ROOT_5 * r)
        slope = (1.0 + _ROOT_5 * r) * decay  # -6/5 of the derivative by r^2
        kernel = slope + (5.0 / 3.0) * r * r * decay
        try:
            half = half_inverse(kernel + (noise + _JITTER * signal) * eye)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros(len(p))
        weights = half.T @ (half @ target)
        off = (p - mode) / spread
        value = 0.5 * float(target @ weights) - float(np.log(np.diag(half)).sum()) + 0.5 * float(off @ off)
        pull = 0.5 * (product(half.T, half) - np.outer(weights, weights))
        by_theta = theta * np.einsum("dn,n->d", apart, (pull * slope).ravel()) * (-5.0 / 6.0)
        by_signal = float((pull * kernel).sum())
        by_noise = noise * float(np.trace(pull))
        return value, np.append(by_theta, [by_signal, by_noise]) + off / spread

    return tuple(np.round(np.clip(minimise(loss, start, _STEPS), -20.0, 20.0), 3).tolist())


class Posterior:
    """What the process says of any rows, given scored ones and, for the variance alone, others."""

    def __init__(self, features: Features, fit: Array, scored: Array, z: Array, others: Array) -> None:
        self._features = features
        self._root = np.exp(0.5 * fit[:-2])[features.axis]
        self._signal = math.exp(fit[-2])
        self._all = features.of(np.concatenate([scored, others])) * self._root
        # what two rows have in common in last bits must not make the matrix singular
        noise = max(math.exp(fit[-1]), 1e-8 * self._signal)
        kernel = self._kernel(self._all, self._all)
        kernel[np.diag_indices(len(kernel))] = self._signal + noise
        self._half = half_inverse(kernel)
        known = len(scored)
        self._weights = self._half[:known, :known] @ z

    def of(self, rows: Array) -> tuple[Array, Array]:
        """Mean and deviation."""
        part = product(self._half, self._kernel(self._all, self._features.of(rows) * self._root))
        mean = self._weights @ part[: len(self._weights)]
        deviation = np.sqrt(np.maximum(self._signal - np.square(part).sum(axis=0), 1e-12 * self._signal))
        return mean, deviation

    def _kernel(self, a: Array, b: Array) -> Array:
        square = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2.0 * product(a, b.T)
        r = _ROOT_5 * np.sqrt(np.maximum(square, 0.0))
        result: Array = self._signal * (1.0 + r * (1.0 + r * (1.0 / 3.0))) * np.exp(-r)
        return result
