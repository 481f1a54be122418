"""``dibs sweep accept CELL...``: what only a person can decide, answered and written down."""

from __future__ import annotations

import click

from dibs.sweep import accept

from ._options import as_json, command, me_option, store_option, sweep_option, verbose
from ._sweep_opening import steer_plan
from ._text import json_text, out, place_of, safe

__all__ = ["verb"]


@command("accept")
@click.argument("names", nargs=-1, required=True, metavar="CELL...")
@store_option
@sweep_option
@click.option("--approve", metavar="NAME", help="Who answers for it.")
@click.option("--why", metavar="TEXT", default="", help="What is known of it, for those who read it later.")
@me_option
@as_json
@verbose
def verb(
    names: tuple[str, ...], store: str | None, sweep: str | None, approve: str | None, why: str, me: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Answer for what only a person can decide.

    A config that was edited while its cell ran: you know, from its log perhaps, that the cell read the planned one. An attempt
    that is quiet, at a cell that is done or dropped: you know that its machine is gone. Reconcile then tells it as accepted, by
    whom, and no longer as a fault. It holds for that attempt as it is now: another one, or one that moves again, is asked about anew.

    \b
    Example:
      dibs sweep accept wide --store /mnt/shared/studies --name ablation \\
        --approve "J. Doe" --why "only a comment was edited"

    Exit codes: 0 accepted, now or before; 2 usage, no such cell, no --approve, or nothing to accept; 3 store unusable.
    """
    opened, plan = steer_plan(store, sweep)
    given = accept(opened, plan, names, approve=approve or "", why=why, me=me)
    if as_json:
        out(json_text({"sweep": plan.sweep, "accepted": [each.to_json() for each in given]}))
        return 0
    for each in given:
        before = "was accepted before" if each.already else "accepted"
        reason = f" ({safe(each.answer.why)})" if each.answer.why else ""
        out(
            f"{safe(each.doubt.cell)}: {before}, {safe(each.answer.approve)} answers for it{reason}: {safe(each.doubt.what)}"
        )
    out(f"next: dibs sweep reconcile {place_of(opened.url, plan.sweep)}")
    return 0
