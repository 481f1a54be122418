"""Plans in a store: what is written comes back, and of two who change a plan at once both are heard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dibs import Store
from dibs.backend import FolderBackend
from dibs.errors import NotFound, RecordError
from dibs.store import SweepKeys
from dibs.sweep import Cell, Plan, Task, add_plan, change_plan, newer_plan, newest_plan, read_plan, sweeps_in


def cell(n: int, **more: object) -> Cell:
    fields = {"cfg": f"{n}.toml", "task": "t", "epochs": 20, "lr": 1.0, "amp": True, "tag": None}
    return Cell(n, f"cell-{n}", fields, "q.txt", n + 1, **more)  # type: ignore[arg-type]


PLAN = Plan(
    "Ablation 1", 0, (cell(0, cost=2.0), cell(1, config="0" * 64, former=(2,))), Task(("./t.sh", "{cfg}"), "/w", artifacts=("a",)),
    {"q.txt": ("0.toml t 20", "1.toml t 20")}, hosts={"a": 1.5},
)  # fmt: skip


def test_a_plan_comes_back_as_it_was_written(store: Store) -> None:
    assert add_plan(store, PLAN)
    assert not add_plan(store, PLAN)
    found = newest_plan(store, "Ablation 1")
    assert found == PLAN
    assert {name: type(value) for name, value in found.cells[0].fields.items()} == {
        "cfg": str, "task": str, "epochs": int, "lr": float, "amp": bool, "tag": type(None)
    }  # fmt: skip
    assert sweeps_in(store) == ["Ablation 1"]
    assert (found.size, found.cell(2), found.named("cell-0")) == (3, found.cells[1], found.cells[0])


def test_changes_made_at_once_are_all_heard(store: Store) -> None:
    add_plan(store, PLAN)
    other = Store(store.url)

    def append(plan: Plan) -> Plan:
        if plan.version == 0:  # just before ours
            add_plan(other, plan.next(naming="{task}"))
        return plan.next(cells=(*plan.cells, cell(plan.size)))

    changed = change_plan(store, PLAN, append)
    assert (changed.version, changed.naming, len(changed.cells)) == (2, "{task}", 3)
    assert newer_plan(other, PLAN) == changed
    assert change_plan(store, PLAN, lambda plan: None) == changed


def test_no_sweep_is_named_with_those_there_are(store: Store) -> None:
    add_plan(store, PLAN)
    with pytest.raises(NotFound, match=r"no sweep 'b' in .*; there is: Ablation 1"):
        newest_plan(store, "b")
    assert read_plan(store, "Ablation 1", 1) is None


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b'{"v":1,"kind":"sweep-plan","sweep":"Ablation 1","version":0}', b"\x00"]
)
def test_a_damaged_plan_is_said(store: Store, damage: bytes) -> None:
    add_plan(store, PLAN)
    (Path(store.url) / SweepKeys("Ablation 1").plan(0)).write_bytes(damage)
    with pytest.raises(RecordError, match="sweep/%41blation%201/plan/00000000"):
        newest_plan(store, "Ablation 1")


def test_what_a_cell_is_does_not_depend_on_its_line() -> None:
    assert replace(cell(0), line=9, name="x").digest == cell(0).digest
    assert replace(cell(0), config="1" * 64).digest != cell(0).digest != cell(1).digest


@pytest.fixture
def by_mkdir(tmp_path: Path) -> Store:
    """A store where a claim is a folder and the record comes after; its patience is over at once."""
    (tmp_path / "m").mkdir()
    return Store.over(FolderBackend(tmp_path / "m", claim="mkdir"), patience_s=0.0)


def claim_only(store: Store, version: int) -> Path:
    """What a planner has made who stands between the two steps, or was killed there."""
    assert store.backend.root is not None
    claim = store.backend.root / f"{SweepKeys('Ablation 1').plan(version)}.claim"
    claim.mkdir(parents=True)
    return claim


def test_a_version_that_is_claimed_and_not_written_is_none_yet(by_mkdir: Store) -> None:
    """Whoever runs, looks or releases at that moment goes on with the one before."""
    assert add_plan(by_mkdir, PLAN)
    claim_only(by_mkdir, 1)
    assert newest_plan(by_mkdir, "Ablation 1") == PLAN
    assert newer_plan(by_mkdir, PLAN) is PLAN
    assert change_plan(by_mkdir, PLAN, lambda plan: None) == PLAN


def test_a_planner_that_was_killed_while_it_claimed_is_said_to_who_plans(by_mkdir: Store) -> None:
    assert add_plan(by_mkdir, PLAN)
    claim = claim_only(by_mkdir, 1)
    with pytest.raises(RecordError, match=r"remove the folder sweep/.*/plan/00000001\.json\.claim"):
        change_plan(by_mkdir, PLAN, lambda plan: plan.next(naming="{task}"))
    claim.rmdir()
    assert change_plan(by_mkdir, PLAN, lambda plan: plan.next(naming="{task}")).version == 1


def test_a_first_planner_that_was_killed_while_it_claimed_is_said_to_all(by_mkdir: Store) -> None:
    claim_only(by_mkdir, 0)
    for attempt in (lambda: newest_plan(by_mkdir, "Ablation 1"), lambda: add_plan(by_mkdir, PLAN)):
        with pytest.raises(RecordError, match=r"its planner has not written it"):
            attempt()


def test_a_folder_under_a_plan_s_name_is_said_to_who_plans(store: Store) -> None:
    (Path(store.url) / SweepKeys("Ablation 1").plan(0)).mkdir(parents=True)
    with pytest.raises(RecordError, match="is a folder"):
        add_plan(store, PLAN)
