"""A place of durable copies is one sweep's: who else would use it is refused before a result is put aside."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from tests.parts import at_once
from tests.sweep.sweeping import new_cell, sweep

from dibs import Store
from dibs.errors import RefusedError, StoreError, UsageError
from dibs.store import SweepKeys
from dibs.sweep import Plan, add_plan, newest_plan, plan_sweep, reconcile, run_sweep
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
    monkeypatch.setattr(
        "dibs.sweep._running.claim_place", lambda *_, **_more: None
    )  # as if it was nobody's when it began
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
    with pytest.raises(
        StoreError, match=r"mnt/final, where copies go, has not the \.dibs-final that it got on .*: is it mounted here"
    ):
        run_sweep(store, "A")
    assert list((tmp_path / "mnt").iterdir()) == []
    (tmp_path / "mnt").rmdir()
    (tmp_path / "umounted").rename(tmp_path / "mnt")
    assert run_sweep(store, "A").exit_code == 0


def test_of_an_older_sweep_it_is_seen_once_a_cell_is_done(tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 2, artifacts=("best.pth",), final=str(tmp_path / "mnt" / "final"))
    assert run_sweep(store, "A").exit_code == 0
    forget(store)
    (tmp_path / "mnt").rename(tmp_path / "umounted")
    with pytest.raises(StoreError, match=r"2 cells are done, and .* has none of them: is it mounted here"):
        claim_place(store, newest_plan(store, "A"))
    (tmp_path / "q.txt").write_text("c0.toml t 3\nc1.toml t 3\n# nothing new\n")
    assert plan_sweep(store, "A", ["q.txt"], here=tmp_path).written  # who only plans is told, and heard
    assert not (tmp_path / "mnt").exists()
    (tmp_path / "umounted").rename(tmp_path / "mnt")
    owner = tmp_path / "mnt" / "final" / ".dibs-final" / "owner.json"
    owner.write_text(json.dumps({key: said for key, said in json.loads(owner.read_text()).items() if key != "token"}))
    for _ in range(2):
        assert run_sweep(store, "A").exit_code == 0


def forget(store: Store) -> None:
    """As an older version left it: nothing says that the place was marked."""
    for mark in (Path(store.url) / SweepKeys("A").marks("placed")).iterdir():
        mark.unlink()


def planned(tmp_path: Path, final: str, **more: Any) -> tuple[Store, Plan]:
    store = Store(tmp_path / "s")
    (tmp_path / "q").write_text("a t\nb t\n")
    told = plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, final=final, artifacts=["best.pth"], **more)
    return store, told.plan


def test_a_place_that_is_not_mounted_is_found_out_before_the_first_copy(tmp_path: Path) -> None:
    store, _ = planned(tmp_path, "mnt/final")
    (tmp_path / "mnt").rename(tmp_path / "umounted")
    (tmp_path / "mnt").mkdir()
    with pytest.raises(StoreError, match="is it mounted here, as it is there"):
        run_sweep(store, "A")
    assert list((tmp_path / "mnt").iterdir()) == []
    (tmp_path / "q").write_text("a t\nb t\nc t\n")  # whoever only plans need not see it
    assert plan_sweep(store, "A", ["q"], here=tmp_path).written
    assert list((tmp_path / "mnt").iterdir()) == []
    (tmp_path / "mnt").rmdir()
    (tmp_path / "umounted").rename(tmp_path / "mnt")
    assert run_sweep(store, "A").exit_code == 0


def test_a_place_that_is_gone_while_a_cell_runs_gets_no_copy(tmp_path: Path) -> None:
    script = '#!/bin/sh\nmv "$DIBS_HERE/mnt" "$DIBS_HERE/umounted"; mkdir "$DIBS_HERE/mnt"; echo x > best.pth\n'
    store, _ = sweep(tmp_path, 1, script, artifacts=("best.pth",), final=str(tmp_path / "mnt" / "final"))
    end = run_sweep(store, "A", max_failures=None)
    assert (end.exit_code, end.states) == (7, {"unsynced": 1})
    assert list((tmp_path / "mnt").iterdir()) == []
    assert end.cells[0].counts is not None
    assert "is it mounted here" in str(end.cells[0].counts.reason)


def test_a_place_that_was_planned_on_the_wrong_disk_is_put_right(tmp_path: Path) -> None:
    store, _ = planned(tmp_path, "mnt/final")
    (tmp_path / "mnt").rename(tmp_path / "bare")  # the planner had not mounted it
    (tmp_path / "mnt").mkdir()
    plan_sweep(store, "A", [], here=tmp_path, final="mnt/final", new_version=True)
    assert run_sweep(store, "A").exit_code == 0
    (tmp_path / "mnt").rename(tmp_path / "right")
    (tmp_path / "bare").rename(tmp_path / "mnt")
    with pytest.raises(StoreError, match=r"has another \.dibs-final than it got"):
        run_sweep(store, "A")


def test_where_the_planner_cannot_write_the_first_run_marks_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "block").write_text("x")
    store, _ = planned(tmp_path, "block/final")
    assert "the first run that can gives it its mark" in caplog.text
    (tmp_path / "block").unlink()
    assert run_sweep(store, "A").exit_code == 0
    assert (tmp_path / "block" / "final" / ".dibs-final").is_dir()


def test_whose_mark_is_not_the_one_that_was_written_down_copies_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines mark a folder each at one moment: one of them has not mounted it."""
    store, plan = sweep(tmp_path, 1, artifacts=("best.pth",), final=str(tmp_path / "mnt" / "final"))
    claim_place(store, plan)
    (tmp_path / "mnt").rename(tmp_path / "umounted")
    monkeypatch.setattr("dibs.sweep._place.claim_placed", lambda *_: False)
    with pytest.raises(StoreError, match="is it mounted here"):
        claim_place(store, plan, anew=True)


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


def test_a_file_in_the_way_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    (tmp_path / "q").write_text("a t\n")
    store = Store(tmp_path / "s")
    with pytest.raises(UsageError, match="taken is a file: name a folder"):
        plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, artifacts=["best.pth"], final="taken")
    plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, artifacts=["best.pth"])
    with pytest.raises(UsageError, match="taken is a file: name a folder"):
        plan_sweep(store, "A", ["q"], here=tmp_path, final="taken", new_version=True)
    assert newest_plan(store, "A").version == 0


@pytest.mark.parametrize("field", ["final", "out", "group", "writable", "deny_read", "freeze"])
def test_a_zero_byte_is_refused(tmp_path: Path, field: str) -> None:
    (tmp_path / "q").write_text("a t\n")
    value: Any = "a\0b" if field in ("final", "out", "group") else ["a\0b"]
    store = Store(tmp_path / "s")
    with pytest.raises(UsageError, match=f"{field.replace('_', '-')} .*zero byte"):
        plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, isolate=True, artifacts=["best.pth"], **{field: value})


@pytest.mark.parametrize("field", ["final", "writable"])
def test_a_home_that_nobody_has_is_refused(tmp_path: Path, field: str) -> None:
    (tmp_path / "q").write_text("a t\n")
    value: Any = "~no-such-user/x" if field == "final" else ["~no-such-user/x"]
    store = Store(tmp_path / "s")
    with pytest.raises(UsageError, match="there is no home folder of no-such-user"):
        plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, isolate=True, artifacts=["best.pth"], **{field: value})
