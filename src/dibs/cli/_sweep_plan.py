"""``dibs sweep plan``: a sweep of queue files, or a change of one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from dibs.errors import DibsError, UsageError
from dibs.store import Store, is_bucket, local_path
from dibs.sweep import Planned, Planning, Wanted, carry_out, newest_plan, write_shares
from dibs.sweep._hosts import hosts_in, hosts_of
from dibs.sweep._queue import lines_of
from dibs.sweep._rosterfile import read_roster, text_at

from ._options import DURATION, GOAL, SIZE, SPAN, Verb, Whole, as_json, me_option, needed, needed_sweep, store_option
from ._sweep_plan_text import plan_json, say_commands, say_plan
from ._text import json_text, out

__all__ = ["verb"]

#: an option, or what a roster says besides its cells -> the field of a task
_TASK = {
    "artifacts": "artifacts", "out": "out", "goal": "goal", "time_limit": "time_s", "memory": "memory_bytes",
    "isolate": "isolate", "writable": "writable", "deny_read": "deny_read", "final": "final",
    "checkpoint_size": "checkpoint_bytes", "scratch": "scratch_bytes", "group": "group",
}  # fmt: skip
_TYPES: Mapping[str, click.ParamType[Any]] = {
    "time_limit": DURATION, "memory": SIZE, "checkpoint_size": SIZE, "scratch": SIZE, "goal": GOAL,
}  # fmt: skip


class _Plan(Verb):
    """What stands after ``--`` is the command, whatever it looks like; before it stand queue files."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["dibs.command"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


@click.command("plan", cls=_Plan)
@click.argument("queues", metavar="QUEUE...", nargs=-1)
@store_option
@click.option("--name", "names", metavar="NAME", multiple=True,
              help="The sweep's name; and once more, with braces, the template of cells' names.  [default: {stem}]")  # fmt: skip
@click.option("--epochs", type=Whole(min=1), metavar="N", help="Where a line has none.")
@click.option("--artifact", "artifacts", multiple=True, metavar="FILE",
              help="A file of {out} that a finished cell has, and that is kept; such as best.pth.")  # fmt: skip
