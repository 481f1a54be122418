"""Which cells are begun first: the longest, by what finished cells have taught, so that the last hour is not one machine's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dibs.store import Store

from ._costs import costs_of, longest_first
from ._finished import finished_in
from ._models import Cell, Plan

__all__ = ["Order", "longest"]

Order = Callable[[Store, Plan, Sequence[Cell]], Sequence[Cell]]


def longest(store: Store, plan: Plan, cells: Sequence[Cell]) -> list[Cell]:
    """The cells by cost, declared or learned, equal ones by their number. Raises StoreError."""
    finished, _ = finished_in(store, plan)
    return sorted(cells, key=longest_first(costs_of(plan.cells, finished, plan.hosts)))
