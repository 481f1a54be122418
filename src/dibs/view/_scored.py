"""The results that pictures of a study are made of: one number each, of the goal that is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dibs.errors import UsageError
from dibs.study._results import finished_of
from dibs.study._scoring import count_of

from ._source import Source

__all__ = ["Aim", "Scored", "aim_of", "scored"]


class Aim(NamedTuple):
    """Which goal is looked at: number ``which`` of ``goals``, from 0. ``sign``: 1 if less is better, -1 if more is."""

    goal: str
    which: int
    goals: int

    @property
    def sign(self) -> float:
        return 1.0 if self.goal == "min" else -1.0


class Scored(NamedTuple):
    """A done trial, or an attached result (``n`` None). ``point`` is shared: nobody writes into it.

    ``over``: by how much it breaks its constraints, 0 if it breaks none.
    """

    n: int | None
    point: dict[str, Any]
    score: float
    over: float = 0.0


def aim_of(source: Source, goal: int = 0) -> Aim:
    """The goal of that number. Raises UsageError where no goal is known, or there is none of that number."""
    known = source.goal
    if known is None:
        raise UsageError(
            f"study {source.study!r} has no definition, and its records agree on no goal: nobody knows what is better"
        )
    goals = known if isinstance(known, tuple) else (known,)
    if type(goal) is not int or not 0 <= goal < len(goals):
        there = f"goals 0 to {len(goals) - 1}" if len(goals) > 1 else "one goal, number 0"
        raise UsageError(f"study {source.study!r} has {there}: there is no goal {goal!r}")
    return Aim(goals[goal], goal, len(goals))


def scored(source: Source, aim: Aim) -> list[Scored]:
    """Every done trial and every attached result, attached ones first, then by index. Scores are finite."""
    return list(_scored(source, aim))


def _scored(source: Source, aim: Aim) -> Iterator[Scored]:
    history = finished_of(source.view, goals=count_of(source.goal))
    columns = history.n.tolist(), history.points, history.scores[:, aim.which].tolist(), history.excess.tolist()
    for n, point, score, excess in zip(*columns, strict=True):
        if score == score:  # not nan: a record of other goals, written by hand
            yield Scored(None if n < 0 else n, dict(point), score, max(0.0, excess) if excess == excess else 0.0)
