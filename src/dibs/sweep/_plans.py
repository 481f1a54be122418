"""Plans in a store: version k+1 is a claim, so that of two who change a sweep at once one reads the other's first."""

from __future__ import annotations

from collections.abc import Callable

from dibs.errors import NotFound, RecordError
from dibs.record import decode
from dibs.store import Store, SweepKeys, unescape

from ._models import Plan

__all__ = ["add_plan", "change_plan", "newer_plan", "newest_plan", "read_plan", "sweeps_in"]

_KIND = "sweep-plan"


def read_plan(store: Store, sweep: str, version: int) -> Plan | None:
    """One version; None if there is none. Raises RecordError."""
    key = SweepKeys(sweep).plan(version)
    there = store.backend.read(key)
    if there is None:
        return None
    body = decode(there.data, key)
    if body.get("kind") != _KIND or body.get("sweep") != sweep or body.get("version") != version:
        raise RecordError(f"{key} is not version {version} of the plan of {sweep!r}", key=key)
    return Plan.from_json(body, key)


def newest_plan(store: Store, sweep: str) -> Plan:
    """The plan that counts. Raises NotFound if there is no such sweep, RecordError."""
    prefix = SweepKeys(sweep).plans()
    stems = [entry.key.removeprefix(prefix).removesuffix(".json") for entry in store.backend.list(prefix)]
    versions = [int(stem) for stem in stems if stem.isdecimal() and stem.isascii()]
    found = read_plan(store, sweep, max(versions)) if versions else None
    if found is None:
        known = ", ".join(sweeps_in(store)) or "none"
        raise NotFound(f"there is no sweep {sweep!r} in {store.url}; there is: {known}")
    return newer_plan(store, found)


def newer_plan(store: Store, plan: Plan) -> Plan:
    """The newest version after this one, by one read each; the plan itself if there is none."""
    while (found := read_plan(store, plan.sweep, plan.version + 1)) is not None:
        plan = found
    return plan


def add_plan(store: Store, plan: Plan, me: str | None = None) -> bool:
    """Make it the plan that counts; False if somebody else has made one of that version. Durable when it returns."""
    body = {**store.head(_KIND, me), **plan.to_json()}
    return store.settler.claim(SweepKeys(plan.sweep).plan(plan.version), body, durable=True) is not None


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
