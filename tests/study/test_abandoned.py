"""Quiet is not dead: whose attempts are called abandoned, what rescue does about it, and when a trial is poison."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine, body_at

from dibs import Float, Space, Store, Study, UsageError
from dibs.backend import MemoryBackend, WrapperBackend
from dibs.study import abandoned, in_flight, report, rescue, take
from dibs.study._quiet import beat_s_of

SPACE = Space(x=Float(0, 1))
POINT = {"x": 0.5}


class World:
    """One store whose clock the test moves, and machines whose own clocks say something else."""

    def __init__(self, stale_s: float = 600.0) -> None:
        self.now = 1_000_000.0
        self.backend = MemoryBackend(clock=lambda: self.now)
        Study(self.store(), "spam", SPACE, goal="min", sampler="random", seed=0, stale_s=stale_s)

    def store(self, pid: int = 1, skew_s: float = 0.0) -> Store:
        machine = FakeMachine(pid)
        machine.clock.now += skew_s
        return Store.over(self.backend, machine, patience_s=5.0)

    def study(self, pid: int = 1, **more: Any) -> Study:
        return Study(self.store(pid, **more), "spam")

    def take(self, trial: int, attempt: int | None = None, pid: int = 1) -> Store:
        """A claim by a machine of its own, which is returned to report with."""
        store = self.store(pid)
        assert take(store, POINT, study="spam", trial=trial, goal="min", attempt=attempt) is not None
        return store

    def end(self, store: Store, trial: int, state: str) -> None:
        report(store, POINT, [1.0], study="spam", trial=trial, state=state)

    def record(self, n: int, attempt: int) -> dict[str, Any]:
        return body_at(self.store(), self.store().keys("spam").attempt(n, attempt))

    def has(self, n: int, attempt: int) -> bool:
        return self.backend.read(self.store().keys("spam").attempt(n, attempt)) is not None


# what is quiet


@pytest.mark.parametrize("skew_s", [0.0, -7200.0, 7200.0])
def test_ages_are_the_stores_whatever_the_machines_clocks_say(skew_s: float) -> None:
    world = World(stale_s=600.0)
    world.take(0)
    world.now += 599
    assert world.study(2, skew_s=skew_s).abandoned() == []
    world.now += 2
    study = world.study(2, skew_s=skew_s)
    assert study.abandoned() == [(0, 0)]
    assert abandoned(study.store, "spam") == [(0, 0)]


def test_stale_s_of_the_caller_and_three_beats_at_least() -> None:
    world = World(stale_s=3600.0)  # beats every 60 s
    world.take(0)
    world.now += 170
    assert world.study().abandoned(stale_s=10) == []
    world.now += 20
    for stale_s in (10, 0, 180.0):
        assert world.study().abandoned(stale_s) == [(0, 0)]
        assert abandoned(world.store(), "spam", stale_s) == [(0, 0)]
    assert world.study().abandoned() == []
    for wrong in (-1, float("nan"), "1h", True):
        for ask in (world.study().abandoned, world.study().rescue, lambda s: abandoned(world.store(), "spam", s)):
            with pytest.raises(UsageError, match="stale_s"):
                ask(wrong)


@pytest.mark.parametrize(
    ("stale_s", "folder", "bucket"), [(3600, 60, 600), (60, 10, 30), (1, 1, 30), (600, 60, 100), (100_000, 60, 600)]
)
def test_beats_are_a_sixth_of_stale_s_within_bounds(stale_s: float, folder: float, bucket: float) -> None:
    assert (beat_s_of(stale_s), beat_s_of(stale_s, folder=False)) == (folder, bucket)


def test_only_running_ones_are_abandoned() -> None:
    world = World()
    for n, state in enumerate(["done", "pruned", "failed", "interrupted"]):
        world.end(world.take(n), n, state)
    world.take(4)
    world.now += 10_000
    assert world.study().abandoned() == [(4, 0)]


def test_a_report_moves_it() -> None:
    world = World()
    store = world.take(0)
    watching = world.study(2)
    for _ in range(5):
        world.now += 500
        assert isinstance(store.machine, FakeMachine)
        store.machine.clock.now += 500
        report(store, POINT, [1.0], study="spam", trial=0, state="running")
        assert watching.abandoned() == []
    world.now += 601
    assert watching.abandoned() == [(0, 0)]


def test_patience_doubles_with_every_quiet_attempt() -> None:
    world = World(stale_s=600.0)
    world.take(0)
    world.take(0, attempt=1)
    world.now += 1199
    assert world.study().abandoned() == []
    world.now += 2
    assert world.study().abandoned() == [(0, 1)]
    world.take(0, attempt=2)
    world.now += 2399
    assert world.study().abandoned() == []
    world.now += 2
    assert world.study().abandoned() == [(0, 2)]


def test_a_quiet_one_is_not_in_flight_by_the_newest_stamp_seen() -> None:
    world = World(stale_s=600.0)
    world.take(0)
    world.now += 10_000
    assert len(in_flight(world.store(), study="spam")) == 1, "nothing newer was seen: a reader writes no probe"
    world.take(1)
    store = world.store()
    assert list(in_flight(store, study="spam").n) == [1]
    assert list(Study(store, "spam").in_flight().n) == [1]


def test_a_process_that_is_certainly_gone_is_abandoned_at_once() -> None:
    world = World()
    world.take(0, pid=7)
    world.take(1, pid=8)
    study = world.study(2)
    assert study.abandoned() == []
    assert isinstance(study.store.machine, FakeMachine)
    study.store.machine.dead.add(7)
    assert study.abandoned() == [(0, 0)]


def test_abandoned_decides_nothing() -> None:
    world = World()
    world.take(0)
    world.now += 10_000
    before = [entry.key for entry in world.backend.list("")]
    for _ in range(2):
        assert world.study().abandoned() == [(0, 0)]
    assert [entry.key for entry in world.backend.list("")] == before
    assert list(world.study().trials(1)) == [], "nor does a worker that was not told to rescue"


def test_on_a_real_folder(tmp_path: Path) -> None:
    """Ages come from mtimes and a probe, without waiting for them."""
    Study(Store(tmp_path / "store"), "spam", SPACE, goal="min", stale_s=600)
    store = Store.over(Store(tmp_path / "store").backend, FakeMachine(7))
    take(store, POINT, study="spam", trial=0, goal="min")
    path = tmp_path / "store" / store.keys("spam").attempt(0, 0)
    stamp = path.stat().st_mtime
    for age_s, found in ((0, []), (500, []), (700, [(0, 0)])):
        os.utime(path, (stamp - age_s, stamp - age_s))
        assert Study(Store.over(store.backend, FakeMachine()), "spam").abandoned() == found
    report(store, POINT, [1.0], study="spam", trial=0, state="running")
    assert isinstance(store.machine, FakeMachine)
    store.machine.clock.now += 2
    report(store, POINT, [1.0], study="spam", trial=0, state="running")
    assert path.stat().st_mtime >= stamp
    assert Study(Store.over(store.backend, FakeMachine()), "spam").abandoned() == []


# rescue


@pytest.mark.parametrize("by", ["method", "function"])
def test_rescue_frees_and_runs_nothing(by: str) -> None:
    world = World()
    world.take(0)
    owner = world.take(1)
    world.end(world.take(2), 2, "done")
    world.now += 601
    assert (world.study().rescue() if by == "method" else rescue(world.store(), "spam")) == [(0, 0), (1, 0)]
    assert not world.has(0, 1)
    notes = [entry.key.rpartition("note/")[2] for entry in world.backend.list(world.store().keys("spam").notes())]
    assert notes == ["release/00000000-0.json", "release/00000001-0.json"]
    assert world.study().rescue() == [], "free already"
    world.end(owner, 1, "done")  # it was alive after all
    seen = [(trial.n, trial.attempt, trial.done(0.5)) for trial in world.study(3).trials(3)]
    assert seen == [(0, 1, None)]
    assert [(r.n, r.attempt, r.state) for r in world.study().results()] == [
        (0, 1, "done"),
        (1, 0, "done"),
        (2, 0, "done"),
    ]


def test_the_rescued_attempt_has_the_firsts_point() -> None:
    world = World()
    world.take(0)
    world.now += 601
    world.study().rescue()
    for trial in world.study(3).trials(1):
        assert trial.point == POINT, "not what the sampler says about trial 0"
        trial.done(0.5)


def test_a_worker_rescues_what_is_certainly_dead_and_quiet_ones_only_when_told() -> None:
    world = World(stale_s=600.0)
    world.take(0, pid=7)
    world.take(1, pid=8)
    world.now += 10_000
    study = world.study(2)
    assert isinstance(study.store.machine, FakeMachine)
    study.store.machine.dead.add(7)
    assert [(trial.n, trial.attempt, trial.done(0.5)) for trial in study.trials(2)] == [(0, 1, None)]
    machine = study.store.machine
    untold = study.claimer(2)
    for _ in range(3):
        assert not hasattr(untold.step(), "attempt")
        machine.clock.now += 5000
    claimer = study.claimer(2, rescue_after_s=600.0)
    assert not hasattr(claimer.step(), "attempt"), "it has only just begun to watch"
    machine.clock.now += 119
    assert not hasattr(claimer.step(), "attempt"), "two of its beats are not over"
    machine.clock.now += 2
    taken = claimer.step()
    assert (taken.n, taken.attempt) == (1, 1)  # type: ignore[union-attr]


def test_one_that_moves_while_it_is_watched_is_left_alone(tmp_path: Path) -> None:
    """Its stamps may come from a clock that is hours behind: moving is what counts."""
    backend = Store(tmp_path / "store").backend
    study = Study(Store.over(backend, FakeMachine(2)), "spam", SPACE, goal="min", stale_s=600)
    take(Store.over(backend, FakeMachine(7)), POINT, study="spam", trial=0, goal="min")
    path = tmp_path / "store" / study.store.keys("spam").attempt(0, 0)
    stamp = path.stat().st_mtime - 10_000
    claimer = study.claimer(1, rescue_after_s=600.0)
    assert isinstance(study.store.machine, FakeMachine)
    for k in range(10):
        os.utime(path, (stamp + k, stamp + k))
        assert not hasattr(claimer.step(), "attempt"), k
        study.store.machine.clock.now += 100
    assert not hasattr(claimer.step(), "attempt")
    study.store.machine.clock.now += 121
    assert claimer.step().attempt == 1  # type: ignore[union-attr]


def test_one_that_beats_at_the_last_moment_is_left_alone() -> None:
    world = World(stale_s=600.0)
    key = world.take(0).keys("spam").attempt(0, 0)

    class Beating(WrapperBackend):
        """Its owner beats between our look and our claim."""

        def now(self) -> float:
            self.inner.touch(key)
            return super().now()

    study = Study(Store.over(Beating(world.backend), FakeMachine(2)), "spam")
    claimer = study.claimer(1, rescue_after_s=600.0)
    claimer.step()
    world.now += 10_000
    assert isinstance(study.store.machine, FakeMachine)
    study.store.machine.clock.now += 10_000
    assert not hasattr(claimer.step(), "attempt")
    assert not world.has(0, 1)


# poison


def quiet(world: World, n: int, attempts: range) -> None:
    for attempt in attempts:
        world.take(n, attempt=attempt)


def test_after_three_quiet_attempts_a_trial_is_closed_as_poison(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    quiet(world, 0, range(3))
    assert take(world.store(), POINT, study="spam", trial=0, goal="min", attempt=3) is None
    found = world.record(0, 3)
    assert (found["state"], found["reason"], found["score"], found["point"]) == ("failed", "poison", None, POINT)
    assert "poison" in caplog.text
    assert "dibs retry" in caplog.text
    (result,) = world.study().results()
    assert (result.state, result.attempt, result.reason) == ("failed", 3, "poison")
    assert list(world.study(3).trials(1)) == []
    assert not world.has(0, 4)


def test_two_quiet_attempts_are_not_poison() -> None:
    world = World()
    quiet(world, 0, range(2))
    assert take(world.store(), POINT, study="spam", trial=0, goal="min", attempt=2) is not None


def test_after_ten_interruptions_a_trial_is_closed_as_poison() -> None:
    world = World()
    for attempt in range(10):
        world.end(world.take(0, attempt=attempt), 0, "interrupted")
    assert world.record(0, 9)["state"] == "interrupted"
    assert list(world.study().trials(1)) == []
    assert (world.record(0, 10)["state"], world.record(0, 10)["reason"]) == ("failed", "poison")


def test_nine_interruptions_are_not_poison_and_neither_are_nine_and_two_quiet() -> None:
    world = World()
    for attempt in range(9):
        world.end(world.take(0, attempt=attempt), 0, "interrupted")
    quiet(world, 0, range(9, 11))
    assert take(world.store(), POINT, study="spam", trial=0, goal="min", attempt=11) is not None


def test_a_poisoned_trial_is_retried_and_counts_from_there() -> None:
    world = World()
    quiet(world, 0, range(3))
    assert take(world.store(), POINT, study="spam", trial=0, goal="min", attempt=3) is None
    assert world.study().retry() == [0]
    quiet(world, 0, range(4, 7))
    assert take(world.store(), POINT, study="spam", trial=0, goal="min", attempt=7) is None
    assert world.record(0, 7)["reason"] == "poison"
    assert world.study().retry() == [0]
    for trial in world.study().trials(1):
        assert (trial.attempt, trial.point) == (8, POINT)
        trial.done(0.5)
    assert world.study().best().attempt == 8


def test_a_release_by_hand_starts_the_count_anew() -> None:
    world = World()
    quiet(world, 0, range(3))
    world.now += 100_000
    assert world.study().rescue() == [(0, 2)]
    for trial in world.study().trials(1):
        assert trial.attempt == 3
        trial.done(0.5)


def test_an_owner_that_was_only_slow_un_does_the_poison() -> None:
    world = World()
    owner = world.take(0)
    quiet(world, 0, range(1, 3))
    assert take(world.store(), POINT, study="spam", trial=0, goal="min", attempt=3) is None
    world.end(owner, 0, "done")
    assert (world.study().best().attempt, world.study().best().state) == (0, "done")
