"""The results that pictures of a study are made of: one number each, whatever else the study keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dibs.errors import UsageError
from dibs.search import Goal
from dibs.study._results import finished_of

from ._source import Source

__all__ = ["Scored", "aim_of", "scored"]


class Scored(NamedTuple):
    """A done trial, or an attached result (``n`` None). ``point`` is shared: nobody writes into it."""

    n: int | None
    point: dict[str, Any]
    score: float


def scored(source: Source) -> list[Scored]:
    """Every done trial and every attached result, attached ones first, then by index. Scores are finite."""
    return list(_scored(source))


def _scored(source: Source) -> Iterator[Scored]:
    history = finished_of(source.view)
    for n, (point, score) in zip(history.n.tolist(), history, strict=True):
        if isinstance(score, float):  # else none, or several: ``aim_of`` has refused
            yield Scored(None if n < 0 else n, dict(point), score)


def aim_of(source: Source) -> tuple[Goal, float]:
    """The goal, and 1 if less is better, -1 if more is. Raises UsageError where no goal is known, or several are."""
    if source.goal == "min":
        return "min", 1.0
    if source.goal == "max":
        return "max", -1.0
    if source.goal is None:
        raise UsageError(
            f"study {source.study!r} has no definition, and its records agree on no goal: nobody knows what is better"
        )
    raise UsageError(f"study {source.study!r} has several goals {source.goal!r}: this shows one number per trial")
