"""What a planner has to know of a sweep's trials: which cells are settled, and how long the finished ones took."""

from __future__ import annotations

from dibs.store import Store, SweepKeys
from dibs.study._results import results_of
from dibs.study._view import view_of

from ._costs import Finished
from ._models import Plan

__all__ = ["finished_in"]


def finished_in(store: Store, plan: Plan) -> tuple[list[Finished], dict[int, tuple[str, str]]]:
    """(cells that were run to their end, trial -> its state and the host that has it). Raises StoreError."""
    view = view_of(store, plan.sweep, SweepKeys(plan.sweep))
    view.refresh()
    finished, states = [], {}
    for result in results_of(view):
        cell = plan.cell(result.n)
        states[result.n] = (result.state, result.who.host)
        if cell is not None and result.state == "done" and result.took is not None:
            finished.append(Finished(cell, result.took, result.who.host))
    return finished, states
