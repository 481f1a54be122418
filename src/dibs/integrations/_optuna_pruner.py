"""Any Optuna pruner's verdict about a curve, given the others: pure, as far as the pruner lets itself be."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from optuna import pruners
from optuna.trial import FrozenTrial, TrialState

from dibs.errors import UsageError
from dibs.search import Curve, Pruner, Verdict
from dibs.search._pruner import word

from ._optuna_sampler import described
from ._optuna_window import STATES, Window, frozen

__all__ = ["OptunaPruner"]

# they note in Optuna's own trials which rungs each has passed
_REMEMBERING = ("SuccessiveHalvingPruner", "HyperbandPruner")


class OptunaPruner(Pruner):
    """``Study(..., pruner=OptunaPruner(optuna.pruners.MedianPruner()))``: asked at each report.

    It is made anew by nobody: whoever joins passes an equal one, and ``args`` says what that is. The same curves give the
    same verdict: the pruner is used as it was given, every time. Raises UsageError for one that remembers things in
    Optuna's own trials (successive halving, Hyperband): dibs has its own.
    """

    name: ClassVar[str] = "optuna"
    version: ClassVar[int] = 1

    def __init__(self, pruner: pruners.BasePruner) -> None:
        super().__init__()
        if not isinstance(pruner, pruners.BasePruner):
            raise UsageError(f"OptunaPruner takes a pruner of Optuna, not {pruner!r:.80}")
        inner: Any = pruner
        while inner is not None:  # a PatientPruner has one inside
            for kind in type(inner).__mro__:
                if kind.__name__ in _REMEMBERING:
                    raise UsageError(f"{kind.__name__} remembers what it did in Optuna's own trials: take another one")
            inner = getattr(inner, "_wrapped_pruner", None)
        self._pruner = pruner
        # curves in Optuna's form, made once for each length
        self._known: dict[int, tuple[Curve, int, FrozenTrial]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}

    def args(self) -> dict[str, Any]:
        """The pruner in words that can be compared."""
        return {"pruner": described(self._pruner)}

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        self.sign  # noqa: B018 because it says so if there is no goal
        trial = frozen(own.n, TrialState.RUNNING, {}, {}, None, dict(own.pairs))
        rows = [self._trial(curve) for curve in sorted(others, key=lambda curve: curve.n) if curve.n != own.n]
        study = Window([*rows, trial], self.goal).study(pruner=copy.deepcopy(self._pruner))
        if not study.pruner.prune(study, trial):
            return None
        step, value = own.pairs[-1]
        said = f"{type(self._pruner).__name__} says so at step {step} ({value:g}), beside {len(rows)} other trials"
        return Verdict(self.name, said, {"step": step, "value": word(value), "peers": len(rows)})

    def _trial(self, curve: Curve) -> FrozenTrial:
        known = self._known.get(curve.n)
        if known is None or known[0] is not curve or known[1] != len(curve):
            known = self._known[curve.n] = curve, len(curve), _trial(curve)
        return known[2]


def _trial(curve: Curve) -> FrozenTrial:
    state, pairs = STATES.get(curve.state, TrialState.FAIL), curve.pairs
    value = pairs[-1][1] if pairs and state in (TrialState.COMPLETE, TrialState.PRUNED) else None
    return frozen(curve.n, state, {}, {}, value, dict(pairs))
