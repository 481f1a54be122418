"""The attempt after the last one, when little of the trial can be seen."""

from __future__ import annotations

import builtins

import pytest
from tests.parts import FakeMachine, plant, store_over

from dibs import Float, Space, Study
from dibs.backend import Backend, MemoryBackend, WrapperBackend
from dibs.study import take
from dibs.study._attempt import Attempt

SPACE = Space(x=Float(0, 1))


class Behind(WrapperBackend):
    """Listings that leave out attempts 0."""

    def names(self, prefix: str) -> builtins.list[str]:
        return [name for name in super().names(prefix) if not name.endswith("-0.json")]


def study_on(backend: Backend, pid: int) -> Study:
    return Study(store_over(backend, FakeMachine(pid)), "s", SPACE, goal="min", seed=0)


@pytest.mark.parametrize("by", ["loop", "take"])
def test_the_point_comes_from_an_attempt_that_the_listing_left_out(by: str) -> None:
    """Attempt 1 is a claim without its record; attempt 0 reads, and its point is the wish of somebody."""
    backend = MemoryBackend()
    first = study_on(backend, 1)
    first.enqueue({"x": 0.5})
    owner = first.claimer(1).step()
    assert isinstance(owner, Attempt)
    owner.close("interrupted")
    plant(first.store, first.view.keys.attempt(0, 1), b"")
    first.view.notes.release(0, 1, None)
    behind = study_on(Behind(backend), 2)
    if by == "loop":
        claimer = behind.claimer(1)
        behind.view.refresh()
        trial = behind.view.trial(0)
        assert trial is not None
        got = claimer._next_attempt(trial)
        assert got is not None
        point, seed, attempt = got.point, got.seed, got.attempt
    else:
        taken = take(behind.store, {"x": 0.9}, study="s", trial=0, goal="min", attempt=2)
        assert taken is not None
        point, seed, attempt = taken.point, taken.seed, taken.attempt
    assert (point, seed, attempt) == ({"x": 0.5}, owner.seed, 2)


def test_a_trial_removed_by_hand_just_before_its_rescue_is_nobodys() -> None:
    backend = MemoryBackend()
    study = study_on(backend, 1)
    plant(study.store, study.view.keys.attempt(0, 0), b"")
    study.view.notes.release(0, 0, None)
    claimer = study.claimer(1)
    study.view.refresh()
    trial = study.view.trial(0)
    assert trial is not None
    assert backend.delete(study.view.keys.attempt(0, 0))
    assert claimer._next_attempt(trial) is None
    got = claimer.step()
    assert isinstance(got, Attempt)
    assert (got.n, got.attempt) == (0, 0)
