"""Which cells may be run again, by why they ended. Pure: a table of causes, and who has had enough.

A lost machine never counts against a cell: attempts that were interrupted, or went quiet, are no failures of it. What the
program did itself is shown and stopped at, since it would do it again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from dibs.cell._causes import Cause
from dibs.cell._limits import is_limit

from ._runs import CellStanding, Run

__all__ = ["ACTIONS", "Decision", "action_of", "decide"]

_POISON = "poison"
#: what is done about each cause: "again" up to a limit, "ask" for a yes, "stop" unless forced
ACTIONS: Mapping[str, str] = {
    str(Cause.PREEMPTED): "again",
    str(Cause.VANISHED): "again",
    str(Cause.HOST_MEMORY): "again",
    str(Cause.CGROUP_MEMORY): "again",
    str(Cause.SYNC): "again",
    str(Cause.TIME): "again",  # of the batch system; a limit of ours is told by its reason
    _POISON: "again",
    str(Cause.DISK): "ask",
    str(Cause.CODE): "stop",
    str(Cause.DEVICE_MEMORY): "stop",
    "anomaly": "stop",
    "config changed": "stop",
}
_NOT_ITS_OWN = (_POISON, str(Cause.PREEMPTED), str(Cause.VANISHED))


@dataclass(frozen=True)
class Decision:
    """What becomes of one cell. ``how``: "release" (its failed attempts, so that anybody takes the next one), "renew" (a new
    trial, since a done one stays done for ever), or None: left as it is. ``code``: of the exit, if it was left."""

    cell: str
    how: str | None
    why: str
    code: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"cell": self.cell, "how": self.how, "why": self.why}


def action_of(run: Run) -> str:
    """again, ask or stop."""
    if is_limit(run.reason):
        return "stop"
    return ACTIONS.get(run.cause or "", "stop")


def decide(
    standings: Sequence[CellStanding],
    damaged: Mapping[str, str],
    changed: Mapping[str, str],
    *,
    named: Collection[str] = (),
    forced: Collection[str] = (),
    limit: int = 2,
    yes: bool = False,
    unmarked: Collection[str] = (),
) -> list[Decision]:
    """One decision for each cell that failed, is damaged, or was named, in the order of the roster.

    ``damaged``: done cells whose copies are not what they should be -> what is wrong; ``changed``: cells whose config's file is
    not what the plan says -> how. ``named``: only these; ``forced``: whatever the class; ``limit``: how many failures of a
    cell are tried again; ``yes``: room was made on the disk, or all results are indeed damaged; ``unmarked``: done cells whose place has not the mark that it got.
    """
    wanted = {*named, *forced}
    doubtful = {} if yes else _doubtful(standings, damaged, unmarked)
    found = []
    for each in standings:
        name = each.cell.name
        if wanted and name not in wanted:
            continue
        told = _decide(each, damaged.get(name), name in forced, limit, yes)
        if told is None and wanted:
            told = Decision(name, None, _as_it_is(each), 1)
        if told is not None and told.how == "renew" and name in doubtful and name not in wanted:
            told = Decision(
                name,
                None,
                f"{told.why}; {doubtful[name]} mounted? --yes, if so",
                1,
            )
        if told is not None and told.how is not None and name in changed:
            told = Decision(name, None, changed[name], 4)
        if told is not None:
            found.append(told)
    return found


def _doubtful(
    standings: Sequence[CellStanding], damaged: Mapping[str, str], unmarked: Collection[str]
) -> dict[str, str]:
    """The cells whose place may not be mounted, since its mark is missing, or nothing there is as it should be -> that, in words."""
    places: dict[str, list[str]] = {}
    for each in standings:
        if each.state == "done" and each.counts is not None:
            places.setdefault(str(PurePath(each.counts.final or "").parent), []).append(each.cell.name)
    found = [names for names in places.values() if len(names) > 1 and all(name in damaged for name in names)]
    all_of = {name: f"so are all {len(names)} results there: is their place" for names in found for name in names}
    return dict.fromkeys(unmarked, "its place has no .dibs-final: is it") | all_of


def _decide(each: CellStanding, damage: str | None, force: bool, limit: int, yes: bool) -> Decision | None:
    name, run = each.cell.name, each.counts
    if not each.active or run is None:
        return None
    if each.state == "done":
        if damage is not None:
            return Decision(name, "renew", damage)
        return (
            Decision(name, "renew", "forced, though it is done and nothing is wrong with its copies") if force else None
        )
    if each.state not in ("failed", "unsynced"):
        return None
    why = run.reason or run.cause or "no reason was given"
    if force:
        return Decision(name, "release", f"forced: {why}")
    action, failed = action_of(run), _failures(each.runs)
    if action == "ask" and not yes:
        return Decision(name, None, f"{why}; make room where it writes, and say --yes", 1)
    if action == "stop":
        return Decision(name, None, f"{why}; it would do so again: mend it, and say --force {name}", 1)
    if failed > limit:
        return Decision(
            name, None, f"{why}; that was failure {failed}, and {limit} are tried again: --limit, or --force {name}", 1
        )
    return Decision(name, "release", why)


def _failures(runs: Sequence[Run]) -> int:
    """How often it failed itself."""
    return sum(run.state == "failed" and run.cause not in _NOT_ITS_OWN for run in runs)


def _as_it_is(each: CellStanding) -> str:
    run = each.counts
    if each.state == "running" and run is not None:
        if run.gone:
            return f"the process of {run.me} that ran it is gone, and it waits: dibs sweep run takes it up"
        quiet = ", and has not moved for long: dibs sweep run takes it up in time" if run.quiet else ""
        return f"it is running, by {run.me} on {run.host}{quiet}"
    return {
        "done": "it is done, and its copies are what they should be: --force runs it again all the same",
        "waiting": "it waits already: dibs sweep run",
        "interrupted": "it waits already, to go on where it was: dibs sweep run",
        "dropped": "it is dropped: turn its line back into a cell first",
    }.get(each.state, f"it is {each.state}")
