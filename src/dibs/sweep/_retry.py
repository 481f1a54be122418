"""``retry``: what failed, or what reconcile finds damaged, may be run once more, with the identical config. Runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from dibs.errors import NotFound
from dibs.store import Store, SweepKeys
from dibs.study._view import view_of

from ._configs import config_places
from ._files import hash_file
from ._homes import unmarked
from ._inventory import Step
from ._models import Cell, Plan
from ._named import meant
from ._plans import change_plan
from ._prove import reconcile
from ._retrying import Decision, decide
from ._standing import standing
from ._task import edited_scripts

__all__ = ["Retried", "retry"]


@dataclass(frozen=True)
class Retried:
    """One decision for each cell that was looked at; ``plan``: the one that counts now. ``dry``: nothing was done.

    ``edited``: scripts whose files here are others than the planned ones, which is what cells run all the same.
    """

    decisions: tuple[Decision, ...]
    plan: Plan
    dry: bool = False
    edited: tuple[str, ...] = ()

    @property
    def freed(self) -> tuple[str, ...]:
        """The cells that anybody may take up now."""
        return tuple(each.cell for each in self.decisions if each.how is not None)

    @property
    def exit_code(self) -> int:
        """0 nothing was left, 4 a config is not what the plan says, 1 something else was left as it is."""
        return max((each.code for each in self.decisions), default=0)


def retry(
    store: Store,
    plan: Plan,
    names: Collection[str] = (),
    *,
    force: Collection[str] = (),
    limit: int = 2,
    yes: bool = False,
    quick: bool = False,
    dry: bool = False,
    me: str | None = None,
    step: Step | None = None,
) -> Retried:
    """Free what failed for a reason that may pass, and what is damaged; ``names``: only these cells.

    A failed trial's attempts are released; a done one stays done for ever, so a cell whose copies are damaged gets a new number
    by a new version of the plan. Raises NotFound for a name that no cell has, StoreError.
    """
    for name in (*names, *force):
        if plan.named(name) is None:
            raise NotFound(f"sweep {plan.sweep!r} has no cell {name!r}: {meant(plan, name)}")
    proof = reconcile(store, plan, quick=quick, step=step)
    damaged = {
        name: "; ".join(f"{each.file or 'its copies'}: {each.kind}" for each in found)
        for name, found in proof.damaged.items()
    }
    standings = standing(store, plan)
    changed = {cell.name: how for cell in plan.active for how in _changed(plan, cell)}
    decisions = decide(
        standings,
        damaged,
        changed,
        named=names,
        forced=force,
        limit=limit,
        yes=yes,
        unmarked=unmarked(store, plan, standings),
    )
    if not dry:
        plan = _do(store, plan, decisions, me)
    return Retried(tuple(decisions), plan, dry, edited_scripts(plan.task) if decisions else ())


def _do(store: Store, plan: Plan, decisions: list[Decision], me: str | None) -> Plan:
    keys = SweepKeys(plan.sweep)
    view = view_of(store, plan.sweep, keys)
    numbers = {cell.name: cell.n for cell in plan.cells}
    for each in decisions:
        if each.how == "release":
            n = numbers[each.cell]
            for seen in view.seens(n).values():
                if seen.state == "failed":
                    view.notes.release(n, seen.attempt, me)
    renewed = {each.cell: numbers[each.cell] for each in decisions if each.how == "renew"}
    view.refresh()
    return change_plan(store, plan, lambda newest: _renewed(newest, renewed), me) if renewed else plan


def _renewed(plan: Plan, numbers: dict[str, int]) -> Plan | None:
    """The plan in which these cells have new numbers; a cell that has one already, or is dropped, stays as it is."""
    size, cells = plan.size, []
    for cell in plan.cells:
        if not cell.dropped and numbers.get(cell.name) == cell.n:
            cell = replace(cell, n=size, former=(*cell.former, cell.n))
            size += 1
        cells.append(cell)
    return plan.next(cells=tuple(cells)) if size > plan.size else None


def _changed(plan: Plan, cell: Cell) -> Iterator[str]:
    """How the config's file differs from what the plan says, where it can be seen from here."""
    for path in config_places(plan, cell):
        try:
            _, digest = hash_file(path)
        except OSError:
            continue
        if digest != cell.config:
            yield (
                f"{path} is not the config that was planned: it has SHA-256 {digest[:12]}..., and the plan "
                f"{(cell.config or '')[:12]}...; put it back, or give the changed one a line of its own"
            )
        return
