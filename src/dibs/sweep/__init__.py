"""Sweeps: a roster of cells, run by whoever claims them, their results kept, checked by loading, and only then released."""

from ._models import Artifact, Cell, Plan, Task, Value
from ._plans import add_plan, change_plan, newer_plan, newest_plan, read_plan, sweeps_in
from ._prove import reconcile
from ._pull import Pulled, pull
from ._reconcile import Finding, Reconciled
from ._runs import STATES, CellStanding, Run
from ._standing import standing

__all__ = [
    "STATES", "Artifact", "Cell", "CellStanding", "Finding", "Plan", "Pulled", "Reconciled", "Run", "Task", "Value", "add_plan",
    "change_plan", "newer_plan", "newest_plan", "pull", "read_plan", "reconcile", "standing", "sweeps_in",
]  # fmt: skip
