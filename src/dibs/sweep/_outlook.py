"""What is ahead of a sweep: what its cells cost, who would run them best and until when, and whether the disks will do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dibs.store import Store

from ._balance import Assignment, assign
from ._budget import Free, Need, needs, short_of
from ._costs import Costs, costs_of
from ._finished import finished_in
from ._free import free_for
from ._models import Cell, Plan

__all__ = ["Outlook", "outlook"]


@dataclass(frozen=True)
class Outlook:
    """``left``: cells that wait for a host; ``running``: those that have one; ``costs``: of both.

    ``assignment``: of what is left, None where no host is known. ``needs`` and ``free``: by ``final`` and ``work``;
    ``short``: a sentence for each disk that has too little.
    """

    left: tuple[Cell, ...]
    running: tuple[Cell, ...]
    costs: Costs
    assignment: Assignment | None
    needs: Mapping[str, Need]
    free: Mapping[str, Free]
    short: tuple[str, ...]


def outlook(store: Store | None, plan: Plan, root: Path | None = None) -> Outlook:
    """As things stand. ``store``: None where there is none yet, at ``root``. Raises StoreError."""
    root = store.backend.root if store is not None else root
    finished, states = finished_in(store, plan) if store is not None else ([], {})
    over = ("done", "pruned", "failed")
    open_cells = [cell for cell in plan.active if states.get(cell.n, ("", ""))[0] not in over]
    running = tuple(cell for cell in open_cells if states.get(cell.n, ("", ""))[0] == "running")
    left = tuple(cell for cell in open_cells if cell not in running)
    costs = costs_of(open_cells, finished, plan.hosts)
    speeds = dict(plan.hosts) or (dict(costs.speeds) if finished else {})
    task = plan.task
    wanted: Mapping[str, Need] = {}
    if task.checkpoint_bytes is not None or task.scratch_bytes is not None:
        at_once = max(1, len(speeds))
        final, work = needs(
            len(open_cells), min(at_once, len(open_cells)), task.checkpoint_bytes or 0, task.scratch_bytes or 0,
            len(task.artifacts),
        )  # fmt: skip
        wanted = {"final": final, "work": work}
    free = free_for(root, task)
    return Outlook(
        left, running, costs, assign(left, costs.of, speeds) if speeds else None, wanted, free, tuple(short_of(wanted, free))
    )  # fmt: skip
