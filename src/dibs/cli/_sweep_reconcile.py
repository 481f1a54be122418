"""``dibs sweep reconcile``: is every result there?"""

from __future__ import annotations

import click

from dibs.sweep import Reconciled, reconcile

from ._options import as_json, command, store_option, sweep_option, verbose
from ._status import plural
from ._sweep_opening import files_step, open_plan
from ._text import json_text, out, safe, table

__all__ = ["reconciled_json", "say_findings", "verb"]


@command("reconcile")
@store_option
@sweep_option
@click.option("--quick", is_flag=True, help="Compare sizes only: nothing is read.")
@as_json
@verbose
def verb(store: str | None, sweep: str | None, quick: bool, as_json: bool) -> int:
    """Hold the roster against the durable copies.

    Every cell of the plan, what the attempts at it say, and the copies themselves, every byte of which is read and hashed:
    what is missing, empty, truncated or of another hash, ran twice or never, and what nobody asked for, each with what to do.
    Changes nothing.

    \b
    Example:
      dibs sweep reconcile --store /mnt/shared/studies --name ablation
      dibs sweep reconcile --quick --json

    Exit codes: 0 every cell is done and its copies are what they should be; 1 something is missing or damaged; 2 usage, or
    no such sweep; 3 store unusable; 5 it has no cells; 6 all that is missing is being run; 7 a durable copy failed.
    """
    opened, plan = open_plan(store, sweep)
    found = reconcile(opened, plan, quick=quick, step=files_step("looked at"))
    if as_json:
        out(json_text({"sweep": plan.sweep, "plan": plan.version, **reconciled_json(found)}))
    else:
        out(
            f"sweep {safe(plan.sweep)}, plan {plan.version}: {len(found.proven)} of {plural(found.active, 'cell')} proven"
        )
        say_findings(found)
    return found.exit_code


def reconciled_json(found: Reconciled) -> dict[str, object]:
    """As plain data."""
    return {
        "clean": found.clean, "active": found.active, "proven": list(found.proven), "quick": found.quick,
        "where": found.where, "findings": [each.to_json() for each in found.findings],
    }  # fmt: skip


def say_findings(found: Reconciled) -> None:
    """The differences as a table, or that there is none."""
    if found.findings:
        rows = [(each.kind, each.cell or "", each.file or "", each.what, each.cure) for each in found.findings]
        table(("what", "cell", "file", "seen", "cure"), rows, indent=2)
    if found.active == 0:
        out("no cell is to be run: 0 of 0 proves nothing")
    elif found.clean:
        out(
            f"every result is there, in {safe(found.where)}"
            + (" (sizes only: no byte was read)" if found.quick else "")
        )
