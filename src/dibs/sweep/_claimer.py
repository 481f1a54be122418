"""The next cell for one worker: those somebody left or died over first, then the longest that nobody has.

A claimer of trials but for what is new: there the roster is asked instead of a sampler, and a dropped cell is never claimed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dibs.search import Sampler
from dibs.space import Space
from dibs.study._attempt import Attempt
from dibs.study._claimer import Claimer, Idle

from ._models import Cell, Plan
from ._ordering import in_order

if TYPE_CHECKING:
    from ._cells import Cells

__all__ = ["CellClaimer"]

log = logging.getLogger("dibs")
_FOLLOW_EVERY_S = 2.0  # while nothing is begun
_LOSSES = 8  # claims lost in a row before the names are read again


class Roster(Sampler):
    """A roster as what a claimer asks for points: the columns of the cell that the trial runs."""

    name = "roster"
    needs_history = False

    def __init__(self, cells: Cells) -> None:
        super().__init__(seed=0)
        self.cells = cells

    def ask(self, space: Space, n: int, history: Iterable[Any] = ()) -> dict[str, Any] | None:
        cell = self.cells.plan.cell(n)
        return dict(cell.fields) if cell is not None else None


class CellClaimer(Claimer):
    """``step`` as a study's claimer's, over the cells that a run wants."""

    def __init__(self, cells: Cells, rescue_after_s: float | None) -> None:
        cells.follow()
        self.cells = cells
        super().__init__(
            cells.store, cells.view, space=cells.space, sampler=Roster(cells), goal=cells.goal, seed=_seed(cells.plan),
            trials=cells.plan.size, stale_s=cells.stale_s, me=cells.me, rescue_after_s=rescue_after_s,
        )  # fmt: skip
        self._follow_at = 0.0
        self._adopt()

    def step(self) -> Attempt | Idle:
        """Claim the next cell, or say why there is none. Raises StoreError, UnsureError, RefusedError (in a copy)."""
        self._follow()
        got = super().step()
        if isinstance(got, Attempt):
            self._follow_at = 0.0
        return got

    def look(self) -> Idle | None:
        """Why there is nothing to claim, None if there may be something; claims nothing. Raises StoreError, RefusedError."""
        self._follow()
        return super().look()

    def wants(self, n: int) -> bool:
        """Whether the trial is one that runs a wanted cell now."""
        return n in self._wanted

    def _left(self) -> bool:
        return any(cell.n not in self.view.names for cell in self._order)

    def _refresh(self) -> None:
        self.view.refresh()

    def _fresh(self) -> Attempt | None:
        lost = 0
        for cell in self._order:
            if cell.n in self.view.names:
                continue
            claimed = self._claim(cell.n, 0, cell.fields, saw=self._saw(cell.n))
            if claimed is not None:
                return claimed
            lost += 1
            if lost % _LOSSES == 0:  # others are at it, too
                self.view.refresh()
        return None

    def _saw(self, n: int) -> Mapping[str, Any] | None:
        cell = self._wanted.get(n)
        return None if cell is None else {"cell": cell.name, "digest": cell.digest, "plan": self._plan.version}

    # the plan

    def _follow(self) -> None:
        now = self.store.machine.clock.monotonic()
        if now >= self._follow_at:
            self._follow_at = now + _FOLLOW_EVERY_S
            self.cells.follow()
        if self.cells.plan.version != self._plan.version:
            before = {cell.n for cell in self._wanted.values()}
            self._adopt()
            _say(self._plan, before, self._wanted)

    def _adopt(self) -> None:
        self._plan = self.cells.plan
        self._wanted = {cell.n: cell for cell in self.cells.wanted()}
        self._order = in_order(self.store, self._plan, list(self._wanted.values()), self.cells.only)
        self.trials = self._plan.size
        self._terms = replace(self._terms, of=self.trials, goal=self.cells.goal)


def _say(plan: Plan, before: set[int], wanted: Mapping[int, Cell]) -> None:
    new = [cell.name for n, cell in wanted.items() if n not in before]
    gone = [cell.name for cell in plan.cells if cell.n in before - wanted.keys()]
    said = [f"{what}: {', '.join(names)}" for what, names in (("new", new), ("dropped", gone)) if names]
    log.info("plan %d of the sweep %s counts now%s", plan.version, plan.sweep, "".join(f"; {each}" for each in said))


def _seed(plan: Plan) -> int:
    """A seed for cells that want one: the same on every machine."""
    return int.from_bytes(hashlib.sha256(plan.sweep.encode("utf-8", "surrogatepass")).digest()[:4], "big")
