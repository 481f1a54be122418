"""Sweeps: a roster of cells, run by whoever claims them, their results kept, checked by loading, and only then released.

Each verb loads what it needs: one that shows how a sweep stands runs no cell and reads no checkpoint.
"""

from typing import TYPE_CHECKING

from dibs._lazy import lazily

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazily(__name__, {
    "_accepting": ["Acceptance", "accept"],
    "_configs": ["config_places"],
    "_costs": ["Costs", "costs_of", "longest_first"],
    "_findings": ["Finding", "Reconciled"],
    "_halting": ["HaltRule"],
    "_models": ["Artifact", "Cell", "Plan", "Task", "Value"],
    "_outlook": ["Outlook", "outlook"],
    "_planning": ["Planned", "Planning", "carry_out", "plan_sweep"],
    "_plans": ["add_plan", "change_plan", "newer_plan", "newest_plan", "read_plan", "sweeps_in"],
    "_prove": ["reconcile"],
    "_pull": ["Pulled", "pull"],
    "_release": ["Released", "release"],
    "_rereading": ["reread"],
    "_retry": ["Retried", "retry"],
    "_retrying": ["Decision"],
    "_running": ["SweepEnd", "run_sweep"],
    "_runs": ["STATES", "CellStanding", "Run"],
    "_selected": ["Only", "selected"],
    "_shares": ["cells_named", "write_shares"],
    "_standing": ["standing"],
    "_task": ["FIELDS", "Wanted", "fields_of"],
    "_verify": ["Fault", "Rules", "Verified", "verify"],
    "_where": ["isolation_said", "log_of"],
})  # fmt: skip
