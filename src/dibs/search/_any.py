"""Several pruners as one: the first that has a reason speaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from dibs.errors import UsageError

from ._curve import Curve
from ._pruner import Pruner, Verdict, make_pruner, register_pruner
from ._sampler import Goal

__all__ = ["AnyOf"]


@register_pruner
class AnyOf(Pruner):
    """What ``pruner=["diverged", "median"]`` makes. Curves are fetched only if one that needs them is due."""

    name: ClassVar[str] = "any"

    def __init__(self, of: Sequence[Any]) -> None:
        if isinstance(of, str) or not isinstance(of, Sequence) or not of:
            raise UsageError(f"a list of pruners is needed, not {of!r}")
        self.of = tuple(make_pruner(each) for each in of)
        if any(isinstance(each, AnyOf) for each in self.of):
            raise UsageError("a list of pruners holds pruners, not lists")

    @property
    def needs_curves(self) -> bool:
        return any(each.needs_curves for each in self.of)

    def due(self, own: Curve) -> bool:
        return any(each.due(own) for each in self.of)

    def at_rung(self, own: Curve) -> bool:
        return any(each.at_rung(own) for each in self.of)

    def verdict(self, own: Curve, others: Any = ()) -> Verdict | None:
        return next((said for each in self.of if (said := each.verdict(own, others)) is not None), None)

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        return self.verdict(own, others)

    def fitted(self, *, goal: Goal | None = None, max_step: int | None = None, seed: int | None = None) -> Self:
        twin = super().fitted(goal=goal, max_step=max_step, seed=seed)
        twin.of = tuple(each.fitted(goal=goal, max_step=max_step, seed=seed) for each in self.of)
        return twin

    def args(self) -> dict[str, Any]:
        return {"of": [each.describe() for each in self.of]}

    @property
    def label(self) -> str:
        return ",".join(each.label for each in self.of)
