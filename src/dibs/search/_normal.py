"""The normal distribution as far as samplers need it, elementwise and without a library.

Approximate where that is enough (a candidate may lie anywhere), exact where numbers are compared (log-EI).
"""

from __future__ import annotations

import math

import numpy as np

from ._stream import Array

__all__ = ["cdf", "log_cdf", "log_improvement", "quantile", "truncated"]

_SQRT_2PI = math.sqrt(2.0 * math.pi)
_FAR = -25.0


def cdf(x: Array) -> Array:
    """Phi to 1e-7 (Abramowitz and Stegun 1964, 7.1.26)."""
    a = np.abs(x) * math.sqrt(0.5)
    t = 1.0 / (1.0 + 0.3275911 * a)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    tail = 0.5 * series * np.exp(-a * a)
    return np.where(x > 0.0, 1.0 - tail, tail)


def quantile(p: Array) -> Array:
    """The inverse of Phi to 5e-4 (Abramowitz and Stegun 1964, 26.2.23)."""
    q = np.clip(np.minimum(p, 1.0 - p), 1e-12, 0.5)
    t = np.sqrt(-2.0 * np.log(q))
    x = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    result: Array = np.where(p < 0.5, -x, x)
    return result


def truncated(u: Array, mean: Array, deviation: Array) -> Array:
    """The u-quantile of a normal variable cut to [0, 1], in which its mean lies."""
    low, high = cdf(-mean / deviation), cdf((1.0 - mean) / deviation)
    result: Array = np.clip(mean + deviation * quantile(low + u * (high - low)), 0.0, 1.0)
    return result


def log_improvement(z: Array) -> Array:
    """log(phi(z) + z Phi(z)): what a standard normal variable is expected to exceed -z by, in logarithms.

    Far out the sum cancels and its asymptotic series takes over.
    """
    near = np.maximum(z, _FAR)
    upper = np.array([0.5 * math.erfc(-x * math.sqrt(0.5)) for x in near.tolist()])
    direct = np.log(np.exp(-0.5 * near * near) / _SQRT_2PI + near * upper)
    square = np.square(np.minimum(z, _FAR))
    series = -0.5 * square - math.log(_SQRT_2PI) - np.log(square) + np.log1p(-3.0 / square + 15.0 / square**2)
    return np.where(z > _FAR, direct, series)


def log_cdf(x: Array) -> Array:
    """log Phi(x): exact near 0, far below it by the first terms of the asymptotic series."""
    near = np.maximum(x, _FAR)
    direct = np.log([0.5 * math.erfc(-z * math.sqrt(0.5)) for z in near.tolist()])
    far = np.minimum(x, _FAR)
    square = np.square(far)
    series = -0.5 * square - np.log(-far) - math.log(_SQRT_2PI) + np.log1p(-1.0 / square + 3.0 / square**2)
    return np.where(x > _FAR, direct, series)
