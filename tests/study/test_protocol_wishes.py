"""A wish is served once, by whoever comes across it: cases the simulator found."""

from __future__ import annotations

from typing import Any

from tests.parts import FakeMachine, plant, store_over

from dibs import Float, Space, Study
from dibs.backend import MemoryBackend
from dibs.study._attempt import Attempt
from dibs.study._claimer import Claimer, Idle

SPACE = Space(x=Float(0, 1))


def study_on(backend: MemoryBackend, pid: int) -> Study:
    return Study(store_over(backend, FakeMachine(pid)), "s", SPACE, goal="min", seed=0)


def claim(claimer: Claimer) -> Attempt:
    got = claimer.step()
    assert isinstance(got, Attempt)
    return got


def carriers(study: Study) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for n, seens in study.view.attempts.items():
        record = seens[0].record
        if record is not None and record.wish:
            found.setdefault(record.wish, []).append(n)
    return found


def two_points(study: Study) -> tuple[dict[str, Any], dict[str, Any]]:
    """Points of two wishes, the first one's digest sorting first."""
    scratch = study_on(MemoryBackend(), 9)
    for x in (0.25, 0.75):
        scratch.enqueue({"x": x})
    scratch.results()
    first, second = (point for _, point in sorted(scratch.view.wishes().items()))
    return first, second


def test_a_wish_found_carried_on_the_walk_for_another_is_not_served_again() -> None:
    backend = MemoryBackend()
    one, two = study_on(backend, 1), study_on(backend, 2)
    first, second = two_points(one)
    late, fast = two.claimer(6), one.claimer(6)
    late.view.refresh()  # nothing is claimed yet
    for n, point in enumerate((second, first)):
        one.enqueue(point)
        served = claim(fast)
        assert (served.n, served.point) == (n, point)
    late.view.notes.refresh()  # the notes alone
    assert late._serve_wish() is None  # loses 0, which carries the second wish, and 1, which carries the first
    one.results()
    assert sorted(carriers(one).values()) == [[0], [1]]


def test_no_wish_is_served_while_a_first_record_does_not_read() -> None:
    backend = MemoryBackend()
    study = study_on(backend, 1)
    plant(study.store, study.view.keys.attempt(0, 0), b"")  # a claim by mkdir whose record is on its way
    study.enqueue({"x": 0.5})
    claimer = study.claimer(1)
    assert claimer.step() == Idle("held")
    wider = study.claimer(3)
    assert claim(wider).point != {"x": 0.5}
    assert carriers(study) == {}


def test_a_wish_is_served_past_a_trial_that_was_rescued_unread() -> None:
    backend = MemoryBackend()
    study = study_on(backend, 1)
    plant(study.store, study.view.keys.attempt(0, 0), b"")
    study.view.notes.release(0, 0, None)
    claimer = study.claimer(3)
    assert claim(claimer).attempt == 1
    study.enqueue({"x": 0.5})
    assert claim(claimer).point == {"x": 0.5}
