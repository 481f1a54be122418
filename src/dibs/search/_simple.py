"""Pruners that look at nobody else's curve: a threshold, patience, divergence. They cost a study nothing to read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from dibs.errors import UsageError

from ._checks import a_count, a_number
from ._curve import Curve
from ._pruner import Pruner, Verdict, register_pruner, word

__all__ = ["Diverged", "Patience", "Threshold"]


class _Alone(Pruner):
    @property
    def needs_curves(self) -> bool:
        return False


@register_pruner
class Diverged(_Alone):
    """Stop at the first value that is no finite number."""

    name: ClassVar[str] = "diverged"

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        step, value = own.last, own.values[-1]
        if math.isfinite(value):
            return None
        return Verdict(self.name, f"{value} at step {step}", {"step": step, "value": str(value)})


@register_pruner
class Threshold(_Alone):
    """Stop at a value below ``lower`` or above ``upper``, whatever the goal, from step ``warmup`` on."""

    name: ClassVar[str] = "threshold"

    def __init__(self, lower: float | None = None, upper: float | None = None, warmup: int = 0) -> None:
        if lower is None and upper is None:
            raise UsageError(
                "threshold needs a lower or an upper bound: pass Threshold(upper=10.0), in Python or in the search file"
            )
        self.lower = None if lower is None else a_number("lower", lower)
        self.upper = None if upper is None else a_number("upper", upper)
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise UsageError(f"lower={self.lower} is above upper={self.upper}: every value would be outside")
        self.warmup = a_count("warmup", warmup)

    def due(self, own: Curve) -> bool:
        return own.last >= self.warmup

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        step, value = own.last, own.values[-1]
        for bound, side, outside in (
            (self.lower, "below", self.lower is not None and value < self.lower),
            (self.upper, "above", self.upper is not None and value > self.upper),
        ):
            if outside:
                seen = {"step": step, "value": word(value), "threshold": bound}
                return Verdict(self.name, f"{value:.6g} at step {step} is {side} {bound:g}", seen)
        return None

    def args(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper, "warmup": self.warmup}


@register_pruner
class Patience(_Alone):
    """Stop when the best value has not improved by more than ``margin`` for ``steps`` steps.

    The trial is then pruned like any other: it is no result. An objective that wants its best so far to count breaks
    out of its own loop and calls ``trial.done(best)``.
    """

    name: ClassVar[str] = "patience"

    def __init__(self, steps: int = 10, margin: float = 0.0) -> None:
        self.steps = a_count("steps", steps, least=1)
        self.margin = a_number("margin", margin)
        if self.margin < 0:
            raise UsageError(f"margin={margin!r} must not be negative")

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        since = own.best_step(self.sign, self.margin)
        best = own.best(own.last, self.sign)
        if best is None or own.last - since < self.steps:
            return None
        best *= self.sign
        return Verdict(
            self.name,
            f"no better than {best:.6g} for {own.last - since} steps",
            {"step": own.last, "value": word(best), "since": since},
        )

    def args(self) -> dict[str, Any]:
        return {"steps": self.steps, "margin": self.margin}
