"""What arguments of samplers and pruners must be, said in one sentence each."""

from __future__ import annotations

import math
from typing import Any

from dibs._canon import plain
from dibs.errors import UsageError

__all__ = ["a_count", "a_number"]


def a_count(name: str, value: Any, least: int = 0) -> int:
    """An int of at least ``least``, below 2**53. Raises UsageError."""
    value = plain(value)
    if type(value) is not int or not least <= value < 2**53:
        raise UsageError(f"{name}={value!r:.80} must be an int of at least {least}")
    return value


def a_number(name: str, value: Any) -> float:
    """A finite number. Raises UsageError."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"{name}={value!r:.80} must be a finite number")
    return float(value)
