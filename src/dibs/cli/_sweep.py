"""``dibs sweep``: the verbs of sweeps by name, each loaded when it is used (``_sweep_<verb>``)."""

from __future__ import annotations

import click

from ._group import Verbs, overview

__all__ = ["SWEEP_VERBS", "verb"]

#: verb -> what it does, in the order in which one needs them
SWEEP_VERBS = {
    "plan": "Make a sweep of queue files, or change one.",
    "run": "Run cells of a sweep on this machine.",
    "status": "Show how far a sweep is.",
    "reconcile": "Hold the roster against the durable copies.",
    "pull": "Bring the durable copies here.",
    "verify": "Load every file that was pulled.",
    "retry": "Let cells that failed be run again.",
    "accept": "Answer for what only a person can decide.",
    "release": "Say whether the machines may go.",
}
EPILOG = """\b
Example:
  dibs sweep plan cells.queue --store S --name A --artifact best.pth \\
    -- ./run_one.sh {cfg} {task} {epochs}
  dibs sweep run --store S --name A

\b
Exit codes: 0 ok; 1 some cells failed, or something is missing; 2 usage; 3
store unusable; 4 refused; 5 nothing to show; 6 left unfinished: others hold
cells; 7 a durable copy failed.
"""


class _Sweep(Verbs):
    table = SWEEP_VERBS
    modules = "dibs.cli._sweep_"


@click.command("sweep", cls=_Sweep, epilog=EPILOG, no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def verb(ctx: click.Context) -> int:
    """Run a list of cells, and prove that nothing is missing.

    A cell is a line of a queue file: a config, a task, epochs. Machines claim cells through the store; what they
    leave is copied, compared with the roster, loaded, and only then released. The verbs stand in the order in which one
    needs them, and --store and --name may stand in DIBS_STORE, DIBS_SWEEP or a dibs.toml.
    """
    return overview(ctx)
