"""Durable copies that lie elsewhere than the plan says now: they are read where they were copied to, and never lost sight of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.sweep.cells import NAME, begin, finish, planned, result

from dibs import Store
from dibs.errors import RefusedError, StoreError, UsageError
from dibs.sweep import Plan, newest_plan, plan_sweep, pull, reconcile, release, retry, run_sweep, verify

WORDS = ("sh", "-c", 'echo {name} > best.txt; echo run >> "$DIBS_HERE/runs"')


def moved(tmp_path: Path, old: str | None = "old") -> tuple[Store, Plan]:
    """A sweep of which a is done, with its copies in ``old``, and of which the rest goes to ``new``."""
    store, more = Store(tmp_path / "s"), {} if old is None else {"final": old}
    (tmp_path / "q").write_text("a t\n")
    plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, artifacts=["best.txt"], **more)
    assert run_sweep(store, "A").exit_code == 0
    (tmp_path / "q").write_text("a t\nb t\n")
    return store, plan_sweep(store, "A", ["q"], here=tmp_path, new_version=True, final="new").plan


@pytest.mark.parametrize("old", ["old", None])
def test_what_is_done_stays_and_is_proven_pulled_and_released_from_there(tmp_path: Path, old: str | None) -> None:
    store, plan = moved(tmp_path, old)
    assert [(each.kind, each.cell) for each in reconcile(store, plan).findings] == [("never ran", "b")]
    assert run_sweep(store, "A").exit_code == 0
    assert (tmp_path / "runs").read_text() == "run\nrun\n"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [".dibs-final", "b"]
    found = reconcile(store, plan)
    assert (found.clean, found.findings, found.proven) == (True, (), ("a", "b"))
    place = tmp_path / "old" if old else tmp_path / "s" / "sweep" / "%41" / "final"
    assert found.where == f"{tmp_path}/new and {place}"
    assert pull(store, plan, tmp_path / "d").exit_code == 0
    assert [(tmp_path / "d" / name / "best.txt").read_text() for name in "ab"] == ["a\n", "b\n"]
    assert verify(store, plan, tmp_path / "d").passed
    assert release(store, plan, approve="Jo").exit_code == 0
    (place / "a" / "best.txt").write_text("b\n")
    assert [(each.kind, each.cell) for each in reconcile(store, plan).findings] == [("hash differs", "a")]
    with pytest.raises(UsageError, match="lies in"):
        pull(store, plan, place / "x")


def test_what_was_carried_over_by_hand_is_found_there(tmp_path: Path) -> None:
    store, plan = moved(tmp_path)
    run_sweep(store, "A")
    shutil.copytree(tmp_path / "old" / "a", tmp_path / "new" / "a")
    found = reconcile(store, plan)
    assert (found.clean, [each.kind for each in found.findings]) == (True, ["copied elsewhere"])
    shutil.rmtree(tmp_path / "old")
    assert (reconcile(store, plan).clean, reconcile(store, plan).findings) == (True, ())
    assert pull(store, plan, tmp_path / "d").exit_code == 0


def test_what_was_carried_over_once_is_found_after_another_change(tmp_path: Path) -> None:
    store, _ = moved(tmp_path)
    assert run_sweep(store, "A").exit_code == 0
    (tmp_path / "old" / "a").rename(tmp_path / "new" / "a")
    shutil.rmtree(tmp_path / "old")
    (tmp_path / "q").write_text("a t\nb t\nc t\n")
    plan = plan_sweep(store, "A", ["q"], here=tmp_path, new_version=True, final="third").plan
    assert [(each.kind, each.cell) for each in reconcile(store, plan).findings] == [("never ran", "c")]
    assert run_sweep(store, "A").exit_code == 0
    assert reconcile(store, plan).clean
    assert pull(store, plan, tmp_path / "d").exit_code == 0
    with pytest.raises(UsageError, match="lies in"):
        pull(store, plan, tmp_path / "new" / "x")


def test_a_single_result_in_a_place_without_its_mark_is_not_run_again_unasked(tmp_path: Path) -> None:
    store, plan = moved(tmp_path)
    assert run_sweep(store, "A").exit_code == 0
    (tmp_path / "old").rename(tmp_path / "away")
    (tmp_path / "old").mkdir()  # a mount point, and nothing is mounted
    (lost,) = reconcile(store, plan).findings
    assert (lost.kind, lost.cell) == ("claimed done but no artefact", "a")
    assert lost.cure.startswith(
        "mount its place, which has no .dibs-final here; if it is lost indeed: dibs sweep retry a"
    )
    told = retry(store, plan)
    assert [(each.cell, each.how, each.code) for each in told.decisions] == [("a", None, 1)]
    assert "its place has no .dibs-final: is it mounted? --yes, if so" in told.decisions[0].why
    assert [(each.cell, each.how) for each in retry(store, plan, yes=True, dry=True).decisions] == [("a", "renew")]
    assert [(each.cell, each.how) for each in retry(store, plan, ["a"], dry=True).decisions] == [("a", "renew")]
    (tmp_path / "away" / ".dibs-final").rename(tmp_path / "old" / ".dibs-final")  # it is mounted, and a is not there
    assert [(each.cell, each.how) for each in retry(store, plan).decisions] == [("a", "renew")]


def test_one_that_was_not_carried_over_is_missing_and_may_be_run_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    (tmp_path / "q").write_text("a t\nb t\n")
    plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, artifacts=["best.txt"], final="old")
    run_sweep(store, "A")
    (tmp_path / "old").rename(tmp_path / "new")
    shutil.rmtree(tmp_path / "new" / "b")
    plan = plan_sweep(store, "A", [], here=tmp_path, new_version=True, final="new").plan
    found = reconcile(store, plan)
    assert [(each.kind, each.cell) for each in found.findings] == [("claimed done but no artefact", "b")]
    assert found.proven == ("a",)
    assert retry(store, plan).freed == ("b",)
    assert run_sweep(store, "A").exit_code == 0
    assert reconcile(store, newest_plan(store, "A")).clean


def test_the_old_place_that_is_not_mounted_is_asked_about(tmp_path: Path) -> None:
    store, plan = moved(tmp_path)
    (tmp_path / "old").rename(tmp_path / "away")
    assert run_sweep(store, "A").exit_code == 0  # which needs the new one alone
    with pytest.raises(
        StoreError, match=r"old, where durable copies lie, is not there, and cells are done: is it mounted"
    ):
        reconcile(store, plan)
    (tmp_path / "away").rename(tmp_path / "old")
    assert reconcile(store, plan).clean


def test_a_damaged_one_is_run_again_into_the_new_place(tmp_path: Path) -> None:
    store, plan = moved(tmp_path)
    (tmp_path / "old" / "a" / "best.txt").write_text("")
    assert retry(store, plan).freed == ("a",)
    assert run_sweep(store, "A").exit_code == 0
    found = reconcile(store, newest_plan(store, "A"))
    assert (found.clean, found.findings) == (True, ())
    assert (tmp_path / "new" / "a" / "best.txt").read_text() == "a\n"


def test_a_folder_that_has_a_name_of_a_cell_is_not_taken_for_its_copy(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    (tmp_path / "q").write_text("a t\n")
    plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, artifacts=["best.txt"], final="old")
    run_sweep(store, "A")
    (tmp_path / "mine" / "a").mkdir(parents=True)
    with pytest.raises(UsageError, match="a is there already, and no sweep says"):
        plan_sweep(store, "A", [], here=tmp_path, new_version=True, final="mine")
    with pytest.raises(RefusedError, match="planned with --final"):
        plan_sweep(store, "A", [], here=tmp_path, final="new")
    for other in ("old/within", "."):
        with pytest.raises(UsageError, match="in the other"):
            plan_sweep(store, "A", [], here=tmp_path, new_version=True, final=other)


def test_an_old_place_that_is_only_a_mount_point_runs_nothing_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    (tmp_path / "q").write_text("a t\nb t\n")
    plan_sweep(store, "A", ["q"], WORDS, here=tmp_path, artifacts=["best.txt"], final="old")
    run_sweep(store, "A")
    (tmp_path / "q").write_text("a t\nb t\nc t\n")
    plan = plan_sweep(store, "A", ["q"], here=tmp_path, new_version=True, final="new").plan
    run_sweep(store, "A")
    (tmp_path / "old").rename(tmp_path / "away")
    (tmp_path / "old").mkdir()
    told = retry(store, plan)
    assert told.freed == ()
    assert [each.why.partition("; ")[2] for each in told.decisions] == [
        "so are all 2 results there: is their place mounted? --yes, if so"
    ] * 2
    assert retry(store, plan, yes=True, dry=True).freed == ("a", "b")


def test_it_may_go_back_to_where_it_was(tmp_path: Path) -> None:
    store, _ = moved(tmp_path)
    assert run_sweep(store, "A").exit_code == 0
    (tmp_path / "q").write_text("a t\nb t\nc t\n")
    plan = plan_sweep(store, "A", ["q"], here=tmp_path, new_version=True, final="old").plan
    assert run_sweep(store, "A").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == [".dibs-final", "a", "c"]
    assert (reconcile(store, plan).clean, reconcile(store, plan).findings) == (True, ())


def test_a_record_names_its_place_and_a_link_there_is_no_copy(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    plan = planned(store, "a", final=str(tmp_path / "f"))
    mine = begin(store, plan, "a")
    finish(store, plan, "a", result(), mine)
    (tmp_path / "f" / "a").rename(tmp_path / "b")
    (tmp_path / "f" / "a").symlink_to(tmp_path / "b")
    kinds = [each.kind for each in reconcile(store, newest_plan(store, NAME)).findings]
    assert kinds == ["claimed done but no artefact", "unexpected"]
