"""Sweeps: a roster of cells, run by whoever claims them, their results kept, checked by loading, and only then released."""

from ._accepting import Acceptance, accept
from ._configs import config_places
from ._costs import Costs, costs_of, longest_first
from ._findings import Finding, Reconciled
from ._halting import HaltRule
from ._models import Artifact, Cell, Plan, Task, Value
from ._outlook import Outlook, outlook
from ._planning import Planned, Planning, carry_out, plan_sweep
from ._plans import add_plan, change_plan, newer_plan, newest_plan, read_plan, sweeps_in
from ._prove import reconcile
from ._pull import Pulled, pull
from ._release import Released, release
from ._rereading import reread
from ._retry import Retried, retry
from ._retrying import Decision
from ._running import SweepEnd, run_sweep
from ._runs import STATES, CellStanding, Run
from ._selected import Only, selected
from ._shares import cells_named, write_shares
from ._standing import standing
from ._task import FIELDS, Wanted, fields_of
from ._verify import Fault, Rules, Verified, verify
from ._where import isolation_said, log_of

__all__ = [
    "FIELDS", "STATES", "Acceptance", "Artifact", "Cell", "CellStanding", "Costs", "Decision", "Fault", "Finding", "HaltRule",
    "Only", "Outlook", "Plan", "Planned", "Planning", "Pulled", "Reconciled", "Released", "Retried", "Rules", "Run",
    "SweepEnd", "Task", "Value", "Verified", "Wanted", "accept", "add_plan", "carry_out", "cells_named", "change_plan",
    "config_places", "costs_of", "fields_of", "isolation_said", "log_of", "longest_first", "newer_plan", "newest_plan",
    "outlook", "plan_sweep", "pull", "read_plan", "reconcile", "release", "reread", "retry", "run_sweep", "selected",
    "standing", "sweeps_in", "verify", "write_shares",
]  # fmt: skip
