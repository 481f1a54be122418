"""A study at a glance: counts that add up, ages from the store's stamps, problems with their cure, no writing."""

from __future__ import annotations

import json

import pytest
from tests.parts import FakeMachine, body_at, plant
from tests.view.studies import SPACE, Lab

from dibs.errors import NotFound
from dibs.study import report, take
from dibs.view import Source, study_status


def test_counts_name_every_state_and_add_up() -> None:
    lab = Lab()
    lab.trial(0, "done", [0.5, 0.25])
    lab.trial(1, "failed", reason="boo")
    lab.trial(2, "interrupted")
    lab.trial(3, "pruned", [0.9])
    lab.begin(4)
    lab.trial(5, "failed")
    lab.study.retry(5)
    status = study_status(lab.source())
    assert status.counts == {
        "done": 1, "pruned": 1, "failed": 1, "running": 1, "interrupted": 1, "again": 1, "unclaimed": 4,
    }  # fmt: skip
    assert sum(status.counts.values()) == status.of == 10
    assert (status.waiting, status.settled, status.complete) == (2, 3, False)
    assert status.best is not None
    assert (status.best.n, status.best.score, status.best.point) == (0, 0.25, lab.point(0))
    assert (status.goal, status.seed, status.space, status.stale_s) == ("min", 7, SPACE, 3600.0)
    json.dumps(status.to_json(), allow_nan=False)


def test_an_empty_study_has_a_status() -> None:
    status = study_status(Lab().source())
    assert (status.of, sum(status.counts.values()), status.best, status.newest_at) == (0, 0, None, None)
    assert not status.complete


def test_a_study_nobody_created_is_not_found_and_the_others_are_named() -> None:
    with pytest.raises(NotFound, match=r"no study 'eggs'.*there: 'spam'"):
        Source.of(Lab().reader(), "eggs")


def test_records_without_a_definition_are_read_with_their_goal() -> None:
    lab = Lab(defined=False)
    lab.trial(0, "done", [3.0])
    status = study_status(lab.source())
    assert (status.goal, status.space, status.sampler) == ("min", None, None)
    assert status.best is not None
    assert status.best.score == 3.0


def test_last_beat_and_last_report_are_told_apart() -> None:
    lab = Lab(stale_s=600)
    lab.begin(0)
    lab.pass_s(2)
    lab.report(0, [0.5, 0.4])
    lab.pass_s(700)
    lab.study.view.refresh()
    lab.backend.touch(lab.study.view.keys.attempt(0, 0))
    lab.pass_s(50)
    lab.begin(1)  # somebody moves: that is now
    (run, other) = study_status(lab.source()).running
    assert (run.beat_age_s, run.report_age_s, run.step, run.score) == (50, 750, 1, 0.4)
    assert (run.quiet, run.stuck) == (False, True)
    assert (other.beat_age_s, other.report_age_s, other.stuck) == (0, None, False)


def test_quiet_after_its_patience_and_only_by_the_stores_own_stamps() -> None:
    lab = Lab(stale_s=600)
    lab.begin(0)
    lab.pass_s(2)
    lab.report(0, [0.5])
    lab.pass_s(601)
    assert not study_status(lab.source()).running[0].quiet  # nothing newer was seen: it may be just now
    lab.begin(1)
    first, second = study_status(lab.source()).running
    assert (first.quiet, first.stuck, second.quiet) == (True, False, False)


def test_how_long_nothing_moved_is_told_by_this_machines_clock() -> None:
    lab = Lab()
    lab.begin(0)
    machine = FakeMachine(pid=5)
    machine.clock.now = lab.now - 1_800_000_000.0 + 90
    status = study_status(lab.source(machine))
    assert status.still_s == pytest.approx(90)
    assert status.newest_at == "1970-01-12T13:46:40.000Z"


def test_certainly_dead_is_this_machines_to_say() -> None:
    lab = Lab()
    lab.begin(0)
    machine = FakeMachine(pid=5, host="north")
    machine.dead.add(1)
    assert [run.gone for run in study_status(lab.source(machine)).running] == [True]
    assert [run.gone for run in study_status(lab.source()).running] == [False]


