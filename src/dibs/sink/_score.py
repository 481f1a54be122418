"""What counts as a score, and which of two is better. Pure."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dibs._canon import plain
from dibs._passing import interrupts

__all__ = ["Standing", "better", "finite", "standing", "wanted"]

CROWD = 32  # equals among which to prefer one are enough: a process per trial must not mean an artefact per trial
TIES, TIES_BYTES = 7, 64 << 20  # equals that a process holds besides its first, and the most that their artefacts take
_NO_NUMBERS = (bool, str, bytes, bytearray, complex)


def finite(value: Any) -> float | None:
    """The score as a float, or None if it is none: True, a text, a date, an array, NaN, what raises when asked for its number."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    try:
        if getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):
            return None  # a date or a duration of numpy's, whose item() may be an int of nanoseconds
        value = plain(value)
        if isinstance(value, _NO_NUMBERS) or getattr(value, "ndim", 0) != 0:
            return None
        if str(getattr(value, "dtype", "")).endswith("bool"):  # a tensor's True is no score either
            return None
        number = float(value)
    except Exception as error:
        if interrupts(error):
            raise
        return None
    return number if math.isfinite(number) else None


def better(one: float, other: float | None, maximize: bool) -> bool:
    """Whether it beats the other strictly; None is beaten by anything."""
    return other is None or (one > other if maximize else one < other)


class Standing(NamedTuple):
    """The best score of some trials, None if there are none, and how many share it."""

    score: float | None = None
    tied: int = 0


def standing(scores: list[float], maximize: bool) -> Standing:
    """How they stand."""
    if not scores:
        return Standing()
    best = max(scores) if maximize else min(scores)
    return Standing(best, scores.count(best))


def wanted(score: float, own: float | None, others: Standing, maximize: bool) -> bool:
    """Whether a process should record it: it beats its own, or, as its first, what others had, or is one of few equals."""
    if better(score, own if own is not None else others.score, maximize):
        return True
    return own is None and score == others.score and others.tied < CROWD
