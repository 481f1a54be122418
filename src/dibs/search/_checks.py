"""What arguments of samplers and pruners must be, said in one sentence each."""

from __future__ import annotations

import math
from typing import Any

from dibs._canon import plain
from dibs.errors import UsageError

__all__ = ["a_count", "a_number"]


def a_count(name: str, value: Any, least: int = 0) -> int:
    """An int of at least ``least``, below 2**63. Raises UsageError."""
    value = plain(value)
    if type(value) is not int or not least <= value < 2**63:
        raise UsageError(f"{name}={_shown(value)} must be an int of at least {least}")
    return value


def a_number(name: str, value: Any) -> float:
    """A finite number. Raises UsageError."""
    value = plain(value)
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UsageError(f"{name}={_shown(value)} must be a finite number")
    return number


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:  # an int of more digits than Python writes
        return "a number of thousands of digits"
