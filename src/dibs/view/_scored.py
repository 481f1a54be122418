"""The results that pictures of a study are made of: one number each, whatever else the study keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dibs.errors import UsageError
from dibs.study._results import finished_of

from ._source import Source

__all__ = ["Scored", "scored", "sign_of"]


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
        if score is not None:
            yield Scored(None if n < 0 else n, dict(point), score)


def sign_of(source: Source) -> float:
    """1 if less is better, -1 if more is. Raises UsageError where that has no answer."""
    if source.goal == "min":
        return 1.0
    if source.goal == "max":
        return -1.0
    if source.goal is None:
        raise UsageError(
            f"study {source.study!r} has no definition, and its records agree on no goal: nobody knows what is better"
        )
    raise UsageError(f"study {source.study!r} has several goals {source.goal!r}: this shows one number per trial")
