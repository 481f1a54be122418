"""When a sweep may be finished: a guess from what done cells took, and none where there is nothing to guess from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.sweep.cells import begin, finish, planned

from dibs import Store
from dibs.sweep import CellStanding, standing
from dibs.sweep._forecast import left_s


def at_pace(standings: list[CellStanding], took_s: float, cost: float | None) -> list[CellStanding]:
    return [
        replace(
            each, cell=replace(each.cell, cost=cost and cost * (1 + each.cell.n)),
            counts=each.counts and replace(each.counts, took_s=took_s * (1 + each.cell.n)),
        )
        for each in standings
    ]  # fmt: skip


def test_at_the_pace_so_far(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a", "b", "c", "d")
    assert left_s(standing(store, plan)) is None
    finish(store, plan, "a")
    assert left_s(standing(store, plan)) is None  # nobody runs any
    begin(store, plan, "b")
    found = standing(store, plan)
    assert left_s(at_pace(found, 10.0, None)) == 10.0 * 2.5  # half of b, c and d
    assert left_s(at_pace(found, 10.0, 4.0)) == 10.0 * (1 + 3 + 4)  # as b, c and d cost 2, 3 and 4 times a
    longer = [replace(each, cell=replace(each.cell, fields={"epochs": 4 * (1 + each.cell.n)})) for each in found]
    assert left_s(at_pace(longer, 10.0, None)) == 10.0 * (1 + 3 + 4)  # and so by their epochs
    unsaid = [replace(each, cell=replace(each.cell, fields={})) for each in found]
    assert left_s(at_pace(unsaid, 10.0, None)) == 10.0 * 2.5
    begin(store, plan, "c")
    assert left_s(at_pace(standing(store, plan), 10.0, None)) == 10.0
    for name in "bcd":
        finish(Store(store.url), plan, name)
    assert left_s(standing(store, plan)) == 0.0
