"""Sweeps: a roster of cells, run by whoever claims them, their results kept, checked by loading, and only then released."""

from ._models import Artifact, Cell, Plan, Task, Value
from ._plans import add_plan, change_plan, newer_plan, newest_plan, read_plan, sweeps_in
from ._standing import STATES, CellStanding, Run, standing

__all__ = [
    "STATES", "Artifact", "Cell", "CellStanding", "Plan", "Run", "Task", "Value", "add_plan", "change_plan", "newer_plan",
    "newest_plan", "read_plan", "standing", "sweeps_in",
]  # fmt: skip
