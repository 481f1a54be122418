"""How likely a point keeps its constraints: a second Gaussian process, on the excess (Gardner et al. 2014).

Excess is taken by the logarithm of its size on either side of zero, so that one wild violation flattens nothing;
which side of zero a row is on does not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ._gaussian import Features, Posterior, fitted, standardised
from ._normal import log_cdf
from ._stream import Array

__all__ = ["log_feasibility"]


def log_feasibility(
    features: Features, excess: Array, rows: Array, others: Array, early: tuple[Array, Array]
) -> Callable[[Array], Array] | None:
    """rows -> the logarithm of the probability that they keep their constraints; None if nothing can be learnt.

    ``excess`` belongs to ``rows``; where it is nan it is not learnt from. ``early``: an excess without nan and its
    rows, to which lengths are fitted: they should change rarely, for a fit is remembered.
    """
    told = ~np.isnan(excess)
    if not told.any():
        return None
    if len(early[0]) < 2:
        early = excess[told], rows[told]
    fit = fitted(features.of(early[1]), features.axis, standardised(_evened(early[0])))
    values = _evened(excess[told])
    middle = float(values.mean())
    deviation = math.sqrt(float(np.square(values - middle).mean()))
    unit = deviation if deviation > 1e-12 else 1.0
    posterior = Posterior(features, fit, rows[told], (values - middle) / unit, np.concatenate([rows[~told], others]))

    def log_probability(candidates: Array) -> Array:
        mean, spread = posterior.of(candidates)
        return log_cdf((-middle / unit - mean) / spread)

    return log_probability


def _evened(excess: Array) -> Array:
    size = np.abs(excess)
    unit = float(np.median(size[size > 0.0])) if (size > 0.0).any() else 1.0
    return np.sign(excess) * np.log1p(size / max(unit, 1e-300))
