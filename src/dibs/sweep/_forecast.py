"""When a sweep will be finished, at the pace so far. Pure; a guess, and said to be one."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ._models import Cell
from ._runs import CellStanding

__all__ = ["left_s"]


def left_s(standings: Sequence[CellStanding]) -> float | None:
    """Seconds until all cells are run, if as many run at once as now; None while no cell is done, or none runs.

    What a cell takes is its declared cost times what a unit of cost took in the median of done cells; where any cell has no
    cost, its epochs instead; where any has none of these, either, all count the same. A running cell counts as half done.
    """
    active = [each for each in standings if each.active]
    costs = _sizes([each.cell for each in active])
    paces = [
        each.counts.took_s / costs[each.cell.name]
        for each in active
        if each.state == "done" and each.counts is not None and each.counts.took_s
    ]
    running = [
        each
        for each in active
        if each.state == "running" and not (each.counts and (each.counts.quiet or each.counts.gone))
    ]
    open_ = [each for each in active if each.state in ("waiting", "interrupted", "running")]
    if not open_:
        return 0.0
    if not paces or not running:
        return None
    left = sum(costs[each.cell.name] * (0.5 if each.state == "running" else 1.0) for each in open_)
    return median(paces) * left / min(len(running), len(open_))


def _sizes(cells: Sequence[Cell]) -> dict[str, float]:
    """By name, in one unit: the first that all cells have."""
    for sized in ([cell.cost for cell in cells], [cell.fields.get("epochs") for cell in cells]):
        sizes = [float(size) for size in sized if isinstance(size, int | float) and size > 0]
        if len(sizes) == len(cells):
            return dict(zip((cell.name for cell in cells), sizes, strict=True))
    return {cell.name: 1.0 for cell in cells}
