"""Sweeps: a roster of cells, run by whoever claims them, their results kept, checked by loading, and only then released."""

from ._configs import config_places
from ._costs import Costs, costs_of, longest_first
from ._halting import HaltRule
from ._models import Artifact, Cell, Plan, Task, Value
from ._outlook import Outlook, outlook
from ._planning import Planned, Planning, carry_out, plan_sweep
from ._plans import add_plan, change_plan, newer_plan, newest_plan, read_plan, sweeps_in
from ._prove import reconcile
from ._reconcile import Finding, Reconciled
from ._rereading import reread
from ._running import SweepEnd, run_sweep
from ._runs import STATES, CellStanding, Run
from ._selected import Only, selected
from ._shares import cells_named, write_shares
from ._standing import standing
from ._task import FIELDS, Wanted, fields_of
from ._where import isolation_said, log_of

__all__ = [
    "FIELDS", "STATES", "Artifact", "Cell", "CellStanding", "Costs", "Finding", "HaltRule", "Only", "Outlook", "Plan",
    "Planned", "Planning", "Reconciled", "Run", "SweepEnd", "Task", "Value", "Wanted", "add_plan", "carry_out",
    "cells_named", "change_plan", "config_places", "costs_of", "fields_of", "isolation_said", "log_of", "longest_first",
    "newer_plan", "newest_plan", "outlook", "plan_sweep", "read_plan", "reconcile", "reread", "run_sweep", "selected",
    "standing", "sweeps_in", "write_shares",
]  # fmt: skip
