"""How the values of several clients become one: weighted mean, coordinate median or trimmed mean. Pure.

Everything is done value by value in float64 and in the order of the clients, and nothing is summed by a library in an
order of its own, so that every machine gets the very same bits, whatever piece of a tensor it looks at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from dibs.errors import UsageError

from ._values import Array, is_float, narrow, widen

__all__ = ["Rule", "combine", "squares", "sum_of", "weights_of"]

Others = Literal["first", "max"]
_LARGE = 2.0**1000
Doubles = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """What everybody who averages has to agree on.

    ``robust``: None (the weighted mean), ``"median"`` or ``"trimmed:0.1"`` (that share is left out at either end);
    ``clip``: the longest distance from the base an update may have; ``bad``: what becomes of an update with NaN or an
    infinity, ``"stop"`` or ``"drop"``; ``others``: of tensors that are no floats, ``"first"`` client's or ``"max"``.
    Raises UsageError.
    """

    robust: str | None = None
    clip: float | None = None
    bad: Literal["stop", "drop"] = "stop"
    others: Others = "first"

    def __post_init__(self) -> None:
        if self.robust not in (None, "median"):
            trim_of(self.robust)
        if self.clip is not None and not (
            type(self.clip) in (int, float) and math.isfinite(self.clip) and self.clip > 0
        ):
            raise UsageError(f"clip is a length above 0, not {self.clip!r}")
        if self.bad not in ("stop", "drop"):
            raise UsageError(f"bad is 'stop' or 'drop', not {self.bad!r}")
        if self.others not in ("first", "max"):
            raise UsageError(f"others is 'first' or 'max', not {self.others!r}")

    def to_json(self) -> dict[str, Any]:
        clip = None if self.clip is None else float(self.clip)
        return {"robust": self.robust, "clip": clip, "bad": self.bad, "others": self.others}


def trim_of(robust: object) -> float:
    """The share of ``trimmed:SHARE``. Raises UsageError."""
    if isinstance(robust, str) and robust.startswith("trimmed:"):
        try:
            share = float(robust.removeprefix("trimmed:"))
        except ValueError:
            share = math.nan
        if 0 < share < 0.5:
            return share
    raise UsageError(f"robust is None, 'median' or 'trimmed:SHARE' with a share between 0 and 0.5, not {robust!r}")


def weights_of(sizes: Mapping[str, float | None], rule: Rule) -> list[float] | None:
    """Each client's part of the mean, in the mapping's order; None where nobody is weighed.

    Sizes are all None (equal parts) or none is. Raises UsageError for a mixture, for sizes that are no numbers >= 0 or
    all 0, and for sizes given to a rule that weighs nobody.
    """
    without = [client for client, size in sizes.items() if size is None]
    if without and len(without) < len(sizes):
        some = next(client for client in sizes if client not in without)
        raise UsageError(f"{some!r} has a size and {without[0]!r} has none: give all clients one, or none")
    if rule.robust is not None:
        if not without and sizes:
            raise UsageError(f"robust={rule.robust!r} weighs nobody: leave the sizes out")
        return None
    if without:
        return [1.0 / len(sizes)] * len(sizes)
    numbers = {client: _size(client, size) for client, size in sizes.items()}
    top = max(numbers.values(), default=0.0)
    if top > _LARGE:  # their sum may be beyond a float
        numbers = {client: size * 2.0**-64 for client, size in numbers.items()}
    total = math.fsum(numbers.values())
    if not total > 0:
        raise UsageError("the sizes are all 0: nothing weighs anything")
    return [size / total for size in numbers.values()]


def _size(client: str, size: object) -> float:
    # bool is an int, and no size
    if isinstance(size, bool) or not isinstance(size, int | float | np.integer | np.floating):
        raise UsageError(f"the size of {client!r} is a number, not {size!r}")
    try:
        number = float(size)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"the size of {client!r} is 0 or more, and finite, not {size!s:.60}")
    return number


def combine(
    pieces: Sequence[Array],
    dtype: str,
    rule: Rule,
    weights: Sequence[float] | None,
    scales: Sequence[float] | None = None,
    base: Array | None = None,
) -> Array:
    """The same piece of one tensor of each client (flat words) as one. ``scales``: how much of each one's way from ``base``."""
    if not is_float(dtype):
        return _others(pieces, rule)
    values = [widen(piece, dtype) for piece in pieces]
    if scales is not None:
        origin = 0.0 if base is None else widen(base, dtype)
        values = [
            value if scale == 1.0 else origin + scale * (value - origin)
            for value, scale in zip(values, scales, strict=True)
        ]
    return narrow(_mean(values, weights) if weights is not None else _middle(values, rule.robust), dtype)


def _mean(values: Sequence[Doubles], weights: Sequence[float]) -> Doubles:
    total = weights[0] * values[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total += weight * value
    return total


def _middle(values: Sequence[Doubles], robust: str | None) -> Doubles:
    # + 0.0: -0.0 and 0.0 are equal, and which of them a sort puts first is the processor's choice
    ranked = np.sort(np.stack(values) + 0.0, axis=0)
    count = len(values)
    if robust == "median":
        low, high = ranked[(count - 1) // 2], ranked[count // 2]
        halves: Doubles = low if count % 2 else 0.5 * low + 0.5 * high
        return halves
    out = math.floor(trim_of(robust) * count)
    kept = [0.0 + row for row in ranked[out : count - out]]
    return _mean(kept, [1.0 / len(kept)] * len(kept))


def _others(pieces: Sequence[Array], rule: Rule) -> Array:
    if rule.others == "first":
        return pieces[0].copy()
    most = pieces[0]
    for piece in pieces[1:]:
        most = np.maximum(most, piece)
    return most.astype(pieces[0].dtype)


def squares(words: Array, base: Array | None, dtype: str) -> float:
    """The sum of the squared distances from the base, of one piece."""
    way = widen(words, dtype) if base is None else widen(words, dtype) - widen(base, dtype)
    return sum_of(way * way)


def sum_of(values: Doubles) -> float:
    """The sum, halving and adding, so that its order is this one on every processor."""
    while len(values) > 1:
        half = len(values) // 2
        rest = values[2 * half :]
        values = values[:half] + values[half : 2 * half]
        if len(rest):
            values[0] += rest[0]
    return float(values[0]) if len(values) else 0.0
