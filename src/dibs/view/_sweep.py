"""A sweep at a glance: cells by state, who runs what, what failed and why, which script ran where, and what was proven."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from posixpath import normpath

from dibs._clock import iso
from dibs.cell import isolation_status
from dibs.store import Store, SweepKeys
from dibs.study._view import view_of
from dibs.sweep import STATES, CellStanding, Plan, Run, standing
from dibs.sweep._doubts import writers
from dibs.sweep._forecast import left_s
from dibs.sweep._marks import releases, verified

from ._models import Problem
from ._plain import Plain
from ._source import bare, cure_of

__all__ = ["CellLine", "CellRunning", "ScriptUse", "SweepStatus", "sweep_status"]


@dataclass(frozen=True, slots=True)
class CellLine(Plain):
    """A cell that ended badly, or stopped on its way: the attempt that counts, and why."""

    cell: str
    state: str
    n: int
    attempt: int
    cause: str | None
    reason: str | None
    me: str
    host: str


@dataclass(frozen=True, slots=True)
class CellRunning(Plain):
    """A cell that somebody runs. ``since``: by the clock of ``host``. ``beat_age_s``: since it last moved, at least;
    ``quiet``: longer than its patience; ``gone``: its process, on this machine, is certainly dead. ``although``: the cell's state, where nobody
    waits for this attempt: done or dropped."""

    cell: str
    n: int
    attempt: int
    me: str
    host: str
    since: str | None
    beat_age_s: float
    quiet: bool
    gone: bool = False
    although: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptUse(Plain):
    """A version of a script: its digest, whether it is the plan's, and how many cells ran by it (``cells``: which)."""

    file: str
    digest: str
    planned: bool
    count: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SweepStatus(Plain):
    """``counts``: active cells by state, adding up to ``active``, and the dropped ones. ``isolation``: "enforced ...",
    "advisory ..." on this machine, or "not asked for". ``left_s``: until all are run at this pace, None if nobody can say.
    ``verified``: whether a pull was verified at this version; ``released``: by whom it was released, if it is."""

    sweep: str
    store: str
    plan: int
    where: str
    active: int
    counts: dict[str, int]
    running: tuple[CellRunning, ...]
    failed: tuple[CellLine, ...]
    unsynced: tuple[CellLine, ...]
    interrupted: tuple[CellLine, ...]
    scripts: tuple[ScriptUse, ...]
    isolation: str
    left_s: float | None
    newest_at: str | None
    still_s: float | None
    verified: bool
    released: str | None
    problems: tuple[Problem, ...] = ()
    cells: tuple[tuple[str, str], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every cell is done, and there is one."""
        return self.active > 0 and self.counts["done"] == self.active


def sweep_status(store: Store, plan: Plan) -> SweepStatus:
    """The status as seen now. Writes nothing; raises StoreError if the store does not answer."""
    standings = standing(store, plan)
    view = view_of(store, plan.sweep, SweepKeys(plan.sweep))
    counts = {state: sum(each.state == state for each in standings) for state in STATES}
    marks = [mark.body for mark in verified(store, plan.sweep)]
    released = [mark.body for mark in releases(store, plan.sweep) if mark.body.get("plan") == plan.version]
    newest = view.newest
    return SweepStatus(
        sweep=plan.sweep,
        store=store.url,
        plan=plan.version,
        where=plan.where,
        active=len(plan.active),
        counts=counts,
        running=tuple(
            CellRunning(
                each.cell.name, run.n, run.attempt, run.me, run.host, run.since,
                max(0.0, newest - view.seens(run.n)[run.attempt].modified), run.quiet, run.gone,
                None if each.state == "running" else each.state,
            )
            for each in standings for run in _runs(each)
        ),
        failed=_lines(standings, "failed"),
        unsynced=_lines(standings, "unsynced"),
        interrupted=_lines(standings, "interrupted"),
        scripts=_scripts(plan, standings),
        isolation=isolation_status() if plan.task.isolate else "not asked for",
        left_s=left_s(standings),
        newest_at=iso(newest) if newest else None,
        still_s=max(0.0, store.machine.clock.wall() - newest) if newest else None,
        verified=any(mark.get("plan") == plan.version for mark in marks),
        released=str(released[-1].get("approve")) if released else None,
        problems=tuple(
            Problem(key, bare(why), cure_of(key, False)) for key, why in sorted(view.problems.items())
        ),
        cells=tuple((each.cell.name, each.state) for each in standings),
    )  # fmt: skip


def _runs(each: CellStanding) -> Iterable[Run]:
    """The attempt that is on its way, or those that still write although nobody waits for them."""
    return [each.counts] if each.state == "running" and each.counts is not None else writers(each)


def _lines(standings: Sequence[CellStanding], state: str) -> tuple[CellLine, ...]:
    return tuple(
        CellLine(each.cell.name, state, run.n, run.attempt, run.cause, run.reason, run.me, run.host)
        for each in standings
        if each.state == state and (run := each.counts) is not None
    )


def _scripts(plan: Plan, standings: Sequence[CellStanding]) -> tuple[ScriptUse, ...]:
    """Every version that the plan has or a cell was run by, the plan's first."""
    planned = {normpath(file): digest for file, digest in plan.task.scripts.items()}  # as records have it
    used: dict[tuple[str, str], list[str]] = {at: [] for at in planned.items()}
    for each in standings:
        for at in each.counts.scripts.items() if each.counts is not None else ():
            used.setdefault(at, []).append(each.cell.name)
    return tuple(
        ScriptUse(file, digest, planned.get(file) == digest, len(cells), tuple(cells))
        for (file, digest), cells in used.items()
    )
