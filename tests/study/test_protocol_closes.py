"""A close whose answer was lost: who learns what, and when. Cases the simulator found."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.parts import FakeMachine, store_over

from dibs import Float, Space, Study
from dibs.backend import Backend, Draft, MemoryBackend, Outcome, WrapperBackend
from dibs.errors import AlreadyClosed, StoreError, UnsureError
from dibs.study._attempt import Attempt

SPACE = Space(x=Float(0, 1))


class Mute(WrapperBackend):
    """Once mute: a replace of a record happens, its answer is lost, and nothing can be read; then all is well."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.mute = False

    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        outcome = super().replace(key, draft, version)
        if self.mute and "/trial/" in key:
            draft.spent = False
            return Outcome.UNSURE
        return outcome

    def read(self, key: str):  # type: ignore[no-untyped-def]
        held = super().read(key)
        if self.mute and held is not None and b'"state":"done"' in held.data:
            raise StoreError("no answer", key=key)
        return held


def unsure_close(bucket: bool) -> tuple[Study, Mute, Attempt]:
    """An attempt whose close landed without its owner being told."""
    backend = Mute(MemoryBackend(conditional_replace=bucket))
    study = Study(store_over(backend, FakeMachine(1)), "s", SPACE, goal="min", seed=0)
    attempt = study.claimer(2).step()
    assert isinstance(attempt, Attempt)
    backend.mute = True
    with pytest.raises(UnsureError):
        attempt.close("done", score=1.0)
    backend.mute = False
    return study, backend, attempt


class LateClaim(WrapperBackend):
    """The first claim is repeated on its way, and the second copy arrives when the name is claimed again."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.late: list[tuple[str, Draft]] = []

    def create(self, key: str, draft: Draft) -> Outcome:
        if "/trial/" in key:
            for old in self.late:
                super().create(*old)
            self.late = [(key, draft)]
        return super().create(key, draft)


def test_a_claim_that_comes_back_late_is_not_taken_for_the_close() -> None:
    """The name was removed by hand, and an old write of the owner landed in the moment it claimed it again."""
    backend = LateClaim(MemoryBackend(conditional_replace=True))
    study = Study(store_over(backend, FakeMachine(1)), "s", SPACE, goal="min", seed=0)
    attempt = study.claimer(2).step()
    assert isinstance(attempt, Attempt)
    backend.delete(study.view.keys.attempt(0, 0))
    attempt.close("done", score=1.0)
    fresh = Study(store_over(backend, FakeMachine(2)), "s", SPACE, goal="min", seed=0)
    assert [(result.state, result.score) for result in fresh.results()] == [("done", 1.0)]


class Full(WrapperBackend):
    """A disk on which nothing new has room until ``room_at``; what is there can be touched."""

    def __init__(self, inner: Backend, machine: FakeMachine) -> None:
        super().__init__(inner)
        self.clock = machine.clock
        self.room_at = 0.0
        self.touched: list[float] = []

    def stage(self, data: Any, *, durable: bool = False) -> Draft:
        if self.clock.monotonic() < self.room_at:
            raise StoreError("the disk is full")
        return super().stage(data, durable=durable)

    def touch(self, key: str) -> None:
        self.touched.append(self.clock.monotonic())
        super().touch(key)


def test_who_waits_for_room_to_close_still_beats() -> None:
    """Its own beats wait for the lock that the close holds: it would be taken for dead, and its trial run twice."""
    machine = FakeMachine(1)
    backend = Full(MemoryBackend(), machine)
    study = Study(store_over(backend, machine), "s", SPACE, goal="min", seed=0, stale_s=6.0)
    attempt = study.claimer(1).step()
    assert isinstance(attempt, Attempt)
    assert attempt.beat_s == 1.0
    began = machine.clock.monotonic()
    backend.room_at = began + 4.0
    attempt.close("done", score=1.0)
    moments = [began, *backend.touched, machine.clock.monotonic()]
    assert moments[-1] >= began + 4.0
    assert max(later - earlier for earlier, later in itertools.pairwise(moments)) <= 1.0


@pytest.mark.parametrize("bucket", [False, True])
def test_the_same_close_again_finds_itself_written(bucket: bool) -> None:
    study, _, attempt = unsure_close(bucket)
    attempt.close("done", score=1.0)
    assert attempt.closed
    assert [(result.state, result.score) for result in study.results()] == [("done", 1.0)]


@pytest.mark.parametrize("bucket", [False, True])
def test_another_close_is_refused_and_the_process_sees_the_first(bucket: bool) -> None:
    """The view kept what the owner held in hand: running, for as long as the process lived."""
    study, _, attempt = unsure_close(bucket)
    with pytest.raises(AlreadyClosed):
        attempt.close("interrupted")
    assert [(result.state, result.score) for result in study.results()] == [("done", 1.0)]


@pytest.mark.parametrize("bucket", [False, True])
def test_an_owner_that_gives_up_sees_what_landed(bucket: bool) -> None:
    study, _, _ = unsure_close(bucket)
    study.store.machine.clock.now += 61.0  # type: ignore[attr-defined]
    assert [(result.state, result.score) for result in study.results()] == [("done", 1.0)]
