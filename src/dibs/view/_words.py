"""Numbers and points as people read them. What is not ours (names, values) is not made safe here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ago", "constraints_text", "duration", "goal_text", "point_text", "score_text", "scores_text"]

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def duration(seconds: float | None) -> str:
    """``<1ms``, ``420ms``, ``3.1s``, ``12s``, ``3m 20s``, ``2h 5m``, ``4d 1h``; ``-`` for None."""
    if seconds is None:
        return "-"
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f}ms" if seconds >= 0.001 else "<1ms"
    if seconds < 59.5:
        return f"{seconds:.1f}s" if seconds < 9.95 else f"{seconds:.0f}s"
    whole = round(seconds)
    at = next(at for at, (_, size) in enumerate(_UNITS) if whole >= size)
    (unit, size), (below, part) = _UNITS[at], _UNITS[at + 1]
    rest = whole % size // part
    return f"{whole // size}{unit} {rest}{below}" if rest else f"{whole // size}{unit}"


def ago(seconds: float | None) -> str:
    """``3m 20s ago``, ``now`` below a second, ``never`` for None."""
    if seconds is None:
        return "never"
    return "now" if seconds < 1 else f"{duration(seconds)} ago"


def score_text(score: float | None) -> str:
    """A score to six significant digits; ``-`` for None."""
    return "-" if score is None else f"{score:.6g}"


def scores_text(scores: Sequence[float]) -> str:
    """One score or several, ``0.12, 20``; ``-`` for none."""
    return ", ".join(map(score_text, scores)) or "-"


def goal_text(goal: str | Sequence[str] | None) -> str:
    """``min``, or ``min, max``; ``?`` for None."""
    return goal if isinstance(goal, str) else ", ".join(goal) if goal else "?"


def constraints_text(constraints: Mapping[str, float] | None) -> str:
    """``memory_gb=-0.5 time_s=3 (broken)``: constraints as they were reported, those that are not met marked."""
    said = (f"{name}={score_text(value)}" + " (broken)" * (value > 0) for name, value in (constraints or {}).items())
    return " ".join(said)


def point_text(point: Mapping[str, Any]) -> str:
    """``lr=0.003 opt='adam'``: names and Python values, in the point's order."""
    return " ".join(f"{name}={value!r}" for name, value in point.items())
