"""On a bucket every record read is a request: a worker whose sampler needs no history asks only which names are taken.

What it leaves unread it reads when it matters: at the end, for a wish, for a release, and now and then for a roll.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.parts import FakeMachine, store_over

from dibs import Float, Random, Space, Study
from dibs.backend import CountingBackend, Draft, MemoryBackend, Outcome, WrapperBackend
from dibs.search import History
from dibs.study import _claimer
from dibs.study._attempt import Attempt
from dibs.study._gallop import Gallop
from dibs.study._run import summary_of

SPACE = Space(x=Float(0, 1))


class Learner(Random):
    """Draws as random does and wants to see what others found."""

    name = "tests-learner"
    needs_history = True
    seen: History

    def ask(self, space: Space, n: int, history: Any = ()) -> Any:
        type(self).seen = History.coerce(history)
        return super().ask(space, n)


def worker(bucket: MemoryBackend, pid: int, sampler: Any = "sobol") -> tuple[Study, CountingBackend]:
    backend = CountingBackend(bucket)
    return Study(store_over(backend, FakeMachine(pid)), "s", SPACE, goal="min", seed=0, sampler=sampler), backend


def claimed(study: Study, trials: int, count: int = 1) -> list[Attempt]:
    claimer = study.claimer(trials)
    found = [claimer.step() for _ in range(count)]
    assert all(isinstance(attempt, Attempt) for attempt in found)
    return found  # type: ignore[return-value]


@pytest.fixture
def bucket() -> MemoryBackend:
    return MemoryBackend(conditional_replace=True)


@pytest.fixture(autouse=True)
def no_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_claimer, "SWEEPERS", 1 << 64)


def test_nobodys_record_is_read_for_a_sampler_that_needs_none(bucket: MemoryBackend) -> None:
    theirs, _ = worker(bucket, 1)
    claimed(theirs, 500, 300)
    ours, counting = worker(bucket, 2)
    claimer = ours.claimer(500)
    counting.reset()
    for n in (300, 301):
        attempt = claimer.step()
        assert isinstance(attempt, Attempt)
        assert attempt.n == n
    assert counting.counts["read"] < 10  # rolls and notes
    assert ours.view.partial
    assert len(ours.results()) == 302
    assert not ours.view.partial
    assert len(ours.in_flight()) == 302


def test_one_that_learns_reads_the_newest_and_some_others(bucket: MemoryBackend) -> None:
    theirs, _ = worker(bucket, 1, Learner())
    claimed(theirs, 500, 300)
    ours, counting = worker(bucket, 2, Learner())
    claimer = ours.claimer(500)
    counting.reset()
    claimer.step()
    assert 64 <= counting.counts["read"] <= 64 + 8 + 10
    assert set(range(240, 300)) <= set(Learner.seen.n.tolist())
    counting.reset()
    claimer.step()
    assert counting.counts["read"] < 20 + 8 + 10, "the listing, of the last block, shows that they have not changed"


def test_what_was_left_unread_is_taken_up_in_the_end(bucket: MemoryBackend) -> None:
    theirs, _ = worker(bucket, 1)
    attempts = claimed(theirs, 10, 5)
    attempts[1].close("interrupted", reason="r")
    attempts[2].close("done", score=1.0)
    ours, _ = worker(bucket, 2)
    claimer = ours.claimer(10)
    found = []
    while isinstance(got := claimer.step(), Attempt):
        found.append((got.n, got.attempt))
        got.close("done", score=0.0)
    assert found == [*((n, 0) for n in range(5, 10)), (1, 1)]
    assert got.why == "held"
    for attempt in (attempts[0], attempts[3], attempts[4]):
        attempt.close("done", score=1.0)
    assert claimer.step() == _claimer.Idle("settled")


def test_a_wish_that_somebody_carries_unread_is_not_served_twice(bucket: MemoryBackend) -> None:
    theirs, _ = worker(bucket, 1)
    claimed(theirs, 10, 3)
    ours, _ = worker(bucket, 2)
    assert claimed(ours, 10)[0].n == 3
    theirs.enqueue({"x": 0.25})
    theirs.view.names.look_again()
    ours.view.names.look_again()
    wished = claimed(theirs, 10)[0]
    assert wished.wish is not None
    assert claimed(ours, 10)[0].wish is None


def test_a_release_of_a_trial_left_unread_counts(bucket: MemoryBackend) -> None:
    theirs, _ = worker(bucket, 1)
    claimed(theirs, 10, 3)
    ours, _ = worker(bucket, 2)
    theirs.rescue(stale_s=-0.0)
    ours.view.refresh(most=0)
    theirs.view.notes.release(1, 0, None)
    ours.view.names.look_again()
    assert (claimed(ours, 10)[0].n, ours.view.trial(1) is not None) == (1, True)


def test_somebody_reads_what_all_left_unread_and_puts_it_into_a_roll(
    bucket: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, _ = worker(bucket, 1)
    theirs.view.rolls.threshold = 10**9
    for attempt in claimed(theirs, 500, 80):
        attempt.close("done", score=1.0)
    ours, _ = worker(bucket, 2)
    ours.view.rolls.threshold = 64
    claimed(ours, 500)
    assert list(bucket.list("study/s/roll/")) == []
    monkeypatch.setattr(_claimer, "SWEEPERS", 1)
    claimed(ours, 500)
    assert len(list(bucket.list("study/s/roll/"))) == 1


def test_a_folder_knows_no_thrift() -> None:
    backend = MemoryBackend()
    theirs, _ = worker(backend, 1)
    claimed(theirs, 10, 3)
    ours, _ = worker(backend, 2)
    claimed(ours, 10)
    assert not ours.view.partial
    assert len(ours.view) == 4


def test_a_crowd_that_nobody_has_read_spreads_out(bucket: MemoryBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is running is not known where only names were read: the width must not be that of an empty study."""
    theirs, _ = worker(bucket, 1)
    claimed(theirs, 5000, 300)
    ours, _ = worker(bucket, 2)
    claimer = ours.claimer(5000)
    claimed(ours, 5000)
    widths: list[int] = []

    def gallop(taken: Any, start: int, below: int, running: Any, *more: Any) -> Gallop:
        widths.append(running())
        return Gallop(taken, start, below, running, *more)

    monkeypatch.setattr(_claimer, "Gallop", gallop)
    assert isinstance(claimer.step(), Attempt)
    assert ours.view.partial
    assert widths[0] >= _claimer.UNREAD_CROWD
    assert len(ours.results()) == 302  # everything read
    assert isinstance(claimer.step(), Attempt)
    assert widths[-1] < 400


