"""A place of durable copies is one sweep's: who else would use it is refused before a result is put aside."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from tests.parts import at_once
from tests.sweep.sweeping import new_cell, sweep

from dibs import Store
from dibs.errors import RefusedError, StoreError, UsageError
from dibs.sweep import Plan, add_plan, plan_sweep, reconcile, run_sweep
from dibs.sweep._place import claim_place

WORDS = ("sh", "-c", "echo hello > best.pth")


def two(tmp_path: Path) -> list[tuple[Store, Plan]]:
    """Two stores with a sweep of the same name and the same place, each with its own script."""
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        script = f"#!/bin/sh\necho {name} > best.pth\n"
        found.append(sweep(tmp_path / name, 2, script, artifacts=("best.pth",), final=str(tmp_path / "final")))
    return found


def test_another_sweep_is_refused_before_it_runs_and_nothing_is_put_aside(tmp_path: Path) -> None:
    (one, plan), (two_, _) = two(tmp_path)
    assert run_sweep(one, "A").exit_code == 0
    with pytest.raises(RefusedError, match=r"keeps the results of the sweep 'A' of the store .*one"):
        run_sweep(two_, "A")
    assert run_sweep(one, "A").exit_code == 0
    found = reconcile(one, plan)
    assert (found.clean, found.findings) == (True, ())


def test_a_place_that_was_taken_meanwhile_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one, plan), (two_, _) = two(tmp_path)
    monkeypatch.setattr("dibs.sweep._running.claim_place", lambda *_: None)  # as if it was nobody's when it began
    assert run_sweep(one, "A").exit_code == 0
    end = run_sweep(two_, "A", max_failures=None)
    assert end.exit_code == 7
    assert {each.state for each in end.cells} == {"unsynced"}
    assert reconcile(one, plan).clean


def test_of_all_who_begin_at_once_one_has_the_place(tmp_path: Path) -> None:
    sweeps = []
    for k in range(6):
        (tmp_path / str(k)).mkdir()
        sweeps.append(sweep(tmp_path / str(k), 1, final=str(tmp_path / "final")))
    refused: list[int] = []

    def begin(k: int) -> None:
        try:
            claim_place(*sweeps[k])
        except RefusedError:
            refused.append(k)

    at_once([lambda k=k: begin(k) for k in range(6)])  # type: ignore[misc]
    assert len(refused) == 5
    assert [path.name for path in (tmp_path / "final").iterdir()] == [".dibs-final"]


def test_nothing_is_run_where_the_place_is_not_mounted(tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 2, artifacts=("best.pth",), final=str(tmp_path / "mnt" / "final"))
    assert run_sweep(store, "A").exit_code == 0
    (tmp_path / "mnt").rename(tmp_path / "umounted")
    (tmp_path / "mnt").mkdir()
    cells = (*plan.cells, new_cell(store, tmp_path, 2, "c2"))
    assert add_plan(store, plan.next(cells=cells))
    with pytest.raises(StoreError, match=r"2 cells are done, and .* has none of them: is it mounted here"):
        run_sweep(store, "A")
    assert list((tmp_path / "mnt").iterdir()) == []
    (tmp_path / "mnt").rmdir()
    (tmp_path / "umounted").rename(tmp_path / "mnt")
    assert run_sweep(store, "A").exit_code == 0


def test_a_full_disk_is_called_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store, _ = sweep(tmp_path, 1, artifacts=("best.pth",), final=str(tmp_path / "final"))
    monkeypatch.setattr("dibs.sweep._final.Publisher._copy", full)
    told = run_sweep(store, "A", max_failures=None).cells[0].counts
    assert told is not None
    assert told.reason == f"sync failed: the copy in {tmp_path}/final: No space left on device"


@pytest.mark.parametrize(
    ("final", "task", "said"),
    [
        ("s/trials", {}, "the store .* would lie in the other"),
        (".", {}, "the store .* would lie in the other"),
        ("o", {"out": "o/{name}"}, "where the cell a would write"),
        ("o/a/final", {"out": "o/{name}"}, "where the cell a would write"),
        ("mine", {}, "b is there already, and no sweep says"),
        ("", {}, "--final is empty"),
        ("f", {"out": ""}, "--out is empty"),
        ("f", {"isolate": True, "writable": [""]}, "--writable is empty"),
        ("f", {"deny_read": [""]}, "--deny-read is empty"),
    ],
)
def test_a_place_that_is_something_else_already_is_refused(
    tmp_path: Path, final: str, task: dict[str, Any], said: str
) -> None:
    store = Store(tmp_path / "s")
    (tmp_path / "mine" / "b").mkdir(parents=True)
    (tmp_path / "q").write_text("a t\nb t\n")
    with pytest.raises(UsageError, match=said):
        plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, final=final, **task)
    plan = plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, final="elsewhere", artifacts=["best.pth"]).plan
    assert run_sweep(store, "A").exit_code == 0
    assert reconcile(store, plan).clean
    with pytest.raises(RefusedError, match="keeps the results of the sweep 'A'"):
        plan_sweep(store, "B", ["q"], WORDS, here=tmp_path, final="elsewhere")
    (tmp_path / "q").write_text("a t\nb t\nc t\n")
    assert plan_sweep(store, "A", ["q"], here=tmp_path).plan.version == 1
