"""The roster held against what lies there: every difference, what it means, and what to do. Pure.

Nothing is inferred from another thing: an attempt that says it is done, a copy that is there and a copy that has the bytes
it should have are three findings. Only a cell with all three is proven.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ._doubts import CONFIG, QUIET, Accepted, doubts, still, writers
from ._findings import AGAIN, Finding, Inventory, Lying, Reconciled, finding
from ._models import Artifact, Plan
from ._paths import is_path, same_when_folded
from ._retrying import action_of
from ._runs import CellStanding, Run

__all__ = ["compare"]

_ASKED = {  # where a person has to say
    CONFIG: "dibs sweep accept {cell} --approve NAME, if you know that it read the planned one; else " + AGAIN,
    QUIET: "wait for it; if its machine is gone for good: dibs sweep accept {cell} --approve NAME",
}
_MOUNT = "mount its place, which has no .dibs-final here; if it is lost indeed: "

_FAILED = {  # where retry alone would leave it as it is
    "stop": "mend it, then dibs sweep retry --force {cell}, and run it again",
    "ask": "make room where it writes, then dibs sweep retry --yes {cell}, and run it again",
}


def compare(
    plan: Plan,
    standings: Sequence[CellStanding],
    inventory: Inventory,
    unplanned: Iterable[Finding] = (),
    accepted: Collection[Accepted] = (),
    unmarked: Collection[str] = (),
) -> Reconciled:
    """Every difference between the plan, what the attempts say and what lies there, in the order of the roster.

    ``unplanned``: what the queue files say beyond the plan; ``accepted``: what people have answered for; ``unmarked``: cells
    whose place may be not mounted here.
    """
    findings: list[Finding] = [*unplanned, *_names(plan)]
    proven = []
    for each in standings:
        found = [*_cell(plan, each, inventory), *_asked(each, accepted)]
        if each.cell.name in unmarked:
            found = [_perhaps_unmounted(one) for one in found]
        findings += found
        if each.active and each.state == "done" and not any(one.fault for one in found):
            proven.append(each.cell.name)
    known = {cell.name for cell in plan.cells}
    for name in sorted(inventory.cells.keys() - known):
        findings.append(finding("unexpected", None, name, "no cell of the sweep has this name"))
    findings += [finding("unexpected", None, name, "it is no folder of a cell's results") for name in inventory.stray]
    return Reconciled(tuple(findings), tuple(proven), len(plan.active), inventory.quick, inventory.where)


def _perhaps_unmounted(one: Finding) -> Finding:
    """Nobody should run a cell again whose copy is only not to be seen from here."""
    return replace(one, cure=f"{_MOUNT}{one.cure}") if one.kind in ("claimed done but no artefact", "missing") else one


def _names(plan: Plan) -> Iterator[Finding]:
    for one, other in same_when_folded([cell.name for cell in plan.active]):
        said = f"{one!r} and {other!r} are two cells with one folder" + (
            " where case does not count" if one != other else ""
        )
        yield finding("duplicate name", other, None, said)


def _cell(plan: Plan, each: CellStanding, inventory: Inventory) -> Iterator[Finding]:
    name, run = each.cell.name, each.counts
    there = inventory.cells.get(name)
    if not each.active:
        if there:
            yield finding(
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
        yield finding("ran twice", name, None, f"done by {said}" + (f"; {copies} put aside" if aside else ""))
    if name in inventory.also:
        yield finding("copied elsewhere", name, None, f"{inventory.also[name]} is not the copy that its record names")
    if run.digest is not None and run.digest != each.cell.digest:
        said = f"it ran as {run.digest[:12]}, and the plan has {each.cell.digest[:12]}"
        yield finding("config changed", name, None, said)
    yield from _copies(plan, name, run, there or {}, inventory)


def _asked(each: CellStanding, accepted: Collection[Accepted]) -> Iterator[Finding]:
    """Who may still write for it, and what only a person can decide."""
    name = each.cell.name
    for one in writers(each):
        if not one.quiet:
            yield finding("running", name, None, still(each, one))
    for doubt in doubts(each):
        answer = doubt.answer(accepted)
        if answer is None:
            yield replace(finding(doubt.kind, name, None, doubt.what), cure=_ASKED[doubt.kind].format(cell=name))
        else:
            said = f"{doubt.kind}: {doubt.what}; accepted by {answer.approve}" + (
                f": {answer.why}" if answer.why else ""
            )
            yield finding("accepted", name, None, said)


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
        return finding("never ran", name, None, told)
    by = f"attempt {run.attempt} by {run.me} on {run.host}"
    if each.state == "running" and run.gone:
        return finding("interrupted", name, None, f"{by}, since {run.since}: its process is gone")
    if each.state == "running":
        return finding("quiet" if run.quiet else "running", name, None, f"{by}, since {run.since}")
    found = finding(each.state, name, None, f"{by}: {run.reason or run.cause or 'no reason was given'}")
    cure = _FAILED.get(action_of(run)) if each.state == "failed" else None
    return replace(found, cure=cure.format(cell=name)) if cure else found


def _copies(plan: Plan, name: str, run: Run, there: Mapping[str, Lying], inventory: Inventory) -> Iterator[Finding]:
    declared = run.artifacts
    if not plan.task.artifacts and not declared:
        yield finding("nothing to prove", name, None, "it is done, and no artefact was asked for")
        return
    if not declared:
        yield finding("claimed done but no artefact", name, None, "its record names no artefacts")
        return
    if not there:
        yield finding(
            "claimed done but no artefact",
            name,
            None,
            f"{len(declared)} files were copied, and none is in {inventory.where}",
        )
        return
    for pattern in plan.task.artifacts:
        if not any(_fits(kept, pattern) for kept in declared):
            yield finding("missing", name, pattern, "it is declared, and the attempt that counts left none")
    for kept in declared.values():
        found = _file(name, kept, there.get(kept.name))
        if found is not None:
            at = inventory.of.get(name)
            other = (
                f" (the copy says it is of trial {at[0]} attempt {at[1]})" if at not in (None, run.at) and at else ""
            )
            yield finding(found[0], name, kept.name, found[1] + other)
    for extra in sorted(there.keys() - declared.keys()):
        yield finding("unexpected", name, extra, "the attempt that counts did not leave it")


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
