"""Sweeps: a roster of cells, run by whoever claims them, their results kept, checked by loading, and only then released."""

from ._models import Artifact, Cell, Plan, Task, Value
from ._plans import add_plan, change_plan, newer_plan, newest_plan, read_plan, sweeps_in
from ._prove import reconcile
from ._pull import Pulled, pull
from ._reconcile import Finding, Reconciled
from ._release import Released, release
from ._retry import Retried, retry
from ._retrying import Decision
from ._runs import STATES, CellStanding, Run
from ._standing import standing
from ._verify import Fault, Rules, Verified, verify

__all__ = [
    "STATES", "Artifact", "Cell", "CellStanding", "Decision", "Fault", "Finding", "Plan", "Pulled", "Reconciled", "Released",
    "Retried", "Rules", "Run", "Task", "Value", "Verified", "add_plan", "change_plan", "newer_plan", "newest_plan", "pull",
    "read_plan", "reconcile", "release", "retry", "standing", "sweeps_in", "verify",
]  # fmt: skip
