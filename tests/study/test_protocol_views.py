"""What a reader that holds an old view must not lose: found by the simulator, each kept as a case of its own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.parts import FakeMachine, store_over

from dibs import Float, Space, Study
from dibs.backend import Backend, MemoryBackend, Object, WrapperBackend
from dibs.errors import StoreError
from dibs.study._attempt import Attempt

SPACE = Space(x=Float(0, 1))


class Failing(WrapperBackend):
    """Reads of some keys fail, or find nothing, as often as the test says."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.fails: dict[str, int] = {}
        self.hides: dict[str, int] = {}

    def read(self, key: str) -> Object | None:
        for counts in (self.fails, self.hides):
            if counts.get(key, 0) > 0:
                counts[key] -= 1
                if counts is self.fails:
                    raise StoreError("input/output error", key=key)
                return None
        return super().read(key)


def study_on(backend: Backend, pid: int = 1) -> Study:
    return Study(store_over(backend, FakeMachine(pid)), "s", SPACE, goal="min", seed=0)


def claim(study: Study, of: int) -> Attempt:
    got = study.claimer(of).step()
    assert isinstance(got, Attempt)
    return got


def states(study: Study) -> list[Any]:
    return [(result.n, result.attempt, result.state) for result in study.results()]


@pytest.mark.parametrize("bucket", [False, True])
def test_a_name_whose_read_failed_is_read_at_the_next_look(bucket: bool) -> None:
    backend = MemoryBackend(conditional_replace=bucket)
    failing = Failing(backend)
    reader, writer = study_on(failing, 1), study_on(backend, 2)
    first = claim(writer, 3)
    states(reader)
    first.close("interrupted")
    claim(writer, 3).close("done", score=1.0)
    claim(writer, 3).close("done", score=2.0)
    failing.fails = {reader.view.keys.attempt(0, 1): 1, reader.view.keys.attempt(1, 0): 2}
    for _ in failing.fails.copy(), None:
        with pytest.raises(StoreError):
            reader.results()
    with pytest.raises(StoreError):
        reader.results()
    assert states(reader) == [(0, 1, "done"), (1, 0, "done")]


def test_a_name_that_shows_before_its_record_is_told_again() -> None:
    backend = MemoryBackend()
    behind = Failing(backend)
    reader, writer = study_on(behind, 1), study_on(backend, 2)
    claim(writer, 2).close("done", score=1.0)
    behind.hides = {reader.view.keys.attempt(0, 0): 1}
    assert states(reader) == []
    reader.store.machine.clock.now += 61.0  # type: ignore[attr-defined]
    assert states(reader) == [(0, 0, "done")]


def test_a_record_removed_by_hand_and_claimed_anew_is_seen() -> None:
    backend = MemoryBackend()
    reader, writer = study_on(backend, 1), study_on(backend, 2)
    claim(writer, 1).close("interrupted")
    again = claim(writer, 1)
    states(reader)
    key = reader.view.keys.attempt(0, 1)
    assert again.attempt == 1
    assert backend.delete(key)
    reader.store.machine.clock.now += 61.0  # type: ignore[attr-defined]
    assert states(reader) == [(0, 0, "interrupted")]
    claim(study_on(backend, 3), 1).close("done", score=1.0)
    assert states(reader) == [(0, 1, "done")]


def test_a_roll_that_holds_two_attempts_of_a_released_trial() -> None:
    """The first attempt alone would be a plain row, and the release note made it the only one again."""
    backend = MemoryBackend()
    writer = study_on(backend, 1)
    claim(writer, 1).close("failed", reason="first")
    assert writer.retry() == [0]
    claim(writer, 1).close("done", score=1.0)
    writer.view.rolls.threshold = 1
    writer.view.publish(None)
    assert [entry.key for entry in backend.list("study/s/roll/")] != []
    fresh = study_on(backend, 2)
    assert states(fresh) == [(0, 1, "done")]
    fresh.retry()
    assert states(fresh) == [(0, 1, "done")]


def test_an_attempt_closed_while_others_are_open_on_a_bucket() -> None:
    """Without hints the open attempts are walked, and one's own is taken over on the way."""
    backend = MemoryBackend(conditional_replace=True)
    study = study_on(backend, 1)
    attempts = [claim(study, 5) for _ in range(5)]
    attempts[2].close("done", score=1.0)
    study.view._mine[2, 0] = attempts[2]  # as if the close had found a refresh on its way
    study.view._open[2, 0] = ""
    assert [state for _, _, state in states(study)] == ["running", "running", "done", "running", "running"]
