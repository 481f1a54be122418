"""When a sweep will be finished, at the pace so far. Pure; a guess, and said to be one."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ._runs import CellStanding

__all__ = ["left_s"]


def left_s(standings: Sequence[CellStanding]) -> float | None:
    """Seconds until all cells are run, if as many run at once as now; None while no cell is done, or none runs.

    What a cell takes is its declared cost times what a unit of cost took in the median of done cells; where any cell has no
    cost, all count the same. A running cell counts as half done.
    """
    active = [each for each in standings if each.active]
    costs = {each.cell.name: each.cell.cost or 0.0 for each in active}
    if not all(cost > 0 for cost in costs.values()):
        costs = dict.fromkeys(costs, 1.0)
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
