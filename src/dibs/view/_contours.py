"""Scores over two parameters: what every result had for both, and how each cell of the plane did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dibs.errors import SpaceError, UsageError

from ._plain import VALUE, Plain
from ._rulers import Axis, ruler_of
from ._scored import Scored, aim_of, scored
from ._slices import Summary, summary_of
from ._source import Source

__all__ = ["Cell", "Contour", "Spot2", "contour"]


@dataclass(frozen=True, slots=True)
class Spot2(Plain):
    """One result: both values, the score, the trial (None: an attached result), whether it breaks no constraint."""

    x: Any = field(metadata=VALUE)
    y: Any = field(metadata=VALUE)
    score: float
    n: int | None
    feasible: bool = True


@dataclass(frozen=True, slots=True)
class Cell(Plain):
    """Where band ``x`` of one axis and band ``y`` of the other meet, and how the results there did."""

    x: int
    y: int
    scores: Summary


@dataclass(frozen=True, slots=True)
class Contour(Plain):
    """Two parameters of a study. ``cells``: those with at least one result, by (y, x). ``inactive``: results without one
    of the two, as its condition did not hold; ``outside``: results with a value that is none of the parameter's;
    ``infeasible``: results over a constraint. ``goal``: what is better; with several goals that of number ``which`` of
    ``goals``, and all scores are its.
    """

    study: str
    store: str
    goal: str
    x: Axis
    y: Axis
    results: int
    attached: int
    inactive: int
    outside: int
    spots: tuple[Spot2, ...]
    cells: tuple[Cell, ...]
    infeasible: int = 0
    which: int = 0
    goals: int = 1


def contour(source: Source, x: str, y: str, *, goal: int = 0) -> Contour:
    """The results over parameters ``x`` and ``y``, for the goal of that number. Writes nothing.

    Raises UsageError for the same parameter twice or one that the study has not, or where no goal is known, or there is
    none of that number; StoreError if the store does not answer.
    """
    if x == y:
        raise UsageError(f"{x!r} twice: a contour is over two parameters")
    aim = aim_of(source, goal)
    rows = scored(source, aim)
    points = [row.point for row in rows]
    across, up = ruler_of(x, source.space, points), ruler_of(y, source.space, points)
    spots: list[Spot2] = []
    cells: dict[tuple[int, int], list[Scored]] = {}
    inactive = outside = 0
    for row in rows:
        if x not in row.point or y not in row.point:
            inactive += 1
            continue
        try:
            at_x, at_y = across.value(row.point[x]), up.value(row.point[y])
        except SpaceError:
            outside += 1
            continue
        spots.append(Spot2(at_x, at_y, row.score, row.n, not row.over))
        cells.setdefault((up.at(at_y), across.at(at_x)), []).append(row)
    return Contour(
        study=source.study, store=source.store.url, goal=aim.goal, x=across.axis, y=up.axis, results=len(rows),
        attached=sum(row.n is None for row in rows), inactive=inactive, outside=outside, spots=tuple(spots),
        cells=tuple(Cell(at[1], at[0], summary_of(found, aim.sign)) for at, found in sorted(cells.items())),
        infeasible=sum(row.over > 0 for row in rows), which=aim.which, goals=aim.goals,
    )  # fmt: skip
