"""What may be run again, by why it ended; a settled trial stays settled, and a lost machine is nobody's fault."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.parts import at_once
from tests.sweep.cells import NAME, begin, cell, fail, final_of, finish, planned, result

from dibs import Store
from dibs.cell import Cause
from dibs.errors import NotFound, StoreError
from dibs.sweep import Plan, add_plan, newest_plan, reconcile, retry, standing
from dibs.sweep._cells import Cells
from dibs.sweep._retrying import ACTIONS
from dibs.sweep._standing import _CAUSES


def states(store: Store, plan: Plan) -> dict[str, str]:
    return {each.cell.name: each.state for each in standing(store, plan)}


@pytest.mark.parametrize(
    ("cause", "freed"),
    [
        ("out of memory (host)", True), ("out of memory (cgroup)", True), ("sync failed", True), ("time limit", True),
        ("disk full", False), ("code error", False), ("out of memory (accelerator)", False), ("anomaly", False),
        ("config changed", False), ("something new", False),
    ],
)  # fmt: skip
def test_by_class(store: Store, cause: str, freed: bool) -> None:
    plan = planned(store, "a", "b")
    fail(store, plan, "a", cause)
    finish(store, plan, "b")
    dry = retry(store, plan, dry=True)
    assert states(store, plan)["a"] in ("failed", "unsynced")
    told = retry(store, plan)
    assert (told.freed, told.exit_code, dry.freed) == (("a",) if freed else (), 0 if freed else 1, told.freed)
    assert states(store, plan)["a"] == ("waiting" if freed else "unsynced" if cause == "sync failed" else "failed")
    assert told.plan == plan


def test_what_is_said_of_one_that_is_given_up_calls_it_by_its_name(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    plan = planned(store, "a")
    for _ in range(10):
        fail(store, plan, "a", "vanished")
    Cells(store, plan).claimer(1).step()
    assert "cell a ended 10 attempts without a result" in caplog.text
    assert "`dibs sweep retry` frees it" in caplog.text


def test_every_cause_has_an_action() -> None:
    assert {cause for cause in _CAUSES if cause != Cause.OK} == ACTIONS.keys()


def test_over_a_limit_of_ours_stops(store: Store) -> None:
    plan = planned(store, "a")
    fail(store, plan, "a", "time limit", reason="over the time limit of 5 s")
    assert retry(store, plan).freed == ()
    assert retry(store, plan, force=["a"]).freed == ("a",)


def test_a_full_disk_asks(store: Store) -> None:
    plan = planned(store, "a")
    fail(store, plan, "a", "disk full")
    told = retry(store, plan)
    assert "--yes" in told.decisions[0].why
    assert retry(store, plan, yes=True).freed == ("a",)


def test_again_up_to_a_limit_and_lost_machines_do_not_count(store: Store) -> None:
    plan = planned(store, "a")
    for _ in range(3):
        fail(store, plan, "a", "vanished")
    for _ in range(2):
        fail(store, plan, "a", "out of memory (host)")
        assert retry(store, plan).freed == ("a",)
    begin(store, plan, "a").close("failed", reason="poison")
    assert retry(store, plan).freed == ("a",)
    fail(store, plan, "a", "out of memory (host)")
    told = retry(store, plan)
    assert (told.freed, told.exit_code) == ((), 1)
    assert "failure 3" in told.decisions[0].why
    assert retry(store, plan, limit=3, dry=True).freed == ("a",)


def test_a_damaged_result_is_run_as_a_new_trial(store: Store) -> None:
    plan = planned(store, "a", "b", "c")
    for name in "abc":
        finish(store, plan, name)
    for name in "ac":
        there = final_of(store, plan, name)
        assert there is not None
        (there / "best.npz").write_bytes(b"")
    told = retry(store, plan)
    assert (told.freed, told.exit_code, told.plan.version) == (("a", "c"), 0, 1)
    assert [(cell.n, cell.former) for cell in told.plan.cells] == [(3, (0,)), (1, ()), (4, (2,))]
    assert newest_plan(store, NAME) == told.plan
    assert states(store, told.plan) == {"a": "waiting", "b": "done", "c": "waiting"}
    assert {each.state for each in standing(store, plan)} == {"done"}  # a settled trial stays settled
    assert "instead of trial 0" in reconcile(store, told.plan).findings[0].what
    finish(store, told.plan, "a", result(0))
    finish(store, told.plan, "c", result(2))
    assert reconcile(store, told.plan).clean


def test_a_place_that_is_not_mounted_runs_nothing_again(tmp_path: Path, store: Store) -> None:
    plan = planned(store, "a", "b", final=str(tmp_path / "mount"))
    finish(store, plan, "a")
    finish(store, plan, "b")
    (tmp_path / "mount").rename(tmp_path / "away")
    with pytest.raises(StoreError, match="is it mounted here"):
        retry(store, plan)
    (tmp_path / "mount").mkdir()
    told = retry(store, plan)
    assert (told.freed, told.exit_code, "is their place mounted" in told.decisions[0].why) == ((), 1, True)
    assert retry(store, plan, ["a"], dry=True).freed == ("a",)
    assert retry(store, plan, yes=True).freed == ("a", "b")


def test_two_who_renew_at_once_make_one_new_trial(store: Store) -> None:
    plan = planned(store, "a")
    finish(store, plan, "a")
    there = final_of(store, plan, "a")
    assert there is not None
    (there / "best.npz").unlink()
    at_once([lambda: retry(Store(store.url), plan)] * 3)
    assert (newest_plan(store, NAME).version, newest_plan(store, NAME).cells[0].n) == (1, 1)


def test_what_is_named_and_what_is_not(store: Store) -> None:
    plan = planned(store, "a", "b", "done", "running", "waiting", "dropped")
    plan = plan.next(cells=tuple(replace(each, dropped=each.name == "dropped") for each in plan.cells))
    assert add_plan(store, plan)
    fail(store, plan, "a", "out of memory (host)")
    fail(store, plan, "b", "out of memory (host)")
    finish(store, plan, "done")
    begin(store, plan, "running", me="two")
    told = retry(store, plan, ["b", "done", "running", "waiting", "dropped"])
    assert told.freed == ("b",)
    assert {each.cell: each.why for each in told.decisions if each.how is None} == {
        "done": "it is done, and its copies are what they should be: --force runs it again all the same",
        "running": f"it is running, by two on {store.machine.who('')['host']}",
        "waiting": "it waits already: dibs sweep run",
        "dropped": "it is dropped: turn its line back into a cell first",
    }
    assert told.exit_code == 1
    assert states(store, plan)["a"] == "failed"
    with pytest.raises(NotFound, match="has no cell 'zz'"):
        retry(store, plan, ["zz"])


def test_a_done_cell_is_run_again_only_by_force(store: Store) -> None:
    plan = planned(store, "a")
    finish(store, plan, "a")
    assert retry(store, plan).decisions == ()
    assert retry(store, plan, force=["a"]).plan.cells[0].n == 1


def test_only_the_identical_config_is_run_again(store: Store, tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    config.write_text("lr = 1\n")
    mine = replace(cell(0, "a", config=hashlib.sha256(config.read_bytes()).hexdigest()), source=str(tmp_path / "q.txt"))
    plan = planned(store).next(cells=(mine,))
    assert add_plan(store, plan)
    fail(store, plan, "a", "out of memory (host)")
    assert retry(store, plan, dry=True).freed == ("a",)
    config.write_text("lr = 2\n")
    told = retry(store, plan)
    assert (told.freed, told.exit_code) == ((), 4)
    assert "is not the config that was planned" in told.decisions[0].why
    assert retry(store, plan, force=["a"]).freed == ()  # force is about causes, not about other work
    config.unlink()
    assert retry(store, plan).freed == ("a",)  # where the file is not there, the store's bytes are run
