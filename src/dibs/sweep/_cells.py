"""The cells of a sweep as a run sees them: who claims, which are wanted, what is minded on this host.

The plan is followed while one runs: a version that somebody has added counts from the next cell on.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any, final

from dibs.search import Goals
from dibs.space import Constant, Space
from dibs.store import Store, SweepKeys
from dibs.study._attempt import Attempt
from dibs.study._claimer import Claimer
from dibs.study._definition import DEFAULT_STALE_S
from dibs.study._events import Counted
from dibs.study._runnable import Cap
from dibs.study._scoring import goal_said
from dibs.study._slots import StudyRack
from dibs.study._view import View, view_of

from ._claimer import CellClaimer
from ._models import Cell, Plan
from ._plans import newer_plan
from ._selected import Only

__all__ = ["Cells", "Reread"]

Reread = Callable[[Store, Plan], Plan | None]


@final
class Cells:
    """What a run needs of a sweep. ``plan``: the version that counts, as far as is known here.

    ``workers``: cells at once on this host, for all runs that say so; ``host``: under another name than its own. ``only``: which to run, None = all.
    ``reread``: looks at the queue files, on the host that has them; None = nobody does.
    """

    def __init__(
        self,
        store: Store,
        plan: Plan,
        *,
        me: str | None = None,
        workers: int = 1,
        host: str | None = None,
        only: Only | None = None,
        reread: Reread | None = None,
        stale_s: float = DEFAULT_STALE_S,
    ) -> None:
        self.store, self.plan, self.me, self.workers, self.host, self.only = store, plan, me, workers, host, only
        self.reread, self._stale_s = reread, stale_s

    @property
    def keys(self) -> SweepKeys:
        return SweepKeys(self.plan.sweep)

    @property
    def view(self) -> View:
        return view_of(self.store, self.plan.sweep, self.keys)

    @property
    def goal(self) -> Goals | None:
        return goal_said(self.plan.task.goal)

    @property
    def space(self) -> Space:
        """Nothing is searched: a cell's columns are its point."""
        return Space(cell=Constant(self.plan.sweep))

    @property
    def stale_s(self) -> float:
        return self._stale_s

    def takes(self, cell: Cell) -> bool:
        """Whether this run would run the cell."""
        return not cell.dropped and (self.only is None or self.only.takes(cell))

    def wanted(self) -> list[Cell]:
        """The cells that this run would run, by their place in the roster."""
        return [cell for cell in self.plan.cells if self.takes(cell)]

    def follow(self) -> bool:
        """Look for a newer plan, by one read, and on the planning host at the queue files. True if there is one."""
        plan = newer_plan(self.store, self.plan)
        if self.reread is not None:
            plan = self.reread(self.store, plan) or plan
        if plan.version == self.plan.version:
            return False
        self.plan = plan
        return True

    def claimer(self, n: int, rescue_after_s: float | None = None) -> Claimer:
        """One worker's way through the cells. ``n`` is the plan's to say."""
        return CellClaimer(self, rescue_after_s)

    def pruning(self, attempt: Attempt) -> None:
        return None

    def counted(self, total: int) -> Counted:
        """The wanted cells by state."""
        states: Counter[str] = Counter()
        best: float | None = None
        wanted = self.wanted()
        for cell in wanted:
            folded = self.view.trial(cell.n)
            if folded is None:
                continue
            states[folded.state] += 1
            score = folded.counts.record.score if folded.counts.record is not None else None
            if self.goal is not None and folded.state == "done" and score is not None:
                best = score if best is None else (min if self.goal == "min" else max)(best, score)
        return Counted(dict(states), best, len(wanted))

    def caps(self, max_running: int | None) -> list[Cap]:
        """So many at once on this host, and, if somebody says so, in the whole sweep."""
        many = f"{self.workers} cell{'s' * (self.workers != 1)} at a time on this host (--workers)"
        caps = [Cap(HostPlaces(self), f"the limit of {many}", names=True)]
        if max_running is not None:
            rack = StudyRack(self.store, self.keys, max_running, self.me)
            caps.append(Cap(rack, f"the cap of {max_running} running cell{'s' * (max_running != 1)}"))
        return caps


class HostPlaces:
    """``sweep/<s>/host/<host>/<k>/<generation>.json``: the places of this host, as all runs of it and its pid namespace see them.

    Inside a Slurm job they count within that job, whose cores they share; under a name that was given, by that name.
    """

    def __init__(self, cells: Cells) -> None:
        who = cells.store.machine.who("")
        place = f"{who['host']}-{who['boot'][:8] or 'boot'}-{who['token'].rpartition('-')[0] or '0'}"
        job = os.environ.get("SLURM_JOB_ID")
        self.host = cells.host or (f"{place}-slurm-{job}" if job else place)
        self.store, self.keys, self.me, self.count = cells.store, cells.keys, cells.me, cells.workers

    def key(self, slot: int, generation: int) -> str:
        return self.keys.place(self.host, slot, generation)

    def newest(self, slot: int) -> int:
        names = self.store.backend.names(self.keys.places(self.host, slot))
        stems = (name.removesuffix(".json") for name in names)
        return max((int(stem) for stem in stems if stem.isascii() and stem.isdigit()), default=-1)

    def body(self, slot: int, generation: int) -> dict[str, Any]:
        head = self.store.head("slot", self.me)
        return {**head, "sweep": self.keys.name, "slot": slot, "generation": generation, "of": self.count}
