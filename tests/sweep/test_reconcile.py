"""The roster against what lies there: each kind of damage is found as what it is, and nothing else is said."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sweep.cells import append, begin, cell, fail, final_of, finish, planned, publish, result

from dibs import Store
from dibs.store import SweepKeys
from dibs.sweep import Plan, Reconciled, reconcile
from dibs.sweep._findings import CURES, Inventory
from dibs.sweep._paths import is_name, is_path
from dibs.sweep._reconcile import compare


@pytest.fixture(params=["in the store", "elsewhere"])
def done(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, Plan]:
    """A sweep of two cells that are done."""
    store = Store(tmp_path / "s")
    final = None if request.param == "in the store" else str(tmp_path / "final")
    plan = planned(store, "a", "b", final=final)
    finish(store, plan, "a")
    finish(store, plan, "b")
    return store, plan


def kinds(found: Reconciled) -> list[tuple[str, str | None, str | None]]:
    return [(each.kind, each.cell, each.file) for each in found.findings]


def folder(store: Store, plan: Plan, name: str) -> Path:
    found = final_of(store, plan, name)
    assert found is not None
    return found


def test_a_complete_sweep_is_clean(done: tuple[Store, Plan]) -> None:
    found = reconcile(*done)
    assert (found.clean, found.exit_code, kinds(found), found.proven) == (True, 0, [], ("a", "b"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def link(path: Path) -> None:
    other = path.with_name("other")
    path.rename(other)
    path.symlink_to(other)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (cut, "truncated"), (flip, "hash differs"), (emptied, "empty"), (longer, "hash differs"), (Path.unlink, "missing"),
        (link, "unreadable"), (fifo, "unreadable"),
    ],
)  # fmt: skip
def test_each_damage_is_found(done: tuple[Store, Plan], damage: Callable[[Path], None], kind: str) -> None:
    store, plan = done
    damage(folder(store, plan, "a") / "best.npz")
    found = reconcile(store, plan)
    assert kinds(found)[0] == (kind, "a", "best.npz")
    assert (found.clean, found.exit_code, found.proven, list(found.damaged)) == (False, 1, ("b",), ["a"])
    assert "dibs sweep retry a" in found.findings[0].cure


def test_quick_compares_sizes_only(done: tuple[Store, Plan]) -> None:
    store, plan = done
    flip(folder(store, plan, "a") / "best.npz")
    assert reconcile(store, plan, quick=True).clean
    cut(folder(store, plan, "b") / "best.npz")
    assert kinds(reconcile(store, plan, quick=True)) == [("truncated", "b", "best.npz")]


def test_a_folder_that_is_gone(done: tuple[Store, Plan]) -> None:
    store, plan = done
    there = folder(store, plan, "a")
    there.rename(there.with_name("z"))
    assert kinds(reconcile(store, plan)) == [
        ("claimed done but no artefact", "a", None), ("unexpected", None, "z"),
    ]  # fmt: skip


def test_a_link_to_results_is_no_copy(done: tuple[Store, Plan]) -> None:
    store, plan = done
    there = folder(store, plan, "a")
    there.rename(there.parent.parent / "elsewhere")
    there.symlink_to(there.parent.parent / "elsewhere")
    assert kinds(reconcile(store, plan)) == [
        ("claimed done but no artefact", "a", None), ("unexpected", None, "a"),
    ]  # fmt: skip


def test_what_nobody_asked_for(done: tuple[Store, Plan]) -> None:
    store, plan = done
    (folder(store, plan, "a") / "extra.bin").write_bytes(b"x")
    place = folder(store, plan, "a").parent
    (place / "notes.txt").write_text("x")
    (place / ".part-a-123").mkdir()
    (place / "linked").symlink_to(folder(store, plan, "b"))
    found = reconcile(store, plan)
    assert kinds(found) == [
        ("unexpected", "a", "extra.bin"), ("unexpected", None, "linked"), ("unexpected", None, "notes.txt"),
    ]  # fmt: skip
    assert not found.clean


def test_what_is_not_finished(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a", "b", "c", "d", "e")
    finish(store, plan, "a")
    begin(store, plan, "b")
    assert kinds(reconcile(store, plan)) == [
        ("running", "b", None), ("never ran", "c", None), ("never ran", "d", None), ("never ran", "e", None),
    ]  # fmt: skip
    fail(store, plan, "c", "code error")
    fail(store, plan, "d", "vanished")
    assert reconcile(store, plan).exit_code == 1
    fail(store, plan, "e", "sync failed")
    found = reconcile(store, plan)
    assert [each.kind for each in found.findings] == ["running", "failed", "interrupted", "unsynced"]
    assert found.exit_code == 7


@pytest.mark.parametrize(
    ("cause", "cure"),
    [
        ("code error", "mend it, then dibs sweep retry --force a, and run it again"),
        ("disk full", "make room where it writes, then dibs sweep retry --yes a, and run it again"),
        ("out of memory (host)", "dibs sweep retry a, and run it again"),
    ],
)
def test_the_cure_of_a_failed_cell_is_one_that_frees_it(tmp_path: Path, cause: str, cure: str) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a")
    fail(store, plan, "a", cause)
    (found,) = reconcile(store, plan).findings
    assert found.cure == cure


def test_cells_that_others_hold_are_unfinished_and_no_failure(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    begin(store, plan, "b")
    assert reconcile(store, plan).exit_code == 6


def test_nothing_of_nothing_never_passes(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a")
    finish(store, plan, "a")
    dropped = plan.next(cells=(replace(plan.cells[0], dropped=True),))
    found = reconcile(store, dropped)
    assert (found.clean, found.exit_code, kinds(found)) == (False, 5, [("dropped but result there", "a", None)])


def test_done_by_two_is_told_and_proven_all_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a")
    slow = begin(store, plan, "a", me="slow")
    finish(store, plan, "a")
    aside = folder(store, plan, "a").parent / ".quarantine" / "a-0-0"
    aside.mkdir(parents=True)
    slow.ended = {"cause": "ok", "artifacts": {}, "final": str(aside)}
    slow.close("done")
    found = reconcile(store, plan)
    assert (kinds(found), found.clean, found.findings[0].fault) == ([("ran twice", "a", None)], True, False)
    assert "attempt 0" in found.findings[0].what
    assert found.findings[0].what.endswith("; 1 copy put aside")
    publish(store, plan, "a", result(7), slow)  # and now the other one's copy lies there
    assert "it is of trial 0 attempt 0" in reconcile(store, plan).findings[1].what


def test_a_result_of_another_config_is_none_of_the_plan(done: tuple[Store, Plan]) -> None:
    store, plan = done
    other = plan.next(cells=(replace(plan.cells[0], config="1" * 64), plan.cells[1]))
    assert kinds(reconcile(store, other)) == [("config changed", "a", None)]


def test_an_artefact_that_was_declared_and_not_left(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a", artifacts=("best.npz", "step-*.json"))
    finish(store, plan, "a")
    assert kinds(reconcile(store, plan)) == [("missing", "a", "step-*.json")]
    assert kinds(reconcile(store, append(store, plan, "b"))) == [
        ("missing", "a", "step-*.json"),
        ("never ran", "b", None),
    ]


def test_a_record_without_artefacts_proves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a")
    begin(store, plan, "a").close("done")
    assert kinds(reconcile(store, plan)) == [("claimed done but no artefact", "a", None)]


def test_patterns_as_they_are_declared(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a", artifacts=("**/best.*", "step-?/w.npz"))
    finish(store, plan, "a", {"best.npz": b"x", "step-1/w.npz": b"x"})
    assert reconcile(store, plan).clean


def test_where_nothing_was_asked_for_nothing_is_proven(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a", artifacts=())
    finish(store, plan, "a", {})
    found = reconcile(store, plan)
    assert (kinds(found), found.clean, found.damaged) == ([("nothing to prove", "a", None)], False, {})


def test_names_that_only_case_tells_apart(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a")
    twice = replace(plan, cells=(cell(0, "a"), cell(1, "A"), cell(2, "a")))
    found = compare(twice, [], Inventory("x", {}))
    assert kinds(found) == [("duplicate name", "A", None), ("duplicate name", "a", None)]


def test_a_place_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    store = Store(tmp_path / "s")
    plan = planned(store, "a", final=str(tmp_path / "file"))
    with pytest.raises(OSError, match="where durable copies lie, cannot be read"):
        reconcile(store, plan)


def test_every_kind_says_what_to_do() -> None:
    assert all(CURES.values())


@pytest.mark.parametrize("path", ["a", "a/b.npz", "a-b_c.1", "ü/x"])
def test_paths_that_stay_inside(path: str) -> None:
    assert is_path(path)


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "../x", "a/../b", "/a", "a//b", "a/", "a\\b", "c:x", "a\0b", "a\nb", "./a", "x" * 1001, None, "a\u202eb"],
)  # fmt: skip
def test_paths_that_lead_out_or_lie(path: object) -> None:
    assert not is_path(path)


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "x" * 101, "ü", "a b", "CON\n"])
def test_names_that_are_no_folder(name: str) -> None:
    assert not is_name(name)


def test_a_cell_with_a_hostile_artefact_is_not_proven(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a", artifacts=())
    mine = begin(store, plan, "a")
    mine.ended = {"cause": "ok", "artifacts": {"../../marker": {"sha256": "0" * 64, "bytes": 1}}}
    publish(store, plan, "a", result(), mine)
    mine.close("done")
    assert kinds(reconcile(store, plan))[0] == ("unreadable", "a", "../../marker")
    assert (Path(store.url) / SweepKeys(plan.sweep).final("a")).is_dir()
