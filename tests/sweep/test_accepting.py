"""What only a person can decide: asked about, answered under a name, written down, and asked again when it is another thing."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sweep.cells import NAME, begin, edited, finish, planned, result

from dibs import Store
from dibs.errors import NotFound, StoreError, UsageError
from dibs.store import SweepKeys
from dibs.study._attempt import Attempt
from dibs.sweep import Plan, accept, add_plan, newest_plan, pull, reconcile, release, retry, verify
from dibs.sweep._marks import accepted_in

OLD_S = 4e5  # longer than any patience


def silent(store: Store, attempt: Attempt) -> None:
    """As if its machine had been gone for long, and was none that can be looked at."""
    path = Path(store.url) / SweepKeys(NAME).attempt(attempt.n, attempt.attempt)
    path.write_bytes(path.read_bytes().replace(f'"host":"{store.machine.who("")["host"]}"'.encode(), b'"host":"gone"'))
    stamp = path.stat().st_mtime - OLD_S
    os.utime(path, (stamp, stamp))


def kinds(store: Store) -> list[tuple[str, str | None, bool]]:
    found = reconcile(Store(store.url), newest_plan(store, NAME))
    return [(each.kind, each.cell, each.fault) for each in found.findings]


def code(store: Store, tmp_path: Path) -> int:
    """Of a release, once what is there was verified."""
    fresh = Store(store.url)
    plan = newest_plan(fresh, NAME)
    pull(fresh, plan, tmp_path / "d")
    verify(fresh, plan, tmp_path / "d")
    return release(fresh, plan, approve="Jo").exit_code


def dropped(store: Store, plan: Plan, name: str) -> Plan:
    after = plan.next(cells=tuple(replace(each, dropped=each.name == name) for each in plan.cells))
    assert add_plan(store, after)
    return after


def test_an_edited_config_is_a_fault_until_somebody_answers_for_it(store: Store, tmp_path: Path) -> None:
    plan = planned(store, "a", "b")
    finish(store, plan, "a", attempt=edited(begin(store, plan, "a")))
    finish(store, plan, "b")
    assert kinds(store) == [("config changed", "a", True)]
    assert "dibs sweep accept a --approve NAME" in reconcile(store, plan).findings[0].cure
    assert code(store, tmp_path) == 1
    (given,) = accept(store, plan, ["a"], approve="Ann", why="only a comment")
    assert (given.already, given.answer.approve, given.doubt.kind) == (False, "Ann", "config changed")
    assert kinds(store) == [("accepted", "a", False)]
    found = reconcile(store, plan)
    assert (found.clean, found.exit_code, found.proven) == (True, 0, ("a", "b"))
    assert found.findings[0].what.endswith("nobody can say which one it read; accepted by Ann: only a comment")
    assert retry(store, plan, dry=True).decisions == ()
    assert code(store, tmp_path) == 0
    told = release(store, plan, approve="Jo").record
    assert told is not None
    assert [said.partition(";")[2] for said in told["accepted"]] == [" accepted by Ann: only a comment"]


def test_the_first_answer_stays_and_another_attempt_is_asked_about_anew(store: Store) -> None:
    plan = planned(store, "a")
    finish(store, plan, "a", attempt=edited(begin(store, plan, "a")))
    accept(store, plan, ["a"], approve="Ann")
    (again,) = accept(store, plan, ["a"], approve="Bob", why="me too")
    assert (again.already, again.answer.approve) == (True, "Ann")
    after = retry(store, plan, force=["a"]).plan
    finish(store, after, "a", attempt=edited(begin(store, after, "a")))
    assert kinds(store) == [("config changed", "a", True)]


def test_what_is_no_matter_of_opinion_is_refused_and_nothing_is_written(store: Store) -> None:
    plan = planned(store, "a", "b")
    finish(store, plan, "a", attempt=edited(begin(store, plan, "a")))
    finish(store, plan, "b")
    with pytest.raises(UsageError, match="nothing to accept about b"):
        accept(store, plan, ["a", "b"], approve="Ann")
    with pytest.raises(UsageError, match="--approve"):
        accept(store, plan, ["a"], approve=" ")
    with pytest.raises(NotFound, match="no cell 'z': there is a, b"):
        accept(store, plan, ["z"], approve="Ann")
    assert accepted_in(store, NAME) == []
    other = plan.next(cells=(replace(plan.cells[0], config="1" * 64), plan.cells[1]))
    assert add_plan(store, other)
    accept(store, other, ["a"], approve="Ann")  # that it ran as something else than the plan says stays a fault
    assert ("config changed", "a", True) in kinds(store)


def test_an_answer_that_does_not_read_is_none(store: Store) -> None:
    plan = planned(store, "a")
    finish(store, plan, "a", attempt=edited(begin(store, plan, "a")))
    accept(store, plan, ["a"], approve="Ann")
    (mark,) = (Path(store.url) / SweepKeys(NAME).marks("accepted")).iterdir()
    mark.write_bytes(b"{")
    assert kinds(store) == [("config changed", "a", True)]
    with pytest.raises(StoreError, match="does not read"):
        accept(store, plan, ["a"], approve="Ann")
    mark.unlink()
    assert not accept(store, plan, ["a"], approve="Ann")[0].already


def test_a_dropped_cell_that_still_runs_shuts_the_gate(store: Store, tmp_path: Path) -> None:
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    mine = begin(store, plan, "b", me="two")
    dropped(store, plan, "b")
    assert kinds(store) == [("running", "b", True)]
    assert code(store, tmp_path) == 6
    assert (
        "its line is a comment, and attempt 0 by two on" in reconcile(store, newest_plan(store, NAME)).findings[0].what
    )
    with pytest.raises(UsageError, match="nothing to accept"):
        accept(store, newest_plan(store, NAME), ["b"], approve="Ann")
    mine.close("interrupted", reason="pre-empted")
    assert code(store, tmp_path) == 0


def test_one_that_is_silent_shuts_it_until_somebody_says_that_it_is_gone(store: Store, tmp_path: Path) -> None:
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    silent(store, begin(store, plan, "b", me="two"))
    dropped(store, plan, "b")
    assert kinds(store) == [("quiet", "b", True)]
    assert code(store, tmp_path) == 6
    accept(Store(store.url), newest_plan(store, NAME), ["b"], approve="Ann", why="it was returned")
    assert kinds(store) == [("accepted", "b", False)]
    assert code(store, tmp_path) == 0
    path = Path(store.url) / SweepKeys(NAME).attempt(1, 0)
    os.utime(path)  # it moves again: who said that it is gone was wrong
    assert kinds(store) == [("running", "b", True)]
    assert code(store, tmp_path) == 6
    stamp = path.stat().st_mtime - OLD_S / 2
    os.utime(path, (stamp, stamp))
    assert kinds(store) == [("quiet", "b", True)]


def test_an_attempt_is_silent_also_where_nobody_else_has_moved_since(store: Store, tmp_path: Path) -> None:
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    silent(store, begin(store, plan, "b", me="two"))
    dropped(store, plan, "b")
    for path in (Path(store.url) / SweepKeys(NAME).attempt(0, 0)).parent.iterdir():
        stamp = min(path.stat().st_mtime, (Path(store.url) / SweepKeys(NAME).attempt(1, 0)).stat().st_mtime)
        os.utime(path, (stamp, stamp))
    fresh = newest_plan(Store(store.url), NAME)
    assert accept(Store(store.url), fresh, ["b"], approve="Ann")[0].doubt.kind == "quiet"
    assert kinds(store) == [("accepted", "b", False)]
    assert code(store, tmp_path) == 0


def test_a_silent_attempt_that_would_replace_a_result_shuts_it(store: Store, tmp_path: Path) -> None:
    plan = planned(store, "a")
    first, later = begin(store, plan, "a"), begin(store, plan, "a", me="later")
    finish(store, plan, "a", attempt=first)
    silent(store, later)
    assert kinds(store) == [("quiet", "a", True)]
    assert code(store, tmp_path) == 6
    accept(Store(store.url), plan, ["a"], approve="Ann")
    assert code(store, tmp_path) == 0


def test_what_ends_while_the_copies_are_read_is_seen(store: Store, tmp_path: Path) -> None:
    plan = planned(store, "a")
    first, later = begin(store, plan, "a"), begin(store, plan, "a", me="later")
    finish(store, plan, "a", attempt=first)
    later.close("interrupted", reason="x")
    assert code(store, tmp_path) == 0
    begun = []

    def step(count: int, of: int) -> None:
        if not begun:
            begun.append(finish(store, plan, "a", result(7)))

    told = release(Store(store.url), plan, approve="Jo", step=step)
    assert told.exit_code != 0
