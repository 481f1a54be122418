"""What counts as a score, and which of two is better. Pure."""

from __future__ import annotations

import math
from typing import Any

from dibs._canon import plain

__all__ = ["better", "finite", "wanted"]

_NO_NUMBERS = (bool, str, bytes, bytearray, complex)


def finite(value: Any) -> float | None:
    """The score as a float, or None if it is none: True, a text, an array, NaN, what raises when asked for its number."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    try:
        value = plain(value)
        if isinstance(value, _NO_NUMBERS) or getattr(value, "ndim", 0) != 0:
            return None
        if str(getattr(value, "dtype", "")).endswith("bool"):  # a tensor's True is no score either
            return None
        number = float(value)
    except Exception:
        return None
    return number if math.isfinite(number) else None


def better(one: float, other: float | None, maximize: bool) -> bool:
    """Whether it beats the other strictly; None is beaten by anything."""
    return other is None or (one > other if maximize else one < other)


def wanted(score: float, own: float | None, others: float | None, maximize: bool) -> bool:
    """Whether a process should record it: it beats its own, or, as its first, is not beaten by what others had."""
    if own is not None:
        return better(score, own, maximize)
    return others is None or not better(others, score, maximize)
