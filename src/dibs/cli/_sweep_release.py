"""``dibs sweep release``: may the machines go?"""

from __future__ import annotations

import click

from dibs.sweep import release

from ._options import as_json, command, me_option, store_option, sweep_option, verbose
from ._sweep_opening import files_step, steer_plan
from ._text import json_text, out, safe

__all__ = ["verb"]


@command("release")
@store_option
@sweep_option
@click.option("--approve", metavar="NAME", help="Who answers for it.")
@click.option(
    "--verified",
    "verified_as",
    metavar="DEST",
    help="The pulled folder, or its manifest's digest.  [default: any verified]",
)
@me_option
@as_json
@verbose
def verb(
    store: str | None, sweep: str | None, approve: str | None, verified_as: str | None, me: str | None, as_json: bool
) -> int:
    """Say whether the machines may go.

    They may once every cell is done and its copies are what they should be (all of them are read again), a pull of just these
    results was verified at this version of the plan, and somebody gave a name. Then that is recorded in the store, and
    the exit code is 0; until then it lists what is missing. Put what ends a machine behind it.

    \b
    Example:
      dibs sweep release --store /mnt/shared/studies --name A --approve "J. Doe" \\
        && poweroff

    Exit codes: 0 released, now or before; 1 something is missing or damaged; 2 usage, or no --approve; 3 store unusable; 4
    not verified as it is now; 5 it has no cells; 6 cells are being run; 7 a durable copy failed.
    """
    opened, plan = steer_plan(store, sweep)
    told = release(opened, plan, approve=approve, verified_as=verified_as, me=me, step=files_step("read"))
    if as_json:
        out(
            json_text(
                {
                    "sweep": plan.sweep, "plan": told.plan, "released": told.record is not None, "already": told.already,
                    "missing": list(told.missing), "release": dict(told.record) if told.record is not None else None,
                }
            )
        )  # fmt: skip
    elif told.record is not None:
        was = "was released before" if told.already else "is released"
        record = told.record
        out(
            f"sweep {safe(plan.sweep)} {was}: {record['cells']} cells, plan {record['plan']}, manifest "
            f"{safe(record['manifest'], 19)}, approved by {safe(record['approve'])}"
        )
    else:
        out(f"sweep {safe(plan.sweep)} is not released:")
        for text in told.missing:
            out(f"  {safe(text)}")
    return told.exit_code
