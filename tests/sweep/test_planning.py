"""Planning from Python: whoever plans at once is heard, and files are read again after a lost claim."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.parts import at_once

from dibs import Store
from dibs.errors import RefusedError, UsageError
from dibs.store import SweepKeys
from dibs.sweep import Plan, _planning, config_places, newest_plan, plan_sweep

WORDS = ("sh", "-c", "true", "{cfg}")


def plan(store: Store, folder: Path, *queues: str, **more: object) -> Plan:
    return plan_sweep(store, "A", queues, WORDS, here=folder, **more).plan  # type: ignore[arg-type]


def test_all_who_plan_at_once_are_heard(store: Store, tmp_path: Path) -> None:
    """None is there before: one makes the sweep, the others add to it."""
    for k in range(6):
        (tmp_path / f"q{k}").write_text(f"w{k} t 1\nv{k} t 2\n")
    stores = [Store(store.url) for _ in range(6)]
    at_once([lambda k=k: plan(stores[k], tmp_path, f"q{k}") for k in range(6)])  # type: ignore[misc]
    found = newest_plan(store, "A")
    assert found.version == 5
    assert sorted(cell.name for cell in found.cells) == sorted(f"{letter}{k}" for letter in "vw" for k in range(6))
    assert [cell.n for cell in found.cells] == list(range(12))


def test_a_file_is_read_again_after_a_lost_claim(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, add = tmp_path / "q", _planning.add_plan
    queue.write_text("a t 1\n")
    plan(store, tmp_path, "q")
    queue.write_text("a t 1\nb t 1\n")

    def late(*given: object) -> bool:
        """Somebody else has read one line more, and is first."""
        monkeypatch.setattr(_planning, "add_plan", add)
        queue.write_text("a t 1\nb t 1\nc t 1\n")
        assert plan(Store(store.url), tmp_path, "q").version == 1
        return add(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(_planning, "add_plan", late)
    found = plan(store, tmp_path, "q")
    assert (found.version, [cell.name for cell in found.cells]) == (1, ["a", "b", "c"])


def test_a_cell_that_was_run_again_keeps_its_place(store: Store, tmp_path: Path) -> None:
    """A new number does not make its line another cell, and the next cell comes after both."""
    (tmp_path / "q").write_text("a t 1\nb t 1\n")
    before = plan(store, tmp_path, "q")
    again = Plan.from_json(before.to_json(), "x")
    cells = (type(again.cells[0])(**{**vars(again.cells[0]), "n": 2, "former": (0,)}), again.cells[1])
    assert _planning.add_plan(store, before.next(cells=cells))
    (tmp_path / "q").write_text("a t 1\nb t 1\nc t 1\n")
    found = plan(store, tmp_path, "q")
    assert [(cell.name, cell.n, cell.former) for cell in found.cells] == [("a", 2, (0,)), ("b", 1, ()), ("c", 3, ())]


def test_where_a_config_is_looked_for(store: Store, tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    for folder, text in (("queues", "near"), (".", "far")):
        (tmp_path / folder / "a.toml").write_text(text)
    (tmp_path / "b.toml").write_text("far")
    (tmp_path / "queues/q").write_text("a.toml t 1\nb.toml t 1\nword t 1\n")
    found = plan(store, tmp_path, "queues/q")
    assert [store.get(cell.config) for cell in found.cells if cell.config] == [b"near", b"far"]
    assert config_places(found, found.cells[1]) == (tmp_path / "queues/b.toml", tmp_path / "b.toml")
    assert config_places(found, found.cells[2]) == ()


def test_two_rosters_of_one_name_are_refused_before_a_claim(store: Store, tmp_path: Path) -> None:
    (tmp_path / "q").write_text("a t 1\n")
    (tmp_path / "r").write_text("\na u 1\n")
    with pytest.raises(UsageError, match=r"q:1 and r:2: both are 'a'; tell them apart with --name '\{task\}-\{stem\}'"):
        plan(store, tmp_path, "q", "r")
    assert not store.backend.folders("sweep/")
    assert store.backend.read(SweepKeys("A").plan(0)) is None


def test_a_task_has_no_such_field(store: Store, tmp_path: Path) -> None:
    (tmp_path / "q").write_text("a t 1\n")
    with pytest.raises(UsageError, match="a task has no artefacts; there is artifacts, checkpoint_bytes"):
        plan(store, tmp_path, "q", artefacts=["x"])
    with pytest.raises(UsageError, match="time_s must be a positive number"):
        plan(store, tmp_path, "q", time_s=-1)


def test_a_bucket_or_a_memory_store_has_no_final_disk(tmp_path: Path) -> None:
    from tests.parts import store_over

    (tmp_path / "q").write_text("a t 1\n")
    done = plan_sweep(store_over(), "A", ["q"], WORDS, here=tmp_path, checkpoint_bytes=1)
    assert "final" not in done.outlook.free
    with pytest.raises(RefusedError, match="the disks are too small"):
        plan_sweep(store_over(), "A", ["q"], WORDS, here=tmp_path, checkpoint_bytes=1 << 70)
