"""``accept``: a person's answer to what nothing here can decide, written down under his name. Runs and changes nothing else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from dibs.errors import NotFound, StoreError, UsageError
from dibs.store import Store

from ._doubts import CONFIG, Accepted, Doubt, doubts
from ._marks import accepted_in, claim_accepted
from ._models import Plan
from ._named import meant
from ._standing import standing

__all__ = ["Acceptance", "accept"]


@dataclass(frozen=True)
class Acceptance:
    """One question and its answer. ``already``: somebody had given it before."""

    doubt: Doubt
    answer: Accepted
    already: bool

    def to_json(self) -> dict[str, Any]:
        run = self.doubt.run
        return {
            "cell": self.doubt.cell, "kind": self.doubt.kind, "n": run.n, "attempt": run.attempt, "what": self.doubt.what,
            "approve": self.answer.approve, "why": self.answer.why, "already": self.already,
        }  # fmt: skip


def accept(
    store: Store, plan: Plan, names: Collection[str], *, approve: str, why: str = "", me: str | None = None
) -> list[Acceptance]:
    """Write down that these cells stand as they are: nobody has to run them again, or to wait for them, because of it.

    It is about the attempts, and what was seen of them, as they are now. Raises NotFound for a name that no cell has, UsageError if
    there is nothing to accept about one, or nobody's name; and then nothing is written. StoreError.
    """
    if not approve.strip():
        raise UsageError("nobody has given a name for it: --approve NAME")
    for name in names:
        if plan.named(name) is None:
            raise NotFound(f"sweep {plan.sweep!r} has no cell {name!r}: {meant(plan, name)}")
    found: list[Doubt] = []
    for each in standing(store, plan, probe=True):
        if each.cell.name in names:
            asked = list(doubts(each))
            if not asked:
                raise UsageError(
                    f"there is nothing to accept about {each.cell.name}: only a config that was edited while its cell ran is a matter "
                    "of opinion, and an attempt that is quiet; see dibs sweep reconcile"
                )
            found += asked
    given = []
    for doubt in found:
        body = {**_seen(doubt), "approve": approve, "why": why}
        mine = claim_accepted(store, plan.sweep, doubt.name, body, me)
        answer = doubt.answer(accepted_in(store, plan.sweep))
        if answer is None:
            raise StoreError(
                f"what was accepted of {doubt.cell} before does not read: dibs check names the file; remove it"
            )
        given.append(Acceptance(doubt, answer, not mine))
    return given


def _seen(doubt: Doubt) -> dict[str, Any]:
    run = doubt.run
    seen = {
        "cell": doubt.cell, "about": doubt.kind, "n": run.n, "attempt": run.attempt, "what": doubt.what, "host": run.host,
    }  # fmt: skip
    return seen | ({"config": run.edited} if doubt.kind == CONFIG else {})
