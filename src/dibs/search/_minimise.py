"""Minimise a smooth function of a few variables in a fixed number of steps (BFGS: Nocedal and Wright 2006, ch. 6)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._stream import Array

__all__ = ["minimise"]

_LONGEST = 2.0


def minimise(function: Callable[[Array], tuple[float, Array]], start: Array, steps: int) -> Array:
    """The best place found in ``steps`` steps; ``function`` gives value and gradient, infinite where it has none.

    No coordinate moves by more than 2 in one step.
    """
    at, inverse = start, np.eye(len(start))
    value, gradient = function(at)
    for step in range(steps):
        direction = -inverse @ gradient
        slope = float(gradient @ direction)
        if not slope < 0.0:
            inverse, direction = np.eye(len(start)), -gradient
            slope = float(gradient @ direction)
            if not slope < 0.0:
                break
        direction = direction * min(1.0, _LONGEST / float(np.abs(direction).max()))
        size = 1.0
        for _ in range(8):
            new = at + size * direction
            new_value, new_gradient = function(new)
            if new_value <= value + 1e-4 * size * slope:
                break
            size *= 0.4
        else:
            break
        moved, turned = new - at, new_gradient - gradient
        curve = float(moved @ turned)
        if curve > 1e-12:
            if step == 0:
                inverse = inverse * (curve / float(turned @ turned))
            away = np.eye(len(start)) - np.outer(moved, turned) / curve
            inverse = away @ inverse @ away.T + np.outer(moved, moved) / curve
        small = value - new_value < 1e-6 * max(1.0, abs(value))
        at, value, gradient = new, new_value, new_gradient
        if small:
            break
    return at
