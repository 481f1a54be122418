"""What reconcile answers with: differences, what each means, what to do about it, and what they amount to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["AGAIN", "CURES", "DAMAGE", "OPEN", "Finding", "Inventory", "Lying", "Reconciled", "finding"]

#: what is wrong with the copies of a cell that is done: only another run of it mends that
DAMAGE = (
    "claimed done but no artefact",
    "missing",
    "empty",
    "truncated",
    "hash differs",
    "unreadable",
    "config changed",
)
#: what is only not finished
OPEN = ("never ran", "interrupted", "running", "quiet")
AGAIN = "dibs sweep retry {cell}, and run it again"
CURES = {
    "claimed done but no artefact": AGAIN,
    "missing": AGAIN,
    "empty": AGAIN,
    "truncated": AGAIN,
    "hash differs": AGAIN,
    "unreadable": "look at its permissions and its disk; if it stays so: " + AGAIN,
    "config changed": AGAIN + ": it would be the planned config's result then",
    "failed": AGAIN,
    "unsynced": "make room or mend the place that final copies go to, then " + AGAIN,
    "interrupted": "dibs sweep run takes it up again",
    "never ran": "dibs sweep run",
    "not planned": "dibs sweep plan takes it over, or says why not; or put the file back",
    "running": "wait for it",
    "quiet": "if its machine is gone, dibs sweep run on another one takes it up in time",
    "nothing to prove": "name what a cell leaves: dibs sweep plan ... --artifact FILE --new-version, and run it again (retry --force)",
    "ran twice": "nothing: the copy is that of the attempt that counts",
    "duplicate name": "give each cell a name of its own: dibs sweep plan --name TEMPLATE",
    "unexpected": "see whose it is, and move it out of the folder",
    "dropped but result there": "nothing, if it is not wanted; turn its line back into a cell otherwise",
    "accepted": "nothing: that was answered for",
    "copied elsewhere": "nothing: the one that counts is where its record says",
}
_NOTES = ("ran twice", "dropped but result there", "accepted", "copied elsewhere")


@dataclass(frozen=True)
class Finding:
    """One difference. ``fault``: the roster is not proven while it stands; else it is only worth knowing."""

    kind: str
    cell: str | None
    file: str | None
    what: str
    cure: str
    fault: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "cell": self.cell, "file": self.file, "what": self.what, "cure": self.cure, "fault": self.fault,
        }  # fmt: skip


@dataclass(frozen=True)
class Lying:
    """One durable copy as it lies there. ``digest``: None if it was not read; ``why``: it cannot be read, and why."""

    size: int
    digest: str | None = None
    why: str | None = None


@dataclass(frozen=True)
class Inventory:
    """What lies in final: cell -> file -> what it is. ``of``: cell -> the (trial, attempt) its manifest names.

    ``stray``: what is no folder of a cell's; ``aside``: cell -> how many copies of other attempts were put aside; ``also``: cell ->
    where a copy lies that is not the one its record names. ``where``: for people. ``quick``: sizes only.
    """

    where: str
    cells: Mapping[str, Mapping[str, Lying]]
    of: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    stray: tuple[str, ...] = ()
    aside: Mapping[str, int] = field(default_factory=dict)
    quick: bool = False
    also: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reconciled:
    """``proven``: the cells that are done and whose copies are what they should be. ``active``: how many there are to be."""

    findings: tuple[Finding, ...]
    proven: tuple[str, ...]
    active: int
    quick: bool = False
    where: str = ""

    @property
    def clean(self) -> bool:
        """Whether every cell is proven, and there is one: 0 of 0 proves nothing."""
        return self.active > 0 and len(self.proven) == self.active and not any(each.fault for each in self.findings)

    @property
    def exit_code(self) -> int:
        """0 clean, 5 no cells, 7 a durable copy failed, 6 all that is missing is being run, 1 anything else."""
        faults = {each.kind for each in self.findings if each.fault}
        if self.active == 0:
            return 5
        if "unsynced" in faults:
            return 7
        if faults and faults <= {"running", "quiet"}:
            return 6
        return 0 if self.clean else 1

    @property
    def damaged(self) -> dict[str, list[Finding]]:
        """Cells that are done, and of which something is not as it should be: by name."""
        found: dict[str, list[Finding]] = {}
        for each in self.findings:
            if each.kind in DAMAGE and each.cell is not None:
                found.setdefault(each.cell, []).append(each)
        return found


def finding(kind: str, cell: str | None, file: str | None, what: str) -> Finding:
    """A difference of that kind, with its cure."""
    return Finding(kind, cell, file, what, CURES[kind].format(cell=cell), kind not in _NOTES)
