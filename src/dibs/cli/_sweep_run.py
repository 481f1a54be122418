"""``dibs sweep run``: cells of a sweep on this machine; the options, and what each stands for in ``run_sweep``."""

from __future__ import annotations

import logging
from typing import Any

import click

from dibs.errors import DibsError
from dibs.store import Store
from dibs.study._definition import DEFAULT_STALE_S
from dibs.sweep import HaltRule, Plan, SweepEnd, isolation_said, newest_plan, run_sweep, selected

from ._ending import say_stopped
from ._guard import set_level
from ._options import (
    DURATION,
    SPAN,
    Whole,
    as_json,
    command,
    me_option,
    needed,
    needed_sweep,
    store_option,
    sweep_option,
    verbose,
)
from ._sweep_run_text import said_json, say_end, shown
from ._text import escaped, json_text, out

__all__ = ["verb"]

log = logging.getLogger("dibs")


@command("run")
@store_option
@sweep_option
@click.option("--workers", type=Whole(min=1), default=1, show_default=True, metavar="W",
              help="Cells at once on this host, with those of other runs here.")  # fmt: skip
@click.option("--host", metavar="NAME", help="Count and show them under this name.  [default: this machine]")
@click.option(
    "--queue", metavar="FILE", help="Only the cells of this queue file; one that was not planned: in its order."
)
@click.option("--start-index", type=Whole(min=0), default=0, metavar="K",
              help="Without those of its first K lines, comments and blank ones counted.")  # fmt: skip
@click.option("--time", type=SPAN, help="No new cells after so long, such as 2h.")
@click.option("--retries", type=Whole(min=0), default=0, metavar="K", help="Try a failed cell K times more.")
@click.option("--halt", metavar="RULE", help="End this run after failures: soon,fail=3 or now,fail=1 or fail=30%.")
@click.option("--keep-going", is_flag=True, help="Never give up, even if the first cells all fail.")
@click.option("--rescue-after", type=SPAN, help="Take up cells quiet for so long.  [default: 1h]")
@click.option("--grace", type=DURATION, default=30.0, help="What a cell gets to end after SIGTERM.  [default: 30s]")
@click.option("--cpus", type=Whole(min=1), metavar="K", help="Cores for each worker.  [default: its share]")
@click.option("--gpus", type=Whole(min=1), metavar="K", help="Devices for each worker alone.")
@click.option("--max-running", type=Whole(min=1), metavar="K",
              help="Cells at once in the whole sweep, by those who say so.")  # fmt: skip
@click.option("--wait", is_flag=True, help="Stay until every cell is settled, also those of others.")
@me_option
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr; failures are told all the same.")
@as_json
@verbose
def verb(store: str | None, sweep: str | None, as_json: bool, **options: Any) -> int:
    """Run cells of a sweep on this machine.

    Every machine gives the same command. Cells are claimed one by one, the longest first, and no two machines ever run
    one at once or write to one folder. A cell is done once its artifacts are copied and were read back. What others left
    behind is taken up again, in a folder of its own that {previous} leads back from.

    Lines that are appended to the queue file are picked up while this runs, and one that becomes a comment is not run. The
    scripts are those that were planned, whoever edits them, and so are the configs: a cell whose config is another one
    fails before it begins.

    \b
    Example:
      dibs sweep run --store /mnt/shared/studies --name A
      dibs sweep run --name A --workers 2 --gpus 1 --halt soon,fail=3
      dibs sweep run --name A --queue gpu1.queue --start-index 4

    Ctrl-C: no new cells; again: interrupt the running ones, as SIGTERM does. With --json one object at the end.

    \b
    Exit codes: 0 all cells are done; 1 some failed; 2 usage, or a program that is
    not there; 3 store unusable; 4 --final keeps another sweep's results; 5 there
    is no cell; 6 left unfinished: others run the rest, or --time is over; 7 a
    durable copy failed; 130/143 stopped by Ctrl-C/SIGTERM.
    """
    set_level(logging.WARNING if options["quiet"] else logging.INFO, only_louder=True)
    name, rule = needed_sweep(sweep), HaltRule.of(options["halt"]) if options["halt"] else None
    opened = Store(needed(store, "store", "FOLDER"), create=False)
    plan = newest_plan(opened, name)
    only = selected(plan, options["queue"], options["start_index"])
    if only is not None and options["start_index"] and not options["quiet"]:
        out(f"dibs: skipping {options['start_index']} lines: the first cell is {only.first or 'none'}", err=True)
    _note_isolation(plan)
    words = ["dibs", *click.get_current_context().find_root().meta["dibs.words"]]
    end = _run(opened, plan, only, rule, options, words)
    code = end.exit_code
    if as_json:
        out(json_text(said_json(opened, end, code)))
    else:
        say_end(opened, end, words)
    return code


def _run(
    store: Store, plan: Plan, only: Any, rule: HaltRule | None, options: dict[str, Any], words: list[str]
) -> SweepEnd:
    most = None if options["keep_going"] else 3
    try:
        with shown(store, plan, quiet=options["quiet"]) as on_event:
            return run_sweep(
                store, plan.sweep, workers=options["workers"], host=options["host"], only=only, retries=options["retries"],
                time_s=options["time"], rescue_after_s=options["rescue_after"] or DEFAULT_STALE_S,
                grace_s=options["grace"], halt=rule, max_failures=most, wait=options["wait"], cpus=options["cpus"],
                gpus=options["gpus"], max_running=options["max_running"], me=options["me"] or options["host"], on_event=on_event,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit):
        say_stopped(words)
        raise
    except DibsError as wrong:
        if "all failed" not in str(wrong):
            raise
        said = escaped(str(wrong).replace("trials", "cells").replace("no trial ", "no cell "), keep="\n")
        raise DibsError(f"{said}\n(to go on all the same: --keep-going)") from wrong


def _note_isolation(plan: Plan) -> None:
    said = isolation_said(plan.task)
    if said is not None:
        log.log(logging.INFO if said.startswith("enforced") else logging.WARNING, "isolation is %s", said)
