"""``reconcile``: is every result there, and is it what it was when it was copied? Changes nothing."""

from __future__ import annotations

from dibs.store import Store

from ._findings import Reconciled
from ._homes import unmarked
from ._inventory import Step, take_inventory
from ._marks import accepted_in
from ._models import Plan
from ._reconcile import compare
from ._standing import standing
from ._unplanned import unplanned

__all__ = ["reconcile"]


def reconcile(
    store: Store, plan: Plan, *, quick: bool = False, threads: int = 4, step: Step | None = None
) -> Reconciled:
    """Hold the roster against the durable copies, every byte of which is read. ``quick``: their sizes only.

    ``step`` is told (files read, files there are). Raises StoreError if the store, or the place of the copies, does not
    answer.
    """
    standings = standing(store, plan, probe=True)
    there = take_inventory(store, plan, standings, quick=quick, threads=threads, step=step)
    return compare(
        plan, standings, there, unplanned(store, plan), accepted_in(store, plan.sweep), unmarked(store, plan, standings)
    )
