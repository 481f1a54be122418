"""Median and percentile: stop a trial whose best so far is worse than most others' best by the same step.

A stopped curve votes with its best for ever after. If only survivors voted, each stop would raise the bar for the
next, and the rule would become as hard as successive halving, which it is meant to be milder than.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from dibs.errors import UsageError

from ._checks import a_count
from ._curve import Curve, votes
from ._pruner import Pruner, Verdict, register_pruner, seen_of, word

__all__ = ["Median", "Percentile"]

_CARRIED = ("done", "pruned")  # what ended by its own merit; one that crashed has said nothing about later steps


@register_pruner
class Percentile(Pruner):
    """Go on only while the best so far is within the best ``percent`` % of the others' at the same step.

    ``startup``: how many others must have a value there before anybody is stopped. ``warmup``: no verdict before
    that step. ``every``: only at multiples of so many steps beyond it.
    """

    name: ClassVar[str] = "percentile"

    def __init__(self, percent: float = 25.0, startup: int = 5, warmup: int = 0, every: int = 1) -> None:
        if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 < percent < 100:
            raise UsageError(f"percent={percent!r} must be a number between 0 and 100")
        self.percent = float(percent)
        self.startup = a_count("startup", startup, least=1)
        self.warmup = a_count("warmup", warmup)
        self.every = a_count("every", every, least=1)

    def due(self, own: Curve) -> bool:
        """At the first report in each stretch of ``every`` steps, from ``warmup`` on."""
        if own.last < self.warmup:
            return False
        return (
            own.before < self.warmup
            or (own.last - self.warmup) // self.every > (own.before - self.warmup) // self.every
        )

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        step, sign = own.last, self.sign
        voters, values = votes(others, step, sign, _CARRIED)
        ours = own.best(step, sign)
        if ours is None or len(values) < self.startup:
            return None
        bar = _quantile(sorted(values), self.percent / 100)
        if not ours > bar:
            return None
        return Verdict(
            self.name,
            f"its best by step {step}, {sign * ours:.6g}, is worse than {self._bar()} {sign * bar:.6g} "
            f"of {len(values)} others",
            {
                "step": step,
                "value": word(sign * ours),
                "threshold": word(sign * bar),
                **seen_of(voters, step, values, sign),
            },
        )

    def _bar(self) -> str:
        return f"the best {self.percent:g} % with"

    def args(self) -> dict[str, Any]:
        return {"percent": self.percent, "startup": self.startup, "warmup": self.warmup, "every": self.every}


@register_pruner
class Median(Percentile):
    """Percentile with 50 %: stop who is in the worse half."""

    name: ClassVar[str] = "median"

    def __init__(self, startup: int = 5, warmup: int = 0, every: int = 1) -> None:
        super().__init__(50.0, startup, warmup, every)

    def _bar(self) -> str:
        return "the median"

    def args(self) -> dict[str, Any]:
        return {"startup": self.startup, "warmup": self.warmup, "every": self.every}


def _quantile(values: list[float], part: float) -> float:
    """Between the two nearest of the sorted values, in a straight line; never below the least of them."""
    at = part * (len(values) - 1)
    low, high = values[math.floor(at)], values[math.ceil(at)]
    return low if low == high else low + (at - math.floor(at)) * (high - low)