@click.option("--shell", is_flag=True, help="COMMAND is one line for sh -c.")
@click.option("--freeze", multiple=True, metavar="FILE", help="Run from a private copy of this file, too.")
@click.option(
    "--new-version", is_flag=True, help="Let cells that have not started use the script, and options, of now."
)
@click.option("--out", metavar="FOLDER", help="Output folders, such as /scratch/{name}.  [default: each attempt's own]")
@click.option("--final", metavar="FOLDER", help="Where artifacts are kept.  [default: in the store]")
@click.option("--goal", type=GOAL, help="min or max, if cells tell a score.")
@click.option("--time-limit", type=SPAN, help="A cell that runs longer is failed; such as 2h.")
@click.option("--memory", type=SIZE, help="A cell that holds more is failed; such as 4G.")
@click.option("--isolate", is_flag=True, help="Let a cell write only to its own folder and scratch.")
@click.option(
    "--writable", multiple=True, metavar="FOLDER", help="With --isolate: scratch besides temporary folders and caches."
)
@click.option("--deny-read", multiple=True, metavar="PATH", help="Let a cell read nothing there; includes --isolate.")
@click.option("--group", metavar="NAME", help="The group that trackers show.  [default: the sweep's name]")
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME[=SPEED]", help="A host for the assignment, and how fast it is."
)
@click.option("--hosts", "hosts_file", metavar="FILE", help="The same, one on each line.")
@click.option(
    "--write-queues", metavar="FOLDER", type=click.Path(path_type=Path), help="Write a queue file for each host."
)
@click.option("--checkpoint-size", type=SIZE, help="What a cell leaves, for the disk budget.")
@click.option("--scratch", type=SIZE, help="What a cell needs besides while it runs.")
@click.option("--over-budget", is_flag=True, help="Plan it although the disks are too small.")
@click.option("--dry-run", is_flag=True, help="Check everything, show some command lines, and write nothing.")
@me_option
@as_json
def verb(queues: tuple[str, ...], store: str | None, names: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Make a sweep of queue files, or change one.

    A line of a QUEUE is a cell: <cfg> <task> [epochs], with blank lines and # comments between. QUEUE may also be a
    TOML file of [[cell]] tables, a CSV or YAML, with any columns; a column name names the cell, cost says its cost. COMMAND
    is run once for each cell: {cfg} {task} {epochs} and every other column are filled in, {name} {out} {sweep} {n}
    {attempt} {previous} {result} {here} besides; {{ is a brace. Config files and scripts are kept by digest.

    Plan it again with the same line when a queue has changed: lines may be appended, commented out (that cell is
    dropped) and uncommented; any other change is refused. What is left out stays as it was planned.

    \b
    Example:
      dibs sweep plan cells.queue --store /mnt/shared/studies --name A \\
        --epochs 20 --artifact best.pth -- ./run_one.sh {cfg} {task} {epochs}
      dibs sweep plan cells.queue --store /mnt/shared/studies --name A \\
        --host a=1 --host b=2

    \b
    Exit codes: 0 planned, or nothing had changed; 2 usage, a wrong line, two
    cells of one name; 3 store unusable; 4 refused: lines, a config, a script or
    an option differ from the plan, or the disks are too small.
    """
    hole = next((word for word in queues if "{" in word), None)
    if hole is not None:
        raise UsageError(
            f"{hole} is no queue file: the command stands after --, such as -- ./run_one.sh {{cfg}} {{task}}"
        )
    sweep, naming = _names(names, click.get_current_context().default_map or {})
    said = _said(queues, options)
    planning = Planning(
        sweep, queues, _wanted(said, click.get_current_context().meta["dibs.command"]), naming or said.get("naming"),
        options["epochs"], _hosts(options), options["new_version"], options["over_budget"],
        mark_again=options["new_version"] and options["final"] is not None,
    )  # fmt: skip
    where = needed(store, "store", "FOLDER")
    planned = _dry(where, planning) if options["dry_run"] else _done(where, planning, options["me"])
    files = _write(planned, options["write_queues"], dry=options["dry_run"])
    if as_json:
        out(json_text(plan_json(planned, where, dry=options["dry_run"], files=files)))
        return 0
    if options["dry_run"]:
        say_commands(planned)
    say_plan(planned, where, dry=options["dry_run"], files=files)
    return 0


def _names(names: tuple[str, ...], file: Mapping[str, Any]) -> tuple[str, str | None]:
    """(the sweep's name, the template of cells' names)."""
    plain, templates = [each for each in names if "{" not in each], [each for each in names if "{" in each]
    if len(plain) > 1 or len(templates) > 1:
        twice = " and ".join(map(repr, plain if len(plain) > 1 else templates))
        raise UsageError(
            f"--name is said twice, {twice}: one is the sweep's name, and one with braces is the template of cells' names"
        )
    name = plain[0] if plain else os.environ.get("DIBS_SWEEP") or file.get("sweep")
    return needed_sweep(name), templates[0] if templates else None


def _said(queues: tuple[str, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, and under them what rosters say besides their cells."""
    said: dict[str, Any] = {}
    whose: dict[str, str] = {}
    for source in queues:
        for name, value in read_roster(source, Path(source)).defaults.items():
            if name in said and said[name] != value:
                raise UsageError(
                    f"{whose[name]} and {source} disagree about {name}: say it on the command line, or once"
                )
            said[name], whose[name] = value, source
    for name, kind in _TYPES.items():
        if name in said:
            try:
                said[name] = kind.convert(said[name], None, None)
            except click.BadParameter as wrong:
                raise UsageError(f"{whose[name]}: {name}: {wrong.message}") from None
    return said | {name: value for name, value in options.items() if value not in (None, (), False)}


def _wanted(said: Mapping[str, Any], typed: tuple[str, ...]) -> Wanted:
    given = {field: said[name] for name, field in _TASK.items() if name in said}
    if not isinstance(given.get("goal", ""), str):
        raise UsageError("a sweep has one goal: say --goal min, or --goal max if more is better")
    command, shell = said.get("command"), bool(said.get("shell"))
    if isinstance(command, str) and not typed:
        try:
            command = [command] if shell else shlex.split(command)
        except ValueError as wrong:
            raise UsageError(f"the command {command!r:.200} of the roster is no line of words: {wrong}") from None
    words = typed or tuple(command or ())
    return Wanted(Path.cwd(), words or None, shell, tuple(said.get("freeze", ())), os.environ.get("PATH"), given)


def _hosts(options: Mapping[str, Any]) -> dict[str, float] | None:
    found = hosts_of(options["hosts"])
    if options["hosts_file"]:
        source = options["hosts_file"]
        found = hosts_in(source, lines_of(text_at(source, Path(source)))) | found
    return found or None


def _done(where: str, planning: Planning, me: str | None) -> Planned:
    """Plan it. A store that is not there yet is made when everything has been checked."""
    if not is_bucket(where) and not local_path(where).exists():
        planning.after(None, None, local_path(where), "")
    return carry_out(Store(where), planning, me)


def _dry(where: str, planning: Planning) -> Planned:
    """What would be planned; the store may not be there yet."""
    root = None if is_bucket(where) else local_path(where)
    try:
        store = Store(where, create=False, unchecked=True)
    except DibsError:
        if root is None or root.exists():
            raise
        return planning.after(None, None, root, "")
    try:
        before = newest_plan(store, planning.sweep)
    except LookupError:
        before = None
    return planning.after(store, before, root, "", keep=False)


def _write(planned: Planned, folder: Path | None, *, dry: bool) -> list[Path]:
    if folder is None:
        return []
    assignment = planned.outlook.assignment
    if assignment is None:
        raise UsageError("--write-queues needs hosts: say --host a=1 --host b=2")
    return [] if dry else write_shares(planned.plan, assignment, folder)
