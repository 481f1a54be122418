"""Functions of the BBOB suite (Hansen et al. 2009), from the PyPI package ``coco-experiment``; a seed is an instance.

``bbob15-5`` is f15 in 5 dimensions, in [-5, 5]. f101 to f130 are its noisy suite: here the same base function of the
noiseless one with that noise model, so that the true value of a point is known.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import warnings
from typing import Any

import numpy as np

from .space import Function

__all__ = ["bbob"]

#: noisy function -> (its base, the exponent of its multiplicative normal noise)
_NOISY = {113: (7, 1.0), 119: (14, 1.0), 104: (8, 0.01), 128: (21, 1.0)}


def bbob(name: str, seed: int) -> Function:
    """The function of that name, shifted and turned as instance ``seed + 1``."""
    import cocoex

    number, dims = map(int, name.removeprefix("bbob").split("-"))
    base, beta = _NOISY.get(number, (number, 0.0))
    suite = cocoex.Suite("bbob", f"instances: {seed + 1}", f"dimensions: {dims} function_indices: {base}")
    (problem,) = [suite.get_problem(k) for k in range(len(suite))]
    least = _least(problem)

    def value(point: dict[str, Any]) -> float:
        return float(problem([point[f"x{i}"] for i in range(dims)]))

    def seen(true: float, normal: float) -> float:
        return least + max(0.0, true - least) * math.exp(beta * normal)

    space = {f"x{i}": ("float", -5.0, 5.0, False) for i in range(dims)}
    return Function(name, space, value, least, seen if beta else None)


def _least(problem: Any) -> float:
    """What the suite says the minimum is: it writes the best place into a file and has no other way to tell."""
    with tempfile.TemporaryDirectory() as work, contextlib.chdir(work), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem._best_parameter("print")
        best = np.loadtxt("._bbob_problem_best_parameter.txt")
    return float(problem(best))
