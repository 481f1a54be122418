"""Scores along one parameter: what every result had for it, and how each part of its range did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dibs.errors import SpaceError

from ._plain import VALUE, Plain
from ._rulers import Axis, Ruler, ruler_of, searched
from ._scored import Scored, aim_of, scored
from ._source import Source

__all__ = ["Slice", "Slices", "Spot", "Summary", "slices", "summary_of"]


@dataclass(frozen=True, slots=True)
class Spot(Plain):
    """One result: the parameter's value, the score, the trial (None: an attached result), whether it is ``feasible``,
    that is, breaks no constraint.
    """

    value: Any = field(metadata=VALUE)
    score: float
    n: int | None
    feasible: bool = True


@dataclass(frozen=True, slots=True)
class Summary(Plain):
    """How some results did: how many, the best, the mean and the median score; None of none. ``n``: the best one's trial.

    The best is one of the ``feasible`` ones, which break no constraint; mean and median are of all.
    """

    count: int
    best: float | None
    mean: float | None
    median: float | None
    n: int | None
    feasible: int


@dataclass(frozen=True, slots=True)
class Slice(Plain):
    """One parameter. ``bands``: one summary for each band of the axis. ``inactive``: results without the parameter, as
    its condition did not hold; ``outside``: results whose value is none of the parameter's. Neither is in ``spots``.
    """

    axis: Axis
    inactive: int
    outside: int
    spots: tuple[Spot, ...]
    bands: tuple[Summary, ...]


@dataclass(frozen=True, slots=True)
class Slices(Plain):
    """The slices of a study over ``results`` results, ``attached`` of them from elsewhere, ``infeasible`` of them over a
    constraint. ``goal``: what is better; with several goals that of number ``which`` of ``goals``, and all scores are its.
    """

    study: str
    store: str
    goal: str
    results: int
    attached: int
    slices: tuple[Slice, ...]
    infeasible: int = 0
    which: int = 0
    goals: int = 1


def slices(source: Source, names: Sequence[str] = (), *, goal: int = 0) -> Slices:
    """The slice of each named parameter, or of all that are no constants, for the goal of that number. Writes nothing.

    Failed and pruned trials are not in it. Raises UsageError for a parameter that the study has not, or where no goal is
    known, or there is none of that number; StoreError if the store does not answer.
    """
    aim = aim_of(source, goal)
    rows = scored(source, aim)
    points = [row.point for row in rows]
    rulers = [ruler_of(name, source.space, points) for name in dict.fromkeys(names) or searched(source.space, points)]
    return Slices(
        study=source.study, store=source.store.url, goal=aim.goal, results=len(rows),
        attached=sum(row.n is None for row in rows), slices=tuple(_slice(ruler, rows, aim.sign) for ruler in rulers),
        infeasible=sum(row.over > 0 for row in rows), which=aim.which, goals=aim.goals,
    )  # fmt: skip


def _slice(ruler: Ruler, rows: Sequence[Scored], sign: float) -> Slice:
    spots: list[Spot] = []
    bands: list[list[Scored]] = [[] for _ in ruler.axis.bands]
    inactive = outside = 0
    for row in rows:
        if ruler.name not in row.point:
            inactive += 1
            continue
        try:
            value = ruler.value(row.point[ruler.name])
        except SpaceError:
            outside += 1
            continue
        spots.append(Spot(value, row.score, row.n, not row.over))
        bands[ruler.at(value)].append(row)
    summaries = tuple(summary_of(band, sign) for band in bands)
    return Slice(ruler.axis, inactive, outside, tuple(spots), summaries)


def summary_of(rows: Sequence[Scored], sign: float) -> Summary:
    """How these results did; ties for the best by the lower index."""
    if not rows:
        return Summary(0, None, None, None, None, 0)
    feasible = [row for row in rows if not row.over]
    best = min(feasible, key=lambda row: (sign * row.score, math.inf if row.n is None else row.n), default=None)
    scores = sorted(row.score for row in rows)
    middle = len(scores) // 2
    # halves and n-ths are added: the sum of two scores may be beyond all floats
    median = scores[middle] if len(scores) % 2 else scores[middle - 1] / 2 + scores[middle] / 2
    mean = math.fsum(score / len(scores) for score in scores)
    found = (None, None) if best is None else (best.score, best.n)
    return Summary(len(rows), found[0], mean, median, found[1], len(feasible))
