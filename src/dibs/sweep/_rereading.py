"""Queue files followed while a sweep runs, on the host that planned it: lines appended, commented out, uncommented.

A file that is being written is left alone until it rests: an editor may be halfway. What cannot be taken over is said once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

from dibs._clock import Clock
from dibs.errors import RefusedError, UsageError
from dibs.store import Store

from ._configs import Configs, source_path
from ._growing import grown
from ._models import Plan
from ._plans import change_plan
from ._queue import Roster, lines_of
from ._rosterfile import parse_roster, text_at

__all__ = ["REST_S", "reread"]

log = logging.getLogger("dibs")
REST_S = 2.0  # without a change for so long a file is as it is meant to be


@dataclass
class _Look:
    """What was last seen of one file: its stamp, since when it has that, and whether all of it was dealt with."""

    stamp: tuple[int, int] = (-1, -1)
    since: float = 0.0
    settled: bool = False


def reread(store: Store, plan: Plan, me: str | None = None) -> Plan | None:
    """A later version of the plan, if its queue files say so now; None if there is nothing new, or this is not the host.

    Costs one ``stat`` per file while nothing moves. A change that cannot be taken over (earlier lines, a wrong line, a
    missing config) is one warning, with the diff, and the plan stays. Raises StoreError.
    """
    if not plan.sources or plan.where != str(store.machine.who("")["host"]):
        return None
    looks: dict[str, _Look] = store.kept.setdefault(("queues", plan.sweep), {})
    newer = None
    for source in plan.sources:
        path, look = source_path(plan.task.here, source), looks.setdefault(source, _Look())
        resting = _moved(path, look, store.machine.clock)
        if resting is None:
            continue
        found = _taken(store, newer or plan, source, path, resting, me)
        look.settled = resting
        newer = found or newer
    return newer


def _moved(path: Path, look: _Look, clock: Clock) -> bool | None:
    """None if there is nothing to be read, else whether the file rests."""
    try:
        stat = path.stat()
    except OSError:
        return None  # gone, or gone for a moment: what was planned stays planned
    stamp, now = (stat.st_mtime_ns, stat.st_size), clock.monotonic()
    if stamp != look.stamp:
        rested = max(0.0, clock.wall() - stat.st_mtime) if look.stamp == (-1, -1) else 0.0
        look.stamp, look.since, look.settled = stamp, now - rested, False
    return None if look.settled else now - look.since >= REST_S


def _taken(store: Store, plan: Plan, source: str, path: Path, resting: bool, me: str | None) -> Plan | None:
    """The version with the file's lines; None if it has no others, or they cannot be taken."""
    configs = Configs(plan.task.here)

    def change(newest: Plan) -> Plan | None:
        roster = _roster(newest, source, path, resting)
        if roster.lines == newest.sources.get(source):
            return None
        changed, _ = grown(newest, [roster], configs)
        configs.put(store, {cell.config for cell in newest.cells})
        return replace(changed, version=newest.version + 1)

    try:
        after = change_plan(store, plan, change, me)
    except (UsageError, RefusedError) as wrong:
        if resting:
            log.warning("the queue was changed, and the sweep %s goes on without: %s", plan.sweep, wrong)
        return None
    return after if after.version != plan.version else None


def _roster(plan: Plan, source: str, path: Path, resting: bool) -> Roster:
    text = text_at(source, path)
    lines, old = lines_of(text), plan.sources.get(source, ())
    if not resting and len(lines) > len(old) and not text.endswith("\n"):
        lines = lines[:-1]  # somebody may be writing it at this moment
    return parse_roster(source, lines, plan.epochs)
