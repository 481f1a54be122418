"""What a server does with an average, as pure functions that every client can compute for itself.

Reddi et al., "Adaptive Federated Optimization" (ICLR 2021); Hsu et al., "Measuring the Effects of Non-Identical Data
Distribution for Federated Visual Classification" (2019) for momentum. Both see the average's way from the model before
as a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dibs.errors import UpdateError, UsageError

from ._exports import difference, flatten, layout_of, unflatten
from ._values import Tensor, is_float, narrow, widen

__all__ = ["FedAdam", "FedAvgM", "Stepped"]

Doubles = npt.NDArray[np.float64]


class Stepped(NamedTuple):
    """The next model, and what the optimiser has to be given with the next average (arrays by name, in float64)."""

    tensors: dict[str, Any]
    state: dict[str, Any]


@final
@dataclass(frozen=True, slots=True)
class FedAvgM:
    """The average with momentum. ``lr`` 1 and ``momentum`` 0 is the average itself. Raises UsageError."""

    lr: float = 1.0
    momentum: float = 0.9

    def __post_init__(self) -> None:
        _check(self.lr, momentum=self.momentum)

    def step(
        self, before: Mapping[str, Any], average: Mapping[str, Any], state: Mapping[str, Any] | None = None
    ) -> Stepped:
        """The model after ``before``, once its clients' average is known; the same arguments give the same bits.

        ``state``: of the step before, None at the first. Raises UpdateError where the three do not fit.
        """

        def move(name: str, x: Doubles, way: Doubles, old: Mapping[str, Any]) -> tuple[Doubles, dict[str, Doubles]]:
            m = way if name not in old.get("m", {}) else self.momentum * old["m"][name] + way
            return x + self.lr * m, {"m": m}

        return _step(before, average, state, move)


@final
@dataclass(frozen=True, slots=True)
class FedAdam:
    """Adam on the averages' ways, without correction of the bias, as in the paper. Raises UsageError."""

    lr: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def __post_init__(self) -> None:
        _check(self.lr, beta1=self.beta1, beta2=self.beta2)
        if not (math.isfinite(self.tau) and self.tau > 0):
            raise UsageError(f"tau is above 0, not {self.tau!r}")

    def step(
        self, before: Mapping[str, Any], average: Mapping[str, Any], state: Mapping[str, Any] | None = None
    ) -> Stepped:
        """As ``FedAvgM.step``."""

        def move(name: str, x: Doubles, way: Doubles, old: Mapping[str, Any]) -> tuple[Doubles, dict[str, Doubles]]:
            m, v = (
                (old[part][name] if name in old.get(part, {}) else start)
                for part, start in (("m", np.zeros_like(way)), ("v", np.full_like(way, self.tau**2)))
            )
            m = self.beta1 * m + (1 - self.beta1) * way
            v = self.beta2 * v + (1 - self.beta2) * (way * way)
            return x + self.lr * m / (np.sqrt(v) + self.tau), {"m": m, "v": v}

        return _step(before, average, state, move)


def _check(lr: float, **shares: float) -> None:
    if not (math.isfinite(lr) and lr > 0):
        raise UsageError(f"lr is above 0, not {lr!r}")
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise UsageError(f"{name} is at least 0 and below 1, not {share!r}")


def _step(before: Mapping[str, Any], average: Mapping[str, Any], state: Mapping[str, Any] | None, move: Any) -> Stepped:
    """Floats are moved; the others are the average's."""
    (old, _), (new, nested) = flatten(before, "before"), flatten(average, "average")
    found = difference(layout_of(new), layout_of(old))
    if found is not None:
        raise UpdateError(f"tensor {found[0]!r} of the average {found[1]}", client="average", tensor=found[0])
    tensors, kept = {}, dict[str, dict[str, Doubles]]()
    for name, tensor in new.items():
        if not is_float(tensor.dtype):
            tensors[name] = tensor
            continue
        x = widen(old[name].words, tensor.dtype)
        moved, parts = move(name, x, widen(tensor.words, tensor.dtype) - x, state or {})
        if moved.shape != x.shape:
            raise UpdateError(
                f"the state does not fit tensor {name!r}: it is of another model", client="state", tensor=name
            )
        tensors[name] = Tensor(tensor.dtype, narrow(moved, tensor.dtype).reshape(tensor.shape))
        for part, values in parts.items():
            kept.setdefault(part, {})[name] = values
    return Stepped(unflatten(tensors, nested), dict(kept))
