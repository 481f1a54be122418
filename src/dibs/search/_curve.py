"""A trial's curve as a pruner sees it: steps, values, and the best so far. Pure.

Compact, because a pruner keeps one of every trial, and it grows in place, because its own trial asks at every step.
A value that is not finite was reached and is worse than all others, whatever the goal.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

__all__ = ["Curve", "votes"]


class Curve:
    """``Curve(n, state, pairs)``: trial n, in a state of records, with (step, value) pairs sorted by step.

    Raises ValueError for steps that do not rise.
    """

    __slots__ = ("_best", "_scan", "_sign", "n", "state", "steps", "values")

    def __init__(self, n: int, state: str, pairs: Iterable[tuple[int, float]] = ()) -> None:
        self.n, self.state = n, state
        self.steps, self.values = array("q"), array("d")
        for step, value in pairs:
            self.steps.append(step)
            self.values.append(value)
        if any(later <= step for step, later in pairwise(self.steps)):
            raise ValueError(f"the steps of a curve rise, and those of trial {n} do not")
        self._best, self._sign = array("d"), 0
        self._scan = (0, 0.0, 0, math.inf, -1)  # sign, margin, values seen, the best of them, its step

    def __repr__(self) -> str:
        return f"Curve({self.n}, {self.state!r}, {self.pairs})"

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def pairs(self) -> list[tuple[int, float]]:
        """(step, value), by step."""
        return list(zip(self.steps, self.values, strict=True))

    @property
    def last(self) -> int:
        """The highest step reached, -1 if there is none."""
        return self.steps[-1] if self.steps else -1

    @property
    def before(self) -> int:
        """The step before the last one, -1 if there is none."""
        return self.steps[-2] if len(self.steps) > 1 else -1

    def add(self, step: int, value: float) -> None:
        """One more step, above all there are."""
        if step <= self.last:
            raise ValueError(f"step {step} of trial {self.n} is not above {self.last}")
        self.steps.append(step)
        self.values.append(value)

    def best(self, step: int, sign: int) -> float | None:
        """The best value at or before ``step``, times ``sign`` (1 for the goal min, -1 for max: less is better).

        None if there is no value so early; infinity if none of them is finite.
        """
        at = bisect_right(self.steps, step)
        if not at:
            return None
        if self._sign != sign:
            self._best, self._sign = array("d"), sign
        for value in self.values[len(self._best) :] if len(self._best) < at else ():
            least = self._best[-1] if self._best else math.inf
            self._best.append(min(least, sign * value if math.isfinite(value) else math.inf))
        return self._best[at - 1]

    def best_step(self, sign: int, margin: float = 0.0) -> int:
        """The step of the last improvement by more than ``margin`` over the best before it; -1 without a value."""
        if self._scan[:2] != (sign, margin):
            self._scan = (sign, margin, 0, math.inf, -1)
        _, _, seen, least, found = self._scan
        for at in range(seen, len(self.steps)):
            value = sign * self.values[at] if math.isfinite(self.values[at]) else math.inf
            if found < 0 or value < least - margin:
                found, least = self.steps[at], value
        self._scan = (sign, margin, len(self.steps), least, found)
        return found


def votes(
    curves: Sequence[Curve], step: int, sign: int, carried: Collection[str] = ()
) -> tuple[list[Curve], list[float]]:
    """Who votes at a step, and with what: the best at or before it, times ``sign``, of those who have reached it.

    ``carried``: states in which a curve that ended before it votes all the same.
    """
    voters: list[Curve] = []
    values: list[float] = []
    for curve in curves:  # thousands of them at every report, hence without a call for each
        steps, best = curve.steps, curve._best
        if not steps or (steps[-1] < step and curve.state not in carried):
            continue
        if curve._sign != sign or len(best) != len(steps):
            curve.best(steps[-1], sign)
            best = curve._best
        if steps[-1] <= step:
            values.append(best[-1])
        elif steps[0] <= step:
            values.append(best[bisect_right(steps, step) - 1])
        else:
            continue
        voters.append(curve)
    return voters, values
