"""Planning a sweep: queue files are read, everything is checked, and only then one version of the plan is claimed.

Whoever loses that claim reads the files again, because the winner's version may hold lines that were not there before.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dibs.cell import Command
from dibs.errors import NotFound, RefusedError, StoreError, UsageError
from dibs.store import Store

from ._configs import Configs, source_path
from ._growing import Growth, grown
from ._marks import placed
from ._models import Plan, Task
from ._names import naming_of
from ._outlook import Outlook, outlook
from ._place import check_apart_from, check_place, claim_place
from ._plans import add_plan, newer_plan, newest_plan
from ._rosterfile import is_queue, read_roster
from ._task import Wanted, check_task, command_of, put_scripts, task_after, task_of

__all__ = ["Planned", "Planning", "carry_out", "plan_sweep"]

log = logging.getLogger("dibs")


@dataclass(frozen=True)
class Planned:
    """``plan``: the version that counts; ``before``: the one it was made of, None for a new sweep; ``written``: whether it is new.

    ``command``: to show command lines with, None where its program is not on this host. ``outlook``: what is ahead.
    """

    plan: Plan
    before: Plan | None
    growth: Growth
    written: bool
    outlook: Outlook
    command: Command | None


@dataclass(frozen=True)
class Planning:
    """What somebody asks. ``naming`` and ``epochs``: None = as planned, else ``{stem}`` and none.

    ``hosts``: name -> speed, None = as planned; ``over_budget``: also if the disks are too small. ``mark_again``: the folder of
    ``--final`` is the right one, also if it has lost its mark.
    """

    sweep: str
    queues: Sequence[str]
    wanted: Wanted
    naming: str | None = None
    epochs: int | None = None
    hosts: Mapping[str, float] | None = None
    new_version: bool = False
    over_budget: bool = False
    mark_again: bool = False

    def after(
        self, store: Store | None, before: Plan | None, root: Path | None, host: str, *, keep: bool = True
    ) -> Planned:
        """The version after ``before``, as the files are now, not yet claimed. ``keep``: put configs and scripts into the store."""
        start, task = self._start(before, host)
        here = task.here
        sources = self._sources(start)
        rosters = [read_roster(source, source_path(here, source), start.epochs) for source in sources]
        configs = Configs(here)
        plan, growth = grown(replace(start, task=task), rosters, configs)
        if not plan.cells:
            raise UsageError(f"there is no cell in {', '.join(sources)}: every line is blank or a comment")
        command, outs = self._command(before, task, plan)
        moved = before is None or before.task.final != task.final
        if moved and before is not None:
            check_apart_from(before, plan)
        new = [cell.name for cell in plan.cells] if moved else growth.appended
        check_place(store, store.backend.root if store is not None else root, plan, new, outs, moved=moved)
        ahead = outlook(store, plan, root)
        if ahead.short and not self.over_budget:
            raise RefusedError(
                f"the disks are too small: {'; '.join(ahead.short)}; make room, or say --over-budget", field="budget"
            )
        changed = before is None or replace(plan, where=before.where) != before
        if changed and keep and store is not None:
            configs.put(store, {cell.config for cell in before.cells} if before is not None else ())
            put_scripts(store, task, before.task.scripts.values() if before is not None else ())
        plan = plan if before is None or not changed else replace(plan, version=before.version + 1)
        return Planned(plan, before, growth, changed, ahead, command)

    def _start(self, before: Plan | None, host: str) -> tuple[Plan, Task]:
        """(the plan to grow, the task)."""
        if before is None:
            if not self.queues:
                raise UsageError(
                    f"there is no sweep {self.sweep!r} yet: name a queue file, such as cells.queue, and the command after --"
                )
            task = task_of(self.wanted)
            return Plan(
                self.sweep, 0, (), task, {}, naming_of(self.naming or "{stem}").text, self.epochs, dict(self.hosts or {}), host
            ), task  # fmt: skip
        for name, theirs, ours in (("--name", before.naming, self.naming), ("--epochs", before.epochs, self.epochs)):
            if ours is not None and ours != theirs:
                raise RefusedError(
                    f"this sweep was planned with {name} {theirs}, not {ours}, and what its cells are hangs on that: leave it out",
                    field=name.removeprefix("--"), theirs=theirs, ours=ours,
                )  # fmt: skip
        task = task_after(before.task, self.wanted, new_version=self.new_version)
        hosts = before.hosts if self.hosts is None else dict(self.hosts)
        return replace(before, hosts=hosts, where=host), task

    def _sources(self, plan: Plan) -> list[str]:
        """The files as the plan calls them. UsageError for one that is named twice."""
        known = {source_path(plan.task.here, source): source for source in plan.sources}
        found: dict[Path, str] = {}
        for given in self.queues:
            path = source_path(str(self.wanted.here), given)
            if path in found:
                raise UsageError(f"the queue file {given} is named twice")
            name = given if str(self.wanted.here) == plan.task.here else str(path)
            found[path] = known.get(path, name)
        return list(found.values())

    def _command(self, before: Plan | None, task: Task, plan: Plan) -> tuple[Command | None, list[tuple[str, str]]]:
        command = None
        try:
            command = command_of(task, self.wanted.path)
        except UsageError:  # planned on a host that has the program, which this one need not
            if before is None or task != before.task:
                raise
        return command, check_task(command, plan, any(is_queue(source) for source in plan.sources))


def plan_sweep(
    store: Store,
    sweep: str,
    queues: Sequence[str | os.PathLike[str]],
    command: Sequence[str] | None = None,
    *,
    here: str | os.PathLike[str] | None = None,
    shell: bool = False,
    freeze: Sequence[str] = (),
    naming: str | None = None,
    epochs: int | None = None,
    hosts: Mapping[str, float] | None = None,
    new_version: bool = False,
    over_budget: bool = False,
    me: str | None = None,
    **task: Any,
) -> Planned:
    """Make a sweep of queue files, or change the one there is: lines appended, commented out, uncommented.

    Guarantee: of all who plan at once each is heard, or is told why not; nobody ever sees half a plan. ``command``: words,
    with ``shell`` one line; None = as planned. ``here``: where files and the command are looked for, else the current
    folder. ``task``: fields of a Task, such as ``artifacts=["best.pth"]`` or ``time_s=3600.0``; what is not given is as planned.
    Raises UsageError (a file, a name, a command), RefusedError (earlier lines, a config, a script or the task changed
    otherwise; the disks are too small), StoreError.
    """
    unknown = sorted(task.keys() - _FREE)
    if unknown:
        raise UsageError(f"a task has no {', '.join(unknown)}; there is {', '.join(sorted(_FREE))}")
    wanted = Wanted(
        Path(os.path.abspath(here or Path.cwd())), tuple(command) if command else None, shell, tuple(freeze),  # noqa: PTH100
        os.environ.get("PATH"), task,
    )  # fmt: skip
    planning = Planning(
        sweep,
        [os.fspath(each) for each in queues],
        wanted,
        naming,
        epochs,
        hosts,
        new_version,
        over_budget,
        mark_again=new_version and "final" in task,
    )
    return carry_out(store, planning, me)


def carry_out(store: Store, planning: Planning, me: str | None = None) -> Planned:
    """Claim what is asked for, again upon whatever others did meanwhile. Raises as ``plan_sweep``."""
    before = _newest(store, planning.sweep)
    host = str(store.machine.who("")["host"])
    while True:
        planned = planning.after(store, before, None, host)
        if not planned.written or add_plan(store, planned.plan, me):
            _mark(store, planned.plan, planning, me)
            return planned
        before = newer_plan(store, before) if before is not None else _newest(store, planning.sweep)


def _mark(store: Store, plan: Plan, planning: Planning, me: str | None) -> None:
    """Give the place of ``--final`` its mark, so that whoever runs elsewhere finds out whether it is mounted there.

    Where it has got one, this host need not see it. Raises RefusedError, StoreError as ``claim_place``.
    """
    final = plan.task.final
    if final is None or (placed(store, plan.sweep, final) is not None and not planning.mark_again):
        return
    try:
        claim_place(store, plan, anew=planning.mark_again, me=me)
    except StoreError as wrong:
        if planning.mark_again:
            raise
        log.warning("%s", wrong)
    except OSError as wrong:
        log.warning(
            "%s, where copies go, cannot be written here (%s): the first run that can gives it its mark",
            final,
            wrong.strerror or wrong,
        )


def _newest(store: Store, sweep: str) -> Plan | None:
    try:
        return newest_plan(store, sweep)
    except NotFound:
        return None


_FREE = {
    "artifacts", "final", "out", "goal", "time_s", "memory_bytes", "isolate", "writable", "deny_read", "checkpoint_bytes",
    "scratch_bytes", "group",
}  # fmt: skip
