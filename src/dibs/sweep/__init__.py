"""Sweeps: a roster of cells, run by whoever claims them, their results kept, checked by loading, and only then released."""

from ._models import Artifact, Cell, Plan, Task, Value
from ._plans import add_plan, change_plan, newer_plan, newest_plan, read_plan, sweeps_in

__all__ = [
    "Artifact", "Cell", "Plan", "Task", "Value", "add_plan", "change_plan", "newer_plan", "newest_plan", "read_plan",
    "sweeps_in",
]  # fmt: skip
