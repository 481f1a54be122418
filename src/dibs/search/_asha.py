"""Asynchronous successive halving (Li et al. 2020), and Hyperband's brackets (Li et al. 2018), without a scheduler.

Nothing is promoted and no rung is stored: a curve that has reached a rung's step votes there with its best by that
step, be it running, closed or crashed, and nobody else does. Whoever arrives first has nobody to lose against.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Self

from dibs._canon import chance
from dibs.errors import UsageError

from ._checks import a_count
from ._curve import Curve, votes
from ._pruner import Pruner, Verdict, register_pruner, seen_of, word
from ._sampler import Goal

__all__ = ["Asha", "Hyperband"]

_RUNGS = 4  # where nobody says where the first one is


@register_pruner
class Asha(Pruner):
    """At steps ``min_step``, ``min_step`` x eta, x eta^2 ... only the best 1 in ``eta`` of those who got there go on.

    The last rung is at ``max_step`` / eta or before: stopping later saves little. ``min_step`` left out is what gives
    four rungs, or fewer below 1; it is fixed with the study. Compared is the best value by the rung's step, whatever
    the step of the report at which a trial crosses it.
    """

    name: ClassVar[str] = "asha"
    needs_max_step: ClassVar[bool] = True

    def __init__(self, min_step: int | None = None, eta: int = 3) -> None:
        self.min_step = None if min_step is None else a_count("min_step", min_step, least=1)
        self.eta = a_count("eta", eta, least=2)

    def fitted(self, *, goal: Goal | None = None, max_step: int | None = None, seed: int | None = None) -> Self:
        twin = super().fitted(goal=goal, max_step=max_step, seed=seed)
        if twin.max_step is not None:
            if twin.min_step is None:
                twin.min_step = max(1, twin.max_step // self.eta**_RUNGS)
            if twin.min_step >= twin.max_step:
                raise UsageError(
                    f"pruner {self.name!r} compares trials on their way: max_step={twin.max_step} must be above "
                    f"min_step={twin.min_step}"
                )
        return twin

    def steps(self, n: int) -> list[int]:
        """The rungs of trial ``n``: steps, rising. Raises UsageError for a pruner that is no study's yet."""
        if self.max_step is None or self.min_step is None:
            raise UsageError(f"pruner {self.name!r} has no rungs without a max_step: fitted(goal=..., max_step=...)")
        found = [self.min_step]
        while found[-1] * self.eta**2 <= self.max_step:
            found.append(found[-1] * self.eta)
        return found

    def due(self, own: Curve) -> bool:
        return bool(self._crossed(own))

    def needs(self, own: Curve) -> int:
        return min(self._crossed(own), default=0)

    def at_rung(self, own: Curve) -> bool:
        return self.due(own)

    def _crossed(self, own: Curve) -> list[int]:
        return [rung for rung in self.steps(own.n) if own.before < rung <= own.last]

    def peers(self, own: Curve, others: Sequence[Curve]) -> Sequence[Curve]:
        """Whom it is compared with."""
        return others

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        sign, peers = self.sign, self.peers(own, others)
        for rung in self._crossed(own):
            ours = own.best(rung, sign)
            if ours is None:
                continue  # its first report is beyond this one
            voters, values = votes(peers, rung, sign)
            places = max(1, (len(values) + 1) // self.eta)
            if sum(value < ours for value in values) < places:
                continue
            bar = sorted(values)[places - 1]
            return Verdict(
                self.name,
                f"its best by rung {rung}, {sign * ours:.6g}, is not among the best {places} of the "
                f"{len(values) + 1} that got there",
                {
                    "step": own.last, "rung": rung, "value": word(sign * ours), "threshold": word(sign * bar),
                    **seen_of(voters, rung, values, sign),
                },
            )  # fmt: skip
        return None

    def args(self) -> dict[str, Any]:
        return {"min_step": self.min_step, "eta": self.eta}


@register_pruner
class Hyperband(Asha):
    """Asha in ``brackets``, of which each begins one rung later; a trial is compared within its bracket alone.

    Which one is a function of the study's seed and the trial's index. ``brackets`` left out: one for every rung.
    """

    name: ClassVar[str] = "hyperband"

    def __init__(self, min_step: int | None = None, eta: int = 3, brackets: int | None = None) -> None:
        super().__init__(min_step, eta)
        self.brackets = None if brackets is None else a_count("brackets", brackets, least=1)

    def fitted(self, *, goal: Goal | None = None, max_step: int | None = None, seed: int | None = None) -> Self:
        twin = super().fitted(goal=goal, max_step=max_step, seed=seed)
        if twin.max_step is not None:
            rungs = len(Asha.steps(twin, 0))
            if twin.brackets is None:
                twin.brackets = rungs
            if twin.brackets > rungs:
                raise UsageError(f"brackets={twin.brackets} are more than the {rungs} rungs below max_step")
        return twin

    def bracket(self, n: int) -> int:
        """Which bracket trial ``n`` is in, from 0."""
        return _bracket(f"{self.name}-{self.version}", self.seed or 0, n, self.brackets or 1)

    def steps(self, n: int) -> list[int]:
        return super().steps(n)[self.bracket(n) :]

    def peers(self, own: Curve, others: Sequence[Curve]) -> Sequence[Curve]:
        ours = self.bracket(own.n)
        return [peer for peer in others if self.bracket(peer.n) == ours]

    def args(self) -> dict[str, Any]:
        return {**super().args(), "brackets": self.brackets}


@lru_cache(maxsize=1 << 16)
def _bracket(version: str, seed: int, n: int, brackets: int) -> int:
    return int(chance(1, version, seed, n, "bracket")[0] * brackets)
