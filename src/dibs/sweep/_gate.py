"""May the machines go? Everything that is missing until they may. Pure.

Open only if the roster is complete, a pull of exactly these results was verified at this version of the plan, and somebody gave
their name for it. What was verified of another version, or of other results, is none of this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._findings import Reconciled
from ._manifest import plan_digest, results_digest
from ._models import Plan
from ._runs import CellStanding

__all__ = ["Gate", "gate", "results_of"]

_FIRST = (5, 7, 1, 6, 4, 2)  # which code is told if several things are missing


@dataclass(frozen=True)
class Gate:
    """``missing``: (exit code, sentence) for each thing that is; ``manifest``: the digest of what was verified."""

    missing: tuple[tuple[int, str], ...]
    manifest: str | None = None

    @property
    def open(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing and self.manifest is not None

    @property
    def exit_code(self) -> int:
        """0 open; 5 no cells, 7 a durable copy failed, 1 something is missing, 6 it is being run, 4 not verified as it is, 2 no name."""
        codes = {code for code, _ in self.missing}
        return next((code for code in _FIRST if code in codes), 0)


def results_of(standings: Sequence[CellStanding]) -> str:
    """The digest of what all cells that are done have left, as a manifest's."""
    return results_digest(
        {
            each.cell.name: {kept.name: kept.digest for kept in (each.counts.artifacts or {}).values()}
            for each in standings
            if each.active and each.state == "done" and each.counts is not None
        }
    )


def gate(
    plan: Plan,
    proof: Reconciled,
    results: str,
    marks: Sequence[Mapping[str, Any]],
    *,
    approve: str | None,
    wanted: str | None = None,
) -> Gate:
    """``results``: what is there now, by ``results_of``; ``marks``: what was verified and not taken back; ``wanted``: the
    digest of the manifest that it has to be, None: of any."""
    missing: list[tuple[int, str]] = []
    if proof.active == 0:
        missing.append((5, "no cell is to be run: 0 of 0 proves nothing"))
    for each in (one for one in proof.findings if one.fault):
        code = 7 if each.kind == "unsynced" else 6 if each.kind in ("running", "quiet") else 1
        of = " ".join(part for part in (each.cell, each.file) if part)
        missing.append((code, f"{each.kind}: {of}: {each.what}"))
    if proof.quick:
        missing.append((4, "the copies were compared by size only"))
    manifest = _manifest(plan, proof, results, marks, wanted, missing)
    if not (approve or "").strip():
        missing.append((2, "nobody has given a name for it: --approve NAME"))
    return Gate(tuple(missing), manifest if not missing else None)


def _manifest(
    plan: Plan,
    proof: Reconciled,
    results: str,
    marks: Sequence[Mapping[str, Any]],
    wanted: str | None,
    missing: list[tuple[int, str]],
) -> str | None:
    """The verified manifest that is of this plan and these results; says what is missing if there is none."""
    if not marks:
        missing.append((4, "no pull was verified: dibs sweep pull DEST, then dibs sweep verify DEST"))
        return None
    named = [mark for mark in marks if wanted is None or mark.get("manifest") == wanted]
    if not named:
        missing.append(
            (4, f"manifest {str(wanted)[:16]}... was not verified, or does not hold any more: dibs sweep verify DEST")
        )
        return None
    ours = [mark for mark in named if (mark.get("plan"), mark.get("plan_digest")) == (plan.version, plan_digest(plan))]
    if not ours:
        of = max(mark["plan"] if isinstance(mark.get("plan"), int) else -1 for mark in named)
        missing.append((4, f"verified was version {of} of the plan, which is at {plan.version}: pull and verify again"))
        return None
    same = [mark for mark in ours if mark.get("results") == results and mark.get("cells") == proof.active]
    if not same:
        missing.append((4, "verified were other results than those that are there now: pull and verify again"))
        return None
    return str(same[-1].get("manifest"))
