"""The roster held against what lies there: every difference, what it means, and what to do. Pure.

Nothing is inferred from another thing: an attempt that says it is done, a copy that is there and a copy that has the bytes
it should have are three findings. Only a cell with all three is proven.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from ._doubts import CONFIG, QUIET, Accepted, doubts, still, writers
from ._models import Artifact, Plan
from ._paths import is_path, same_when_folded
from ._runs import CellStanding, Run

__all__ = ["CURES", "DAMAGE", "OPEN", "Finding", "Inventory", "Lying", "Reconciled", "compare"]

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
_AGAIN = "dibs sweep retry {cell}, and run it again"
CURES = {
    "claimed done but no artefact": _AGAIN,
    "missing": _AGAIN,
    "empty": _AGAIN,
    "truncated": _AGAIN,
    "hash differs": _AGAIN,
    "unreadable": "look at its permissions and its disk; if it stays so: " + _AGAIN,
    "config changed": _AGAIN + ": it would be the planned config's result then",
    "failed": "dibs sweep retry {cell}, once you know why: dibs sweep status shows the cause",
    "unsynced": "make room or mend the place that final copies go to, then " + _AGAIN,
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
_ASKED = {  # where a person has to say
    CONFIG: "dibs sweep accept {cell} --approve NAME, if you know that it read the planned one; else " + _AGAIN,
    QUIET: "wait for it; if its machine is gone for good: dibs sweep accept {cell} --approve NAME",
}


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


def compare(
    plan: Plan,
    standings: Sequence[CellStanding],
    inventory: Inventory,
    unplanned: Iterable[Finding] = (),
    accepted: Collection[Accepted] = (),
) -> Reconciled:
    """Every difference between the plan, what the attempts say and what lies there, in the order of the roster.

    ``unplanned``: what the queue files say beyond the plan; ``accepted``: what people have answered for.
    """
    findings: list[Finding] = [*unplanned, *_names(plan)]
    proven = []
    for each in standings:
        found = [*_cell(plan, each, inventory), *_asked(each, accepted)]
        findings += found
        if each.active and each.state == "done" and not any(one.fault for one in found):
            proven.append(each.cell.name)
    known = {cell.name for cell in plan.cells}
    for name in sorted(inventory.cells.keys() - known):
        findings.append(_finding("unexpected", None, name, "no cell of the sweep has this name"))
    findings += [_finding("unexpected", None, name, "it is no folder of a cell's results") for name in inventory.stray]
    return Reconciled(tuple(findings), tuple(proven), len(plan.active), inventory.quick, inventory.where)


def _names(plan: Plan) -> Iterator[Finding]:
    for one, other in same_when_folded([cell.name for cell in plan.active]):
        said = f"{one!r} and {other!r} are two cells with one folder" + (
            " where case does not count" if one != other else ""
        )
        yield _finding("duplicate name", other, None, said)


def _cell(plan: Plan, each: CellStanding, inventory: Inventory) -> Iterator[Finding]:
    name, run = each.cell.name, each.counts
    there = inventory.cells.get(name)
    if not each.active:
        if there:
            yield _finding(
                "dropped but result there",
                name,
                None,
                f"its line is a comment, and what lies there is {len(there)} file{'s' * (len(there) != 1)}",
            )
        return
    if each.state != "done" or run is None:
        yield _unfinished(each)
        return
    finished = [one for one in each.runs if one.state == "done"]
    if len(finished) > 1 or inventory.aside.get(name):
        said = ", ".join(f"attempt {one.attempt} on {one.host}" for one in finished)
        aside = inventory.aside.get(name, 0)
        copies = "1 copy" if aside == 1 else f"{aside} copies"
        yield _finding("ran twice", name, None, f"done by {said}" + (f"; {copies} put aside" if aside else ""))
    if name in inventory.also:
        yield _finding("copied elsewhere", name, None, f"{inventory.also[name]} is not the copy that its record names")
    if run.digest is not None and run.digest != each.cell.digest:
        said = f"it ran as {run.digest[:12]}, and the plan has {each.cell.digest[:12]}"
        yield _finding("config changed", name, None, said)
    yield from _copies(plan, name, run, there or {}, inventory)


def _asked(each: CellStanding, accepted: Collection[Accepted]) -> Iterator[Finding]:
    """Who may still write for it, and what only a person can decide."""
    name = each.cell.name
    for one in writers(each):
        if not one.quiet:
            yield _finding("running", name, None, still(each, one))
    for doubt in doubts(each):
        answer = doubt.answer(accepted)
        if answer is None:
            yield replace(_finding(doubt.kind, name, None, doubt.what), cure=_ASKED[doubt.kind].format(cell=name))
        else:
            said = f"{doubt.kind}: {doubt.what}; accepted by {answer.approve}" + (
                f": {answer.why}" if answer.why else ""
            )
            yield _finding("accepted", name, None, said)


def _unfinished(each: CellStanding) -> Finding:
    name, run = each.cell.name, each.counts
    if run is None or each.state == "waiting":
        told = (
            f"to be tried again after attempt {run.attempt}: {run.reason or run.state}"
            if run
            else "nobody has begun it"
        )
        if run is None and each.cell.former:
            told = f"to be run again (trial {each.cell.n}), instead of trial {each.cell.former[-1]}"
        return _finding("never ran", name, None, told)
    by = f"attempt {run.attempt} by {run.me} on {run.host}"
    if each.state == "running" and run.gone:
        return _finding("interrupted", name, None, f"{by}, since {run.since}: its process is gone")
    if each.state == "running":
        return _finding("quiet" if run.quiet else "running", name, None, f"{by}, since {run.since}")
    return _finding(each.state, name, None, f"{by}: {run.reason or run.cause or 'no reason was given'}")


def _copies(plan: Plan, name: str, run: Run, there: Mapping[str, Lying], inventory: Inventory) -> Iterator[Finding]:
    declared = run.artifacts
    if not plan.task.artifacts and not declared:
        yield _finding("nothing to prove", name, None, "it is done, and no artefact was asked for")
        return
    if not declared:
        yield _finding("claimed done but no artefact", name, None, "its record names no artefacts")
        return
    if not there:
        yield _finding(
            "claimed done but no artefact",
            name,
            None,
            f"{len(declared)} files were copied, and none is in {inventory.where}",
        )
        return
    for pattern in plan.task.artifacts:
        if not any(_fits(kept, pattern) for kept in declared):
            yield _finding("missing", name, pattern, "it is declared, and the attempt that counts left none")
    for kept in declared.values():
        found = _file(name, kept, there.get(kept.name))
        if found is not None:
            at = inventory.of.get(name)
            other = (
                f" (the copy says it is of trial {at[0]} attempt {at[1]})" if at not in (None, run.at) and at else ""
            )
            yield _finding(found[0], name, kept.name, found[1] + other)
    for extra in sorted(there.keys() - declared.keys()):
        yield _finding("unexpected", name, extra, "the attempt that counts did not leave it")


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))


def _file(name: str, kept: Artifact, lying: Lying | None) -> tuple[str, str] | None:
    if not is_path(kept.name):
        return "unreadable", "its name leads out of the cell's folder"
    if lying is None:
        return "missing", f"{kept.size} bytes were copied, and it is not there"
    if lying.why is not None:
        return "unreadable", lying.why
    if lying.size == 0:
        return "empty", f"it has no bytes instead of {kept.size}" if kept.size else "it has no bytes"
    if lying.size < kept.size:
        return "truncated", f"it has {lying.size} bytes instead of {kept.size}"
    if lying.size > kept.size:
        return "hash differs", f"it has {lying.size} bytes instead of {kept.size}"
    if lying.digest is not None and lying.digest != kept.digest:
        return "hash differs", f"its SHA-256 is {lying.digest[:12]}... instead of {kept.digest[:12]}..."
    return None


def _finding(kind: str, cell: str | None, file: str | None, what: str) -> Finding:
    return Finding(kind, cell, file, what, CURES[kind].format(cell=cell), kind not in _NOTES)
