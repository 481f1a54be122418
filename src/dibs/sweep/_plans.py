"""Plans in a store: version k+1 is a claim, so that of two who change a sweep at once one reads the other's first.

Where mkdir claims, a version is claimed before it is written. Until then there is none for who reads, and whoever wants to
write the next one waits: its planner may be dead, which only a person can know.
"""

from __future__ import annotations

from collections.abc import Callable

from dibs.backend import Object
from dibs.errors import NotFound, RecordError, UnsureError
from dibs.record import decode
from dibs.store import Pauses, Store, SweepKeys, unescape

from ._models import Plan

__all__ = ["add_plan", "change_plan", "newer_plan", "newest_plan", "read_plan", "sweeps_in"]

_KIND = "sweep-plan"


def read_plan(store: Store, sweep: str, version: int) -> Plan | None:
    """One version; None if there is none, or not yet. Raises RecordError."""
    key = SweepKeys(sweep).plan(version)
    there = store.backend.read(key)
    if there is None or not _is_written(store, there):
        return None
    body = decode(there.data, key)
    if body.get("kind") != _KIND or body.get("sweep") != sweep or body.get("version") != version:
        raise RecordError(f"{key} is not version {version} of the plan of {sweep!r}", key=key)
    return Plan.from_json(body, key)


def newest_plan(store: Store, sweep: str) -> Plan:
    """The plan that counts. Raises NotFound if there is no such sweep, RecordError."""
    prefix = SweepKeys(sweep).plans()
    stems = [entry.key.removeprefix(prefix).removesuffix(".json") for entry in store.backend.list(prefix)]
    versions = sorted((int(stem) for stem in stems if stem.isdecimal() and stem.isascii()), reverse=True)
    for version in versions:
        found = read_plan(store, sweep, version)
        if found is not None:
            return newer_plan(store, found)
    if versions and store.backend.traits.claim == "mkdir":  # its first planner is about to write it
        _wait_for(store, sweep, versions[-1])
        return newest_plan(store, sweep)
    known = ", ".join(sweeps_in(store)) or "none"
    raise NotFound(f"there is no sweep {sweep!r} in {store.url}; there is: {known}")


def newer_plan(store: Store, plan: Plan) -> Plan:
    """The newest version after this one, by one read each; the plan itself if there is none."""
    while (found := read_plan(store, plan.sweep, plan.version + 1)) is not None:
        plan = found
    return plan


def add_plan(store: Store, plan: Plan, me: str | None = None) -> bool:
    """Make it the plan that counts; False if somebody else has made one of that version. Durable when it returns.

    Raises RecordError if somebody has claimed that version and does not write it, StoreError.
    """
    body = {**store.head(_KIND, me), **plan.to_json()}
    if store.settler.claim(SweepKeys(plan.sweep).plan(plan.version), body, durable=True) is not None:
        return True
    _wait_for(store, plan.sweep, plan.version)
    return False


def change_plan(store: Store, plan: Plan, change: Callable[[Plan], Plan | None], me: str | None = None) -> Plan:
    """Change the newest version after ``plan``, again upon whatever others did meanwhile; ``change`` answers None for: as it is.

    Returns the plan that counts. Raises what ``change`` raises.
    """
    while True:
        plan = newer_plan(store, plan)
        changed = change(plan)
        if changed is None or add_plan(store, changed, me):
            return changed or plan


def sweeps_in(store: Store) -> list[str]:
    """The names of the sweeps in the store, sorted."""
    return sorted(unescape(segment) or segment for segment in store.backend.folders("sweep/"))


def _wait_for(store: Store, sweep: str, version: int) -> None:
    """Return once a version that is claimed is written, or gone. Raises RecordError if it is neither for as long as one is patient."""
    key = SweepKeys(sweep).plan(version)
    pauses = Pauses(store.settler, key)
    while (there := store.backend.read(key)) is not None and not _is_written(store, there):
        try:
            next(pauses)
        except UnsureError:
            raise RecordError(
                f"{key} is claimed, and its planner has not written it: if that process is dead, remove the folder "
                f"{key}.claim, and whoever comes next plans that version",
                key=key,
            ) from None


def _is_written(store: Store, there: Object) -> bool:
    return bool(there.data) or store.backend.traits.claim != "mkdir"
