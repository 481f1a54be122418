"""Where a sweep stands: what the attempts of each cell amount to, why they ended, and what they left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.sweep.cells import NAME, append, begin, fail, finish, planned, result

from dibs import Store
from dibs.store import SweepKeys
from dibs.study._view import view_of
from dibs.sweep import add_plan, standing


def test_every_state_there_is(store: Store) -> None:
    plan = planned(store, "done", "running", "waiting", "interrupted", "failed", "unsynced", "dropped", "again")
    finish(store, plan, "done")
    begin(store, plan, "running", me="two")
    fail(store, plan, "interrupted", "pre-empted")
    fail(store, plan, "failed", "code error")
    fail(store, plan, "unsynced", "sync failed", synced=False)
    finish(store, plan, "dropped")
    again = fail(store, plan, "again", "disk full")
    view_of(store, NAME, SweepKeys(NAME)).notes.release(again.n, again.attempt, None)
    plan = plan.next(cells=tuple(replace(cell, dropped=cell.name == "dropped") for cell in plan.cells))
    found = {each.cell.name: each for each in standing(store, plan)}
    assert {name: each.state for name, each in found.items()} == {name: name for name in found} | {"again": "waiting"}
    assert {name for name, each in found.items() if each.waiting} == {"waiting", "interrupted", "again"}
    assert {name: each.counts.cause for name, each in found.items() if each.counts and each.counts.cause} == {
        "interrupted": "pre-empted", "failed": "code error", "unsynced": "sync failed", "again": "disk full",
    }  # fmt: skip
    done = found["done"].counts
    assert done is not None
    assert done.artifacts is not None
    assert {name: kept.size for name, kept in done.artifacts.items()} == {
        name: len(data) for name, data in result().items()
    }
    assert (done.scripts, done.digest) == ({"t.sh": "ab" * 32}, plan.cells[0].digest)
    running = found["running"].counts
    assert running is not None
    assert (running.me, running.took_s, running.quiet) == ("two", None, False)


def test_without_blobs_the_reason_says_why(store: Store) -> None:
    plan = planned(store, "a", "b", "c")
    fail(store, plan, "a", "sync failed")
    fail(store, plan, "b", "x", reason="over the time limit of 5 s")
    fail(store, plan, "c", "x", reason="something of a later version")
    found = standing(Store(store.url), plan, whole=False)
    assert [(each.state, each.counts and each.counts.cause) for each in found] == [
        ("unsynced", "sync failed"), ("failed", "time limit"), ("failed", None),
    ]  # fmt: skip


def test_a_verdict_says_what_is_known_of_the_attempts_it_is_over(store: Store) -> None:
    plan = planned(store, "a")
    machine = store.machine.who("")["host"]
    for me, last in (("one", "step 1\n"), ("one", "MemoryError: 3 GiB\n"), ("two", "step 3\n")):
        lost = begin(store, plan, "a", me)
        folder = Path(store.url) / SweepKeys(NAME).work(0, lost.attempt)
        folder.mkdir(parents=True)
        (folder / "log.txt").write_text(last)
    begin(store, plan, "a").close("failed", reason="poison")
    (found,) = standing(Store(store.url), plan)
    assert found.counts is not None
    assert (found.state, found.counts.cause) == ("failed", "poison")
    reason = str(found.counts.reason)
    assert reason.startswith(f"poison: nobody saw how attempts 0 and 1 by one on {machine} (the last begun ")
    assert f"), attempt 2 by two on {machine} (begun " in reason
    assert "killed at once, for memory perhaps" in reason
    assert reason.endswith(f"the log of attempt 2 is {folder}/log.txt, which ends with: step 3")
    (folder / "log.txt").unlink()
    (found,) = standing(Store(store.url), plan)
    assert found.counts is not None
    assert str(found.counts.reason).endswith(
        "which says out of memory (host): its end was not seen: MemoryError: 3 GiB"
    )


def test_a_verdict_counts_why_attempts_were_interrupted_since_the_last_one(store: Store) -> None:
    plan = planned(store, "a")
    begin(store, plan, "a")
    begin(store, plan, "a").close("failed", reason="poison")
    for k in range(10):
        fail(store, plan, "a", "vanished", reason=f"vanished: killed by SIG{'TERM' if k % 3 else 'KILL'}")
    begin(store, plan, "a").close("failed", reason="poison")
    (found,) = standing(Store(store.url), plan)
    assert found.counts is not None
    assert str(found.counts.reason).startswith(
        "poison: 10 interrupted: vanished: killed by SIGTERM (6 times), vanished: killed by SIGKILL (4 times); no log of theirs is on "
    )


def test_the_better_attempt_counts_and_all_are_told(store: Store) -> None:
    plan = planned(store, "a")
    slow = begin(store, plan, "a", me="slow")
    finish(store, plan, "a", attempt=begin(store, plan, "a", me="quick"))
    slow.close("interrupted")
    (found,) = standing(store, plan)
    assert (found.state, [run.state for run in found.runs]) == ("done", ["interrupted", "done"])
    assert (found.counts or found.runs[0]).me == "quick"


def test_a_new_number_is_another_trial(store: Store) -> None:
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    cells = (replace(plan.cells[0], n=plan.size, former=(0,)), plan.cells[1])
    changed = plan.next(cells=cells)
    assert add_plan(store, changed)
    assert [each.state for each in standing(store, changed)] == ["waiting", "waiting"]
    assert append(store, changed, "c").cells[-1].n == 3


def test_a_damaged_record_counts_as_running(store: Store) -> None:
    plan = planned(store, "a")
    finish(store, plan, "a")
    (Path(store.url) / SweepKeys(NAME).attempt(0, 0)).write_bytes(b"{")
    (found,) = standing(Store(store.url), plan)
    assert (found.state, found.counts and found.counts.artifacts) == ("running", None)