def test_who_took_part() -> None:
    lab = Lab()
    lab.trial(0, "done", [1.0])
    lab.machine.become(2)
    lab.trial(1, "done", [2.0])
    lab.begin(2, me="bob")
    status = study_status(lab.source())
    parts = [(p.me, p.host, p.processes, p.attempts, p.done, p.running) for p in status.parts]
    assert parts == [("ann", "north", 2, 2, 2, 0), ("bob", "north", 1, 1, 0, 1)]
    assert (status.machines, status.processes) == (1, 2)


def test_wishes_stop_and_attached_results_are_shown() -> None:
    lab = Lab()
    lab.study.enqueue(lab.point(3))
    lab.study.attach(lab.point(1), 0.5)
    lab.study.stop()
    status = study_status(lab.source())
    assert (status.queued, status.attached, status.stopped) == ((lab.point(3),), 1, True)
    assert status.to_json()["queued"] == [{"lr": 0.004, "opt": {"tuple": [1, 2]}}]


@pytest.mark.parametrize("junk", [b"", b"{", b"\xff\x00" * 9, b"[]", b'{"v":1}', b"null"])
def test_a_damaged_record_is_told_with_its_cure_and_hides_nothing(junk: bytes) -> None:
    lab = Lab()
    lab.trial(0, "done", [1.0])
    lab.begin(1)
    plant(lab.store, lab.study.view.keys.attempt(1, 0), junk)
    status = study_status(lab.source())
    assert [(p.key, p.newer) for p in status.problems] == [("study/spam/trial/000000/00000001-0.json", False)]
    assert "dibs rescue" in status.problems[0].cure
    assert (status.counts["done"], status.counts["running"]) == (1, 1)
    assert [run.readable for run in status.running] == [False]


def test_a_record_of_a_later_version_is_told_as_such() -> None:
    lab = Lab()
    lab.begin(0)
    key = lab.study.view.keys.attempt(0, 0)
    plant(lab.store, key, {**body_at(lab.store, key), "v": 2})
    (problem,) = study_status(lab.source()).problems
    assert problem.newer
    assert "upgrade" in problem.cure


@pytest.mark.parametrize("junk", [b"", b"{", b'{"v":1,"study":"spam"}', b'{"v":9}'])
def test_a_damaged_definition_does_not_hide_the_results(junk: bytes) -> None:
    lab = Lab()
    lab.trial(0, "done", [1.0])
    plant(lab.store, lab.study.view.keys.study, junk)
    machine = FakeMachine(pid=5)
    status = study_status(lab.source(machine))
    assert machine.clock.slept == []  # a reader waits for nobody
    assert [problem.key for problem in status.problems] == ["study/spam/study.json"]
    assert status.best is not None
    assert (status.best.score, status.space) == (1.0, None)


def test_damaged_notes_and_attached_results_are_told() -> None:
    lab = Lab()
    keys = lab.store.keys("spam")
    plant(lab.store, keys.wish("ab" * 32), "{")
    plant(lab.store, keys.given_score("cd" * 32), b"\0")
    problems = study_status(lab.source()).problems
    assert [problem.key.split("/")[2] for problem in problems] == ["given", "note"]
    assert all("remove the file" in problem.cure for problem in problems)


def test_an_attempt_with_a_successor_runs_no_more() -> None:
    """As above, so in the table: whoever owned it is most likely dead, and the trial has its result."""
    lab = Lab()
    lab.begin(0)
    taken = take(lab.store, lab.point(0), study=lab.name, trial=0, attempt=1, me="bob", goal="min", of=10)
    assert taken is not None
    report(lab.store, lab.point(0), [0.5], study=lab.name, trial=0, state="done")
    status = study_status(lab.source())
    assert status.counts["running"] == 0
    assert {part.me: part.running for part in status.parts} == {"ann": 0, "bob": 0}
