"""Small pictures of characters: a line that goes up and down, and a bar. Plain ASCII where the terminal has no more."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

__all__ = ["bar", "sparkline"]

_BLOCKS, _ASCII = "▁▂▃▄▅▆▇█", "_.-=+*%#"


def sparkline(values: Sequence[float | None], width: int = 60) -> str:
    """One character for each value, or for each of ``width`` equal parts by its last value; a blank for None.

    The lowest value is the lowest mark, the highest the highest; values that are all the same are in the middle.
    """
    shown = [values[(at + 1) * len(values) // width - 1] for at in range(width)] if len(values) > width else values
    there = [value for value in shown if value is not None]
    low, high = min(there, default=0.0), max(there, default=0.0)
    return "".join(" " if value is None else _marks()[_level(value, low, high)] for value in shown)


def _level(value: float, low: float, high: float) -> int:
    if low == high:
        return 3
    span = high / 2 - low / 2  # halves: the range of floats is wider than a float
    return min(7, int(8 * min(1.0, max(0.0, (value / 2 - low / 2) / span)))) if span else 3


def bar(part: float, width: int = 20) -> str:
    """``part`` of ``width`` characters, 0 to 1; something for all that is more than nothing."""
    count = max(math.ceil(part * width) if part > 0 else 0, 0)
    return _marks()[-1] * min(count, width)


def _marks() -> str:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        _BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return _ASCII
    return _BLOCKS
