"""``dibs sweep retry [NAME...]``: what failed, or is damaged, may be run once more."""

from __future__ import annotations

import click

from dibs.sweep import Retried, retry

from ._options import Whole, as_json, command, me_option, store_option, sweep_option, verbose
from ._sweep_opening import files_step, steer_plan
from ._text import json_text, out, place_of, safe, table

__all__ = ["verb"]

_HOW = {"release": "free", "renew": "free, as a new trial", None: "left"}


@command("retry")
@click.argument("names", nargs=-1, metavar="[CELL]...")
@store_option
@sweep_option
@click.option(
    "--limit", type=Whole(min=0), default=2, show_default=True, help="How many failures of a cell are tried again."
)
@click.option(
    "--yes", is_flag=True, help="Room was made for what ended on a full disk; all results are indeed damaged."
)
@click.option("--force", multiple=True, metavar="CELL", help="This cell whatever it ended by, even if it is done.")
@click.option("--quick", is_flag=True, help="Look for damage by sizes only.")
@click.option("--dry-run", is_flag=True, help="Say what would be freed, and free nothing.")
@me_option
@as_json
@verbose
def verb(
    names: tuple[str, ...], store: str | None, sweep: str | None, limit: int, yes: bool, force: tuple[str, ...],
    quick: bool, dry_run: bool, me: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Let cells that failed be run again.

    Only what failed, and what reconcile finds damaged, with the identical config. Lost to a machine, to its memory or to a
    copy that failed: again, up to a limit. A full disk: asks. An error of its own, accelerator memory, NaN, or over a limit:
    shown, and left unless forced. A lost machine never counts against a cell. It runs nothing: dibs sweep run does.

    \b
    Example:
      dibs sweep retry --store /mnt/shared/studies --name ablation --dry-run
      dibs sweep retry --force wide-lr

    Exit codes: 0 nothing was left; 1 something was left, with why; 2 usage, or no such cell; 3 store unusable; 4 a config is
    not what the plan says.
    """
    opened, plan = steer_plan(store, sweep)
    told = retry(
        opened,
        plan,
        names,
        force=force,
        limit=limit,
        yes=yes,
        quick=quick,
        dry=dry_run,
        me=me,
        step=files_step("looked at"),
    )
    if as_json:
        decisions = [each.to_json() for each in told.decisions]
        out(
            json_text(
                {
                    "sweep": plan.sweep,
                    "plan": told.plan.version,
                    "dry": told.dry,
                    "freed": list(told.freed),
                    "edited": list(told.edited),
                    "cells": decisions,
                }
            )
        )
    else:
        _say(told, place_of(opened.url, plan.sweep))
    return told.exit_code


def _say(told: Retried, place: str) -> None:
    if not told.decisions:
        out("nothing has failed, and nothing is damaged")
        return
    table(("", "cell", "why"), [(_HOW[each.how], each.cell, each.why) for each in told.decisions], indent=2)
    for name in told.edited:
        out(
            f"{safe(name)} is another one than was planned, which cells still run: dibs sweep plan {place} --new-version takes it over"
        )
    if told.freed:
        would = "would be freed" if told.dry else "may be taken up"
        then = "" if told.dry else f": dibs sweep run {place}"
        out(f"{len(told.freed)} {would} ({safe(', '.join(told.freed), 300)}){then}")
