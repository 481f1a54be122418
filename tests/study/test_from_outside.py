"""What somebody who had not written it ran into: each once, with the right answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.parts import FakeMachine, plant, store_over

from dibs import Float, NotFound, RefusedError, Space, Store, StoreError, Study, UsageError
from dibs.backend import MemoryBackend
from dibs.store._opening import in_job_array
from dibs.study import finished, take
from dibs.study._attempt import Attempt

SPACE = Space(x=Float(0, 1))


def study_over(backend: MemoryBackend, pid: int = 1, **terms: float) -> Study:
    return Study(store_over(backend, FakeMachine(pid)), "s", SPACE, goal="min", seed=0, **terms)  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", [b"{", b"\xff"])
def test_damage_that_stands_still_stops_no_wish(damage: bytes) -> None:
    """A record that does not read may carry any wish, but not for ever."""
    now = [1_000_000.0]
    backend = MemoryBackend(clock=lambda: now[0])
    study = study_over(backend, stale_s=60)
    for trial in study.trials(2):
        with trial:
            trial.done(1.0)
    fresh = study_over(backend, 2)
    plant(fresh.store, fresh.view.keys.attempt(0, 0), damage)
    fresh.enqueue({"x": 0.125})
    first = fresh.claimer(4).step()
    assert isinstance(first, Attempt)
    assert first.point != {"x": 0.125}, "it may be somebody's record on its way"
    first.close("done", score=1.0)
    now[0] += 1_000
    other = study_over(backend, 3)
    plant(other.store, "study/s/live/000000/00000009-0.json", b"{}")
    served = other.claimer(4)
    got = served.step()
    assert isinstance(got, Attempt)
    got.close("done", score=1.0)  # its stamp shows that time has passed
    late = study_over(backend, 4).claimer(6).step()
    assert isinstance(late, Attempt)
    assert {tuple(got.point.items()), tuple(late.point.items())} & {(("x", 0.125),)}


def test_a_released_trial_that_ended_meanwhile_does_not_run_again() -> None:
    backend = MemoryBackend()
    owner = study_over(backend)
    slow = owner.claimer(1).step()
    assert isinstance(slow, Attempt)
    other = study_over(backend, 2)
    other.view.notes.release(0, 0, None)
    claimer = other.claimer(1)
    claimer.view.refresh()
    slow.close("done", score=0.5)
    assert claimer._waiting() is None
    assert other.results()[0].score == 0.5


def test_leaving_in_order_does_not_wait_for_a_dead_store_again(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = MemoryBackend()
    study = study_over(backend)
    trials = study.trials(3)
    next(trials)
    clock = study.store.machine.clock

    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full: free some room")

    monkeypatch.setattr(backend, "stage", full)
    before = clock.monotonic()
    trial = study.claimer  # the loop is left with its trial open, as an error in the body does
    with pytest.raises(StoreError):
        next(trials)
    assert trial is not None
    assert clock.monotonic() - before < 3 * study.store.settler.patience_s


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.top("3"), lambda s: s.top(1.5), lambda s: s.retry("x"), lambda s: s.retry(1.0),
        lambda s: s.run(lambda t: 1.0, 1, time_s="1"), lambda s: s.run(lambda t: 1.0, 1, grace_s="x"),
        lambda s: s.run(lambda t: 1.0, 1, grace_s=None), lambda s: s.run(lambda t: 1.0, 1, rescue_after_s="1"),
        lambda s: s.run(lambda t: 1.0, 1, on_event=3), lambda s: s.store.claim("n", None, {1: 2}),
        lambda s: finished(s.store, "x", study="s"), lambda s: finished("path", SPACE, study="s"),
        lambda s: take("path", {}, study="s", trial=0, goal="min"), lambda s: next(s.trials(1.5)),
    ],
)  # fmt: skip
def test_a_wrong_type_is_a_usage_error(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError):
        call(study_over(MemoryBackend()))


def test_numpy_integers_are_integers() -> None:
    study = study_over(MemoryBackend())
    assert len([trial.done(1.0) for trial in study.trials(np.int64(2))]) == 2  # type: ignore[func-returns-value]
    assert len(study.top(np.int64(1))) == 1
    assert study.retry(np.int64(0)) == []


def test_retrying_what_is_not_there_is_told() -> None:
    with pytest.raises(NotFound, match="no trial 7"):
        study_over(MemoryBackend()).retry(7)


def test_a_space_that_lacks_a_parameter_says_so() -> None:
    backend = MemoryBackend()
    study_over(backend)
    with pytest.raises(RefusedError, match=r"created with space \(x\) = .*, and yours has none"):
        Study(store_over(backend), "s", Space(y=Float(0, 1)), goal="min")


def test_a_path_no_file_system_takes_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Store(tmp_path / ("x" * 300))


@pytest.mark.parametrize("index", ["0", "7"])
def test_an_indexed_job_is_a_job_array(index: str) -> None:
    assert in_job_array({"JOB_COMPLETION_INDEX": index})
    assert not in_job_array({})


def test_status_counts_what_is_there() -> None:
    study = study_over(MemoryBackend())
    claimer = study.claimer(4)
    claimer.step().close("done", score=0.5)  # type: ignore[union-attr]
    claimer.step()
    told = study.status()
    assert (told.trials, told.states, told.unfinished, told.why) == (4, {"done": 1, "running": 1}, True, "held")
    assert told.best is not None
    assert (told.best.score, told.machines, told.processes, len(told.held)) == (0.5, 1, 1, 1)


class Outage(MemoryBackend):
    """Reads fail for a while."""

    left = 0
    error = StoreError("the server does not answer", passing=True)

    def read(self, key):  # type: ignore[no-untyped-def]
        if self.left:
            self.left -= 1
            raise self.error
        return super().read(key)


def test_an_outage_between_trials_is_waited_out() -> None:
    backend = Outage()
    study = study_over(backend)
    ran = []
    for trial in study.trials(3):
        with trial:
            trial.done(1.0)
        ran.append(trial.n)
        backend.left = 3
    assert ran == [0, 1, 2]


def test_what_does_not_pass_is_told_at_once() -> None:
    backend = Outage()
    backend.error = StoreError("you may not read here")
    study = study_over(backend)
    trials = study.trials(3)
    backend.left = 10**6
    before = study.store.machine.clock.monotonic()
    with pytest.raises(StoreError, match="may not"):
        next(trials)
    assert study.store.machine.clock.monotonic() == before
