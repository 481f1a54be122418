"""``release``: the gate in front of whatever ends the machines, and the record that it was passed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dibs.errors import UsageError
from dibs.store import Store

from ._gate import Gate, gate, results_of
from ._homes import unmarked
from ._inventory import Step, take_inventory
from ._manifest import plan_digest
from ._marks import accepted_in, claim_release, releases, verified
from ._models import Plan
from ._plans import newer_plan
from ._reconcile import compare
from ._standing import standing
from ._unplanned import unplanned
from ._verify import manifest_of

__all__ = ["Released", "release"]

_SHA = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True)
class Released:
    """``record``: the release, None while the gate is shut; ``already``: somebody had released it before, just so."""

    gate: Gate
    record: Mapping[str, Any] | None = None
    already: bool = False
    plan: int = 0
    missing: tuple[str, ...] = field(default=())

    @property
    def exit_code(self) -> int:
        """0 released; else the gate's."""
        return 0 if self.record is not None else self.gate.exit_code or 4


def release(
    store: Store,
    plan: Plan,
    *,
    approve: str | None,
    verified_as: str | None = None,
    me: str | None = None,
    threads: int = 4,
    step: Step | None = None,
) -> Released:
    """Write the release if nothing is missing; every durable copy is read once more for it.

    ``approve``: who answers for it; ``verified_as``: a pulled folder or the digest of its manifest, None: any that was
    verified. Asked again it says so, unless something has changed since. Raises UsageError, StoreError.
    """
    wanted = _wanted(verified_as)
    standings = standing(store, plan, probe=True)
    there = take_inventory(store, plan, standings, threads=threads, step=step)
    standings = standing(store, plan, probe=True)  # reading takes long: whoever has begun or ended meanwhile counts
    proof = compare(
        plan, standings, there, unplanned(store, plan), accepted_in(store, plan.sweep), unmarked(store, plan, standings)
    )
    marks = [mark.body for mark in verified(store, plan.sweep)]
    results = results_of(standings)
    told = gate(plan, proof, results, marks, approve=approve, wanted=wanted)
    missing = [text for _, text in told.missing]
    if not told.open:
        return Released(told, None, False, plan.version, tuple(missing))
    body = {
        "approve": approve, "plan": plan.version, "plan_digest": plan_digest(plan), "manifest": told.manifest,
        "results": results, "cells": proof.active,
        "accepted": [f"{each.cell}: {each.what}" for each in proof.findings if each.kind == "accepted"],
    }  # fmt: skip
    while True:
        before = _before(store, plan, results)
        if before is not None:
            return Released(told, before, True, plan.version)
        if newer_plan(store, plan) is not plan:
            shut = Gate(((4, "the plan was changed just now: pull and verify again"),))
            return Released(shut, None, False, plan.version, (shut.missing[0][1],))
        if claim_release(store, plan.sweep, body, me):
            made = _before(store, plan, results)
            assert made is not None
            return Released(told, made, False, plan.version)


def _before(store: Store, plan: Plan, results: str) -> Mapping[str, Any] | None:
    """The release of this version with these results, if there is one."""
    same = (plan.version, plan_digest(plan), results)
    return next(
        (
            one.body for one in releases(store, plan.sweep)
            if (one.body.get("plan"), one.body.get("plan_digest"), one.body.get("results")) == same
        ),
        None,
    )  # fmt: skip


def _wanted(verified_as: str | None) -> str | None:
    """The digest of a manifest, by itself or by the folder it lies in. Raises UsageError."""
    if verified_as is None or _SHA.match(verified_as):
        return verified_as
    if not Path(verified_as).is_dir():
        raise UsageError(f"{verified_as} is neither a folder that was pulled to nor the digest of a manifest")
    return manifest_of(Path(verified_as))[1]
