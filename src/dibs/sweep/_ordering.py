"""Which cells are begun first: as a file has them that somebody wrote for it, else the longest, so that the last hour is not
one machine's."""

from __future__ import annotations

from collections.abc import Sequence

from dibs.store import Store

from ._costs import costs_of, longest_first
from ._finished import finished_in
from ._models import Cell, Plan
from ._selected import Only

__all__ = ["in_order"]


def in_order(store: Store, plan: Plan, cells: Sequence[Cell], only: Only | None = None) -> list[Cell]:
    """The cells as the file of ``only`` has them, if that is none of the plan's, else by cost, declared or learned, the
    longest first; equal ones by their number. Raises StoreError.
    """
    if only is not None and only.order:
        at = {name: place for place, name in enumerate(only.order)}
        return sorted(cells, key=lambda cell: (at.get(cell.name, len(at)), cell.n))
    finished, _ = finished_in(store, plan)
    return sorted(cells, key=longest_first(costs_of(plan.cells, finished, plan.hosts)))
