"""What a searched function is: a space as plain data, because a peer's process knows no dibs, and a known minimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MARKS", "Function", "Spec", "When", "at", "drawn"]

#: after so many trials a game is looked at
MARKS = (50, 100, 200, 300, 500)

#: name -> ("float", low, high, log), ("int", low, high, log) or ("choice", values); a parent stands before its children
Spec = dict[str, tuple[Any, ...]]
#: name -> (parent, the parent's values with which it is there)
When = Mapping[str, tuple[str, tuple[Any, ...]]]


@dataclass(frozen=True)
class Function:
    """One function of a point (a dict), its space and its minimum.

    ``seen(true value, normal number)`` is the score that a sampler is told; None: the true value. ``floor``: the regret
    below which nothing is told apart.
    """

    name: str
    space: Spec
    value: Callable[[dict[str, Any]], float]
    least: float
    seen: Callable[[float, float], float] | None = None
    when: When = field(default_factory=dict)
    floor: float = 1e-5


def drawn(space: Spec, when: When, rng: Any) -> dict[str, Any]:
    """A point by chance: even in what is searched, logarithms included. Every parameter takes one number."""
    point: dict[str, Any] = {}
    for name, s in space.items():
        u = rng.uniform()
        if name in when and point.get(when[name][0]) not in when[name][1]:
            continue
        point[name] = at(s, u)
    return point


def at(s: tuple[Any, ...], u: float) -> Any:
    """The value of a parameter at a place in [0, 1)."""
    if s[0] == "choice":
        return s[1][int(u * len(s[1]))]
    half = 0.5 if s[0] == "int" else 0.0
    low, high = s[1] - half, s[2] + half
    value = low * (high / low) ** u if s[3] else low + (high - low) * u
    return min(max(round(value), s[1]), s[2]) if s[0] == "int" else value
