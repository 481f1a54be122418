"""What ``dibs sweep plan`` answers: what is planned now, what it will cost, whether it fits, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dibs.cell import isolation_status, size_text
from dibs.store import is_bucket, local_path
from dibs.sweep import Costs, Outlook, Plan, Planned, fields_of
from dibs.sweep._task import hidden
from dibs.view import duration

from ._status import plural
from ._text import out, place_of, safe, table

__all__ = ["plan_json", "say_commands", "say_plan"]

_SHOWN = 5  # command lines of a dry run
_NAMED = 8  # names in one line
_UNITS = {
    "epochs": "epochs; nothing is finished yet",
    "cells": "cells; nothing is finished yet",
    "declared": "as declared",
}
_WHILE = {  # what a finish counts until seconds were learned
    "epochs": " epochs of a host of speed 1",
    "cells": " cells of a host of speed 1",
    "declared": " as declared, for a host of speed 1",
}


def say_plan(planned: Planned, store: str, *, dry: bool, files: Sequence[Path]) -> None:
    """Print all of it."""
    plan, growth, ahead = planned.plan, planned.growth, planned.outlook
    said = _done(planned, dry)
    out(f"sweep      {safe(plan.sweep)} in {safe(store)}, version {plan.version}: {said}")
    dropped = len(plan.cells) - len(plan.active)
    settled = len(plan.active) - len(ahead.left) - len(ahead.running)
    counts = [f"{len(ahead.left)} to run"]
    counts += [
        f"{count} {word}"
        for count, word in ((len(ahead.running), "running"), (settled, "settled"), (dropped, "dropped"))
        if count
    ]
    out(f"cells      {len(plan.active)}: {', '.join(counts)}")
    if planned.before is not None:
        for word in ("appended", "dropped", "restored"):
            names = getattr(growth, word)
            if names:
                out(f"{word:<9}  {_names(names)}")
    out(f"cost       {_cost(ahead)}")
    _say_assignment(ahead)
    for path in files:
        out(f"queue      {safe(path)}")
    _say_task(planned, store)
    out()
    again = place_of(store if is_bucket(store) else str(local_path(store)), plan.sweep)
    if dry:
        out("nothing was written: without --dry-run it is")
    else:
        out(f"next       dibs sweep run {again}, on each machine; dibs sweep status {again}")


def say_commands(planned: Planned) -> None:
    """Print some command lines, as one could type them."""
    assert planned.command is not None or planned.before is not None
    for cell in planned.plan.active[:_SHOWN] if planned.command is not None else ():
        left = {name: f"<{name}>" for name in ("out", "result", "seed")}
        assert planned.command is not None
        away = hidden(planned.plan, cell)
        filled = {name: text for name, text in (left | fields_of(planned.plan, cell)).items() if name not in away}
        out(safe(planned.command.shown(filled)))
    more = len(planned.plan.active) - _SHOWN
    if planned.command is not None and more > 0:
        out(f"... and {more} more")
    out()


def plan_json(planned: Planned, store: str, *, dry: bool, files: Sequence[Path]) -> dict[str, Any]:
    """The same as one JSON object, costs of all cells included."""
    plan, ahead = planned.plan, planned.outlook
    return {
        "store": store, "sweep": plan.sweep, "version": plan.version, "written": planned.written and not dry, "dry_run": dry,
        "new": planned.before is None, "appended": list(planned.growth.appended), "dropped": list(planned.growth.dropped),
        "restored": list(planned.growth.restored),
        "cells": [
            {**cell.to_json(), "digest": cell.digest, "estimate": ahead.costs.of.get(cell.n)} for cell in plan.cells
        ],
        "to_run": [cell.name for cell in ahead.left], "running": [cell.name for cell in ahead.running],
        "cost": {"unit": ahead.costs.unit, "learned": ahead.costs.learned, "guessed": ahead.costs.guessed},
        "assignment": _assignment_json(ahead),
        "budget": {
            name: {"needed_bytes": need.bytes, "needed_inodes": need.inodes, **_free_json(ahead, name)}
            for name, need in ahead.needs.items()
        },
        "short": list(ahead.short), "task": plan.task.to_json(), "isolation": _isolation(plan), "sources": list(plan.sources),
        "queues": [str(path) for path in files],
    }  # fmt: skip


def _done(planned: Planned, dry: bool) -> str:
    if not planned.written:
        return "nothing has changed"
    word = "would be " if dry else ""
    return f"{word}new" if planned.before is None else f"{word}changed"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)}: {', '.join(map(safe, names[:_NAMED]))}{more}"


def _cost(ahead: Outlook) -> str:
    costs, total = ahead.costs, sum(ahead.costs.of[cell.n] for cell in ahead.left)
    if costs.unit != "s":
        return f"{total:.6g} {_UNITS[costs.unit]}"
    guessed = f", {costs.guessed} of them guessed" if costs.guessed else ""
    return f"{duration(total)} on one host of speed 1, learned from {plural(costs.learned, 'finished cell')}{guessed}"


def _span(value: float, costs: Costs) -> str:
    return duration(value) if costs.unit == "s" else f"{value:.6g}"


def _say_assignment(ahead: Outlook) -> None:
    found = ahead.assignment
    if found is None:
        out("hosts      any: say --host a=1 --host b=2 for an assignment")
        return
    out()
    rows = [
        [share.host, f"{share.speed:.3g}", len(share.cells), _span(share.finish, ahead.costs), share.cells[0].name if share.cells else "-"]
        for share in found.shares
    ]  # fmt: skip
    table(["host", "speed", "cells", "finish", "first"], rows, right=(1, 2, 3))
    out()
    out(
        f"finish     {_span(found.finish, ahead.costs)}{_WHILE.get(ahead.costs.unit, '')}; no assignment is done before {_span(found.bound, ahead.costs)}"
    )


def _say_task(planned: Planned, store: str) -> None:
    plan, ahead = planned.plan, planned.outlook
    for name, need in ahead.needs.items():
        there = ahead.free.get(name)
        left = f" of {size_text(there.bytes)} free at {safe(there.place)}" if there and there.bytes is not None else ""
        out(f"disk       {name}: {size_text(need.bytes)}{left}, {need.inodes} files")
    for sentence in ahead.short:
        out(f"too small  {safe(sentence)}")
    out(f"isolation  {_isolation(plan)}")
    out(f"command    {safe(plan.task.words[0] if plan.task.shell else shlex.join(plan.task.words))}")
    for name, digest in plan.task.scripts.items():
        out(f"script     {safe(name)} {digest}")
    before = planned.before
    if before is not None and before.task.final != plan.task.final and len(plan.active) > len(ahead.left):
        out("copies     of cells that are done stay where they are, and are read from there")
    kept = ", ".join(map(safe, plan.task.artifacts))
    where = safe(plan.task.final) if plan.task.final is not None else "the store"
    out(
        f"artifacts  {kept} -> {where}"
        if kept
        else "artifacts  none: nothing of a cell is kept, so that none can be proven (--artifact FILE)"
    )


def _isolation(plan: Plan) -> str:
    return isolation_status() if plan.task.isolate else "off (--isolate lets a cell write only to its own folder)"


def _assignment_json(ahead: Outlook) -> dict[str, Any] | None:
    found = ahead.assignment
    if found is None:
        return None
    return {
        "finish": found.finish, "bound": found.bound,
        "hosts": [
            {"host": share.host, "speed": share.speed, "finish": share.finish, "cells": [cell.name for cell in share.cells]}
            for share in found.shares
        ],
    }  # fmt: skip


def _free_json(ahead: Outlook, name: str) -> dict[str, Any]:
    there = ahead.free.get(name)
    if there is None:
        return {"place": None, "free_bytes": None, "free_inodes": None}
    return {"place": there.place, "free_bytes": there.bytes, "free_inodes": there.inodes}