def test_a_listing_is_not_kept_beyond_the_look_it_was_made_for(bucket: MemoryBackend) -> None:
    """It is as long as the study, and each worker of thousands would hold one."""
    theirs, _ = worker(bucket, 1, Learner())
    claimed(theirs, 1000, 300)
    ours, _ = worker(bucket, 2, Learner())
    claimed(ours, 1000)
    assert 300 in ours.view.names
    assert not ours.view.names.listed


class Overtaken(WrapperBackend):
    """For a while somebody else is always a moment faster."""

    times = 6

    def create(self, key: str, draft: Draft) -> Outcome:
        if "/trial/" in key and self.times > 0:
            self.times -= 1
            self.inner.create(key, self.inner.stage(b"{}"))
        return super().create(key, draft)


@pytest.mark.parametrize("conditional", [False, True])
def test_who_loses_again_and_again_does_not_go_back_to_where_all_others_are(
    conditional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Overtaken(MemoryBackend(conditional_replace=conditional))
    study = Study(store_over(backend, FakeMachine(1)), "s", SPACE, goal="min", seed=0, sampler="sobol")
    rows: list[int] = []

    class Counted(Gallop):
        def next(self) -> int | None:
            rows.append(self.row)
            return super().next()

    monkeypatch.setattr(_claimer, "Gallop", Counted)
    assert isinstance(study.claimer(1000).step(), Attempt)
    assert rows == [0, 1, 2, 3, 4, 5, 6]


def test_the_end_of_a_run_knows_what_others_took_up_meanwhile(bucket: MemoryBackend) -> None:
    """Second attempts are looked for now and then only, where none were; but a run that says "held" sends a person away."""
    ours, _ = worker(bucket, 1)
    theirs, _ = worker(bucket, 2)
    (first,) = claimed(theirs, 1)
    ours.view.refresh()
    first.close("interrupted", reason="SIGTERM")
    (second,) = claimed(theirs, 1)
    assert second.attempt == 1
    second.close("done", score=0.5)
    summary = summary_of(ours, 1)
    assert (summary.why, summary.unfinished, summary.states) == ("settled", False, {"done": 1})
