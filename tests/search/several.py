"""Functions of several goals and constraints, and how good the front is that a sampler finds: its hypervolume.

ZDT1, ZDT2 (Zitzler, Deb and Thiele 2000), BNH (Binh and Korn 1997) and two made for these tests, of whose cube 1 or 2
in 100 points are allowed. All of them are played by workers one slower than the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dibs.search import History, Sampler, non_dominated
from dibs.space import Float, Space

WORKERS = 5


class Case(NamedTuple):
    """What is searched: ``answer`` makes of a point (scores, excess or None)."""

    space: Space
    answer: Callable[[Any], tuple[Any, float | None]]
    goals: Any
    reference: tuple[float, float]  # the worst corner, in the sense of less is better


def _zdt(power: float) -> Callable[[Any], tuple[Any, None]]:
    def answer(point: Any) -> tuple[Any, None]:
        first, *rest = point.values()
        g = 1.0 + 9.0 * sum(rest) / len(rest)
        return (first, g * (1.0 - (first / g) ** power)), None

    return answer


def _bnh(point: Any) -> tuple[Any, float]:
    x, y = point["x"], point["y"]
    over = [(x - 5) ** 2 + y**2 - 25, 7.7 - (x - 8) ** 2 - (y + 3) ** 2]
    return (4 * x * x + 4 * y * y, (x - 5) ** 2 + (y - 5) ** 2), excess_of(over)


def _disc(point: Any) -> tuple[Any, float]:
    """Gain to be large and price to be small, in a small ball around a point that neither wants."""
    x = list(point.values())
    price = sum(x) / len(x)
    gain = math.sqrt(x[0] * x[1])
    return (price, gain), excess_of([sum((at - 0.6) ** 2 for at in x) - 0.04])


def _alone(point: Any) -> tuple[float, float]:
    """One goal: as small as possible, but on the far side of a line."""
    x = list(point.values())
    return sum((at - 0.2) ** 2 for at in x), excess_of([1.9 - sum(x), x[0] - 0.5])


def excess_of(values: list[float]) -> float:
    """What a study makes of constraints."""
    over = sum(value for value in values if value > 0)
    return over if over > 0 else max(values)


def cube(dims: int) -> Space:
    """The unit cube."""
    return Space({f"x{i}": Float(0, 1) for i in range(dims)})


CASES = {
    "zdt1": Case(cube(6), _zdt(0.5), ("min", "min"), (1.1, 6.0)),
    "zdt2": Case(cube(6), _zdt(2.0), ("min", "min"), (1.1, 6.0)),
    "bnh": Case(Space(x=Float(0, 5), y=Float(0, 3)), _bnh, ("min", "min"), (140.0, 50.0)),
    "disc": Case(cube(4), _disc, ("min", "max"), (0.8, -0.4)),
    "alone": Case(cube(3), _alone, "min", (0.0, 0.0)),
}

#: what the true front dominates; of disc, what the best of 2,000,000 random points of it do
WHOLE = {"zdt1": 6.2667, "zdt2": 5.9333, "disc": 0.0898, "bnh": 5285.3}


def played(sampler: Sampler, case: Case, trials: int, workers: int = WORKERS) -> list[Any]:
    """Rows of a study in which trial n ends when n + 1 + n % workers is asked for."""
    rows: list[Any] = []
    for n in range(trials):
        seen = [row if row[0] + 1 + row[0] % workers <= n else (row[0], row[1], None, "running", None) for row in rows]
        point = sampler.ask(case.space, n, History.of(seen))
        scores, over = case.answer(point)
        rows.append((n, point, scores, "done", None, over))
    return rows


def hypervolume(rows: list[Any], case: Case) -> float:
    """The area that the front of two goals dominates, up to the reference."""
    history = History.of(rows)
    front = history.scores[non_dominated(history.scores, case.goals, history.excess)]
    turned = front * [-1.0 if goal == "max" else 1.0 for goal in case.goals]
    low, area = case.reference[1], 0.0
    for first, second in sorted(map(tuple, np.minimum(turned, case.reference).tolist())):
        area += (case.reference[0] - first) * max(low - second, 0.0)
        low = min(low, second)
    return area
