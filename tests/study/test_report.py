"""What report makes of a curve, and what others see of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parts import FakeMachine, body_at, store_over

from dibs import Float, Int, Space, Store, Study, UsageError
from dibs.study import finished, in_flight, report, take
from dibs.study._within import Within

POINT = {"x": 0.5}


@pytest.fixture
def store() -> Store:
    store = store_over()
    take(store, POINT, study="spam", trial=0, goal="min")
    return store


def told(store: Store, curve: Any, state: str = "done", **more: Any) -> bool:
    return report(store, POINT, curve, study="spam", trial=0, state=state, **more)


def record(store: Store) -> dict[str, Any]:
    return body_at(store, store.keys("spam").attempt(0, 0))


def blob(store: Store) -> dict[str, Any]:
    digest = record(store)["blob"]
    return body_at(store, f"blobs/{digest[:2]}/{digest}")


def live(store: Store) -> dict[str, Any] | None:
    key = store.keys("spam").live(0, 0)
    return body_at(store, key) if store.backend.read(key) else None


@pytest.mark.parametrize(
    ("curve", "score", "step"),
    [
        ([0.5], 0.5, 0),
        ([0.9, 0.7, 0.8], 0.8, 2),  # the last, not the best
        ([(0, 0.9), (10, 0.7)], 0.7, 10),
        ([(10, 0.7), (0, 0.9)], 0.7, 10),  # the last step
        ([(5, 0.9), (5, 0.7)], 0.7, 5),  # the same step twice: the last counts
        ([[3, 0.25]], 0.25, 3),
        (np.array([0.9, 0.5]), 0.5, 1),
        ((score for score in (3, 2)), 2.0, 1),
        ([np.float32(0.5)], 0.5, 0),
        ([(np.int64(4), np.float64(0.5))], 0.5, 4),
        ([math.nan, 0.5], 0.5, 1),
        ([1], 1.0, 0),
    ],
)
def test_the_last_value_is_the_score(store: Store, curve: Any, score: float, step: int) -> None:
    told(store, curve)
    found = record(store)
    assert (found["state"], found["score"], found["step"], found["reason"]) == ("done", score, step, None)
    assert type(found["score"]) is float


@pytest.mark.parametrize(
    ("curve", "says"),
    [
        ([], "nothing was reported"),
        ([0.5, math.nan], "finite"),
        ([math.inf], "finite"),
        ([0.5, -math.inf], "finite"),
        ([None], "NoneType"),
        ([0.5, None], "NoneType"),
        (["0.25"], "str"),
        ([0.5, "0.25"], "str"),
        ([(0, 0.5), (1, None)], "NoneType"),
        ([True], "bool"),
        ([0.5, {"loss": 1}], "dict"),
        ([0.5, np.array([1.0, 2.0])], "ndarray"),
        ([0.5, 1j], "complex"),
    ],
)
def test_done_with_no_number_to_show_for_it_is_failed_with_the_reason(store: Store, curve: Any, says: str) -> None:
    told(store, curve)
    found = record(store)
    assert (found["state"], found["score"], found["again"]) == ("failed", None, False)
    assert says in found["reason"]
    assert list(finished(store, study="spam")) == []


@pytest.mark.parametrize("state", ["pruned", "failed", "interrupted"])
@pytest.mark.parametrize("curve", [[], [math.nan], [0.5, None], [0.5, "x"]])
def test_other_ends_need_no_number(store: Store, state: str, curve: Any) -> None:
    told(store, curve, state, reason="said so")
    found = record(store)
    assert (found["state"], found["score"], found["reason"]) == (state, None, "said so")


def test_a_pruned_trial_keeps_its_score_and_a_failed_one_has_none(store: Store) -> None:
    told(store, [0.9, 0.5], "pruned", reason="worse than the median")
    assert (record(store)["score"], record(store)["step"]) == (0.5, 1)
    take(store, POINT, study="spam", trial=1, goal="min")
    report(store, POINT, [0.9, 0.5], study="spam", trial=1, state="failed")
    found = body_at(store, store.keys("spam").attempt(1, 0))
    assert (found["score"], found["step"]) == (None, 1)


@pytest.mark.parametrize(
    "curve",
    [
        0.5,
        None,
        "0.5",
        b"0.5",
        [None, 0.5],
        ["a", 0.5],
        [(0, 1, 2)],
        [(-1, 0.5)],
        [(0.5, 0.5)],
        [("0", 0.5)],
        [(True, 0.5)],
    ],
)
@pytest.mark.parametrize("state", ["running", "done"])
def test_what_is_no_curve_is_refused_and_the_trial_stays_open(store: Store, curve: Any, state: str) -> None:
    with pytest.raises(UsageError):
        told(store, curve, state)
    assert record(store)["state"] == "running"
    told(store, [0.5])
    assert record(store)["score"] == 0.5


@pytest.mark.parametrize("last", [None, "x", True])
def test_while_running_a_value_that_is_no_number_is_the_callers_mistake(store: Store, last: Any) -> None:
    with pytest.raises(UsageError, match="score must be a number"):
        told(store, [0.5, last], "running")


@pytest.mark.parametrize("state", ["finished", "", None, "DONE", 1])
def test_only_the_states_there_are(store: Store, state: Any) -> None:
    with pytest.raises(UsageError, match="running, done, pruned, failed or interrupted"):
        told(store, [0.5], state)


# the blob


def test_a_whole_curve_goes_to_a_blob_with_its_nans_as_words(store: Store) -> None:
    told(store, [(0, 0.9), (3, math.nan), (5, math.inf), (6, -math.inf), (9, 0.5)])
    assert blob(store) == {
        "v": 1, "kind": "trial-blob", "curve": [[0, 0.9], [3, "nan"], [5, "inf"], [6, "-inf"], [9, 0.5]],
        "traceback": None,
    }  # fmt: skip


def test_one_value_needs_no_blob(store: Store) -> None:
    told(store, [0.5])
    assert record(store)["blob"] is None
    assert list(store.backend.list("blobs/")) == []


def test_a_failed_one_keeps_its_curve(store: Store) -> None:
    told(store, [0.9, 0.8, math.nan])
    assert blob(store)["curve"] == [[0, 0.9], [1, 0.8], [2, "nan"]]


# while it runs


def test_a_running_curve_is_shown_at_most_once_a_second(store: Store) -> None:
    machine = store.machine
    assert isinstance(machine, FakeMachine)
    told(store, [0.9], "running")
    assert live(store) is None
    machine.clock.now += 1.5
    told(store, [0.9, 0.8], "running")
    shown = live(store)
    assert shown == {"v": 1, "kind": "live", "curve": [[0, 0.9], [1, 0.8]], "nonce": record(store)["nonce"]}
    machine.clock.now += 0.5
    told(store, [0.9, 0.8, 0.7], "running")
    assert live(store) == shown
    machine.clock.now += 0.6
    told(store, [0.9, 0.8, math.nan], "running")
    assert live(store) == {**shown, "curve": [[0, 0.9], [1, 0.8], [2, "nan"]]}
    told(store, [0.9, 0.8, 0.7])
    assert live(store) is None, "whoever closes it removes it"
    assert blob(store)["curve"] == [[0, 0.9], [1, 0.8], [2, 0.7]]


def test_a_running_report_moves_the_record_and_rewrites_nothing(tmp_path: Path) -> None:
    store = Store.over(Store(tmp_path / "store").backend, FakeMachine())
    take(store, POINT, study="spam", trial=0, goal="min")
    there = store.backend.read(store.keys("spam").attempt(0, 0))
    assert isinstance(store.machine, FakeMachine)
    store.machine.clock.now += 2
    told(store, [0.5], "running")
    moved = store.backend.read(store.keys("spam").attempt(0, 0))
    assert there is not None
    assert moved is not None
    assert moved.data == there.data
    assert moved.modified > there.modified


# what others see


def test_the_histories_of_a_study(store: Store) -> None:
    for n, (state, curve) in enumerate(
        [("done", [3.0]), ("pruned", [2.0]), ("failed", []), ("interrupted", [])], start=1
    ):
        take(store, {"x": n / 10}, study="spam", trial=n, goal="min")
        report(store, {"x": n / 10}, curve, study="spam", trial=n, state=state)
    take(store, {"x": 0.9, "y": 1}, study="spam", trial=9, goal="min")
    done, running = finished(store, study="spam"), in_flight(store, study="spam")
    assert list(done) == [({"x": 0.1}, 3.0)]
    assert list(running) == [({"x": 0.5}, None), ({"x": 0.9, "y": 1}, None)]
    assert list(done.n) == [1]
    assert list(running.n) == [0, 9]
    both = done + running
    assert [point["x"] for point, _ in both] == [0.5, 0.1, 0.9]


def test_with_a_space_only_points_of_its_parameters(store: Store) -> None:
    take(store, {"x": 0.9, "y": 1}, study="spam", trial=1, goal="min")
    assert len(in_flight(store, Space(x=Float(0, 1)), study="spam")) == 1
    assert len(in_flight(store, Space(x=Float(0, 1), y=Int(0, 2), z=Int(0, 2)), study="spam")) == 2


def test_what_is_left_keeps_its_indexes_and_what_was_looked_at_once_is_remembered(store: Store) -> None:
    space = Space(x=Float(0, 1))
    for n in range(1, 300):
        point = {"x": 0.5, "y": 1} if n % 3 == 0 else {"x": n / 300}
        take(store, point, study="spam", trial=n, goal="min")
        report(store, point, [float(n)], study="spam", trial=n, state="done")
        if n in (1, 2, 3, 150, 299):
            ours = [k for k in range(1, n + 1) if k % 3]
            for _ in range(2):
                done = finished(store, space, study="spam")
                assert list(done.n) == list(done.score) == ours
                assert all(point.keys() == {"x"} for point in done.points)
                assert set(done.state) == {1}
            assert len(finished(store, Space(x=Float(0, 1), y=Int(0, 2)), study="spam")) == n
    take(store, POINT, study="spam", trial=10**9, goal="min")
    report(store, POINT, [0.5], study="spam", trial=10**9, state="done")
    assert list(finished(store, space, study="spam").n) == [*ours, 10**9]
    assert len(store.kept["within", "spam", space.names]._foreign) < 1000, "an index far away costs no memory"


def test_a_settled_trial_is_looked_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    has = Within._has
    monkeypatch.setattr(Within, "_has", lambda self, point: looked.append(point) or has(self, point))
    space = Space(x=Float(0, 1))
    for n in range(1, 20):
        take(store, POINT, study="spam", trial=n, goal="min")
        report(store, POINT, [float(n)], study="spam", trial=n, state="done")
        assert len(finished(store, space, study="spam")) == n
    assert len(looked) == 19


def test_points_of_another_space_cost_nothing_until_somebody_looks(store: Store) -> None:
    space = Space(x=Float(0, 1))
    kept = []
    for n in range(1, 60):
        point = {"x": 0.5, "y": 1} if n % 3 == 0 else {"x": n / 60}
        take(store, point, study="spam", trial=n, goal="min")
        state = "pruned" if n % 5 == 0 else "failed" if n % 7 == 0 else "done"
        report(store, point, [float(n)], study="spam", trial=n, state=state)
        kept.append(finished(store, space, study="spam"))
        assert kept[-1]._make is not None, "put together by nobody yet"
    Study(store, "spam", space, goal="min").retry(7)  # a row that moves out of the table
    after = finished(store, space, study="spam")
    for n, history in enumerate([*kept, after], start=1):
        wanted = [k for k in range(1, min(n, 59) + 1) if k % 3 and k % 5 and k % 7]
        assert len(history) == len(wanted)
        assert history.n.tolist() == wanted
        assert history.score.tolist() == wanted


def test_attached_results_of_another_space_are_left_out(store: Store) -> None:
    study = Study(store, "spam", Space(x=Float(0, 1), y=Int(0, 2)), goal="min")
    study.attach({"x": 0.25, "y": 1}, 1.0)
    assert list(finished(store, Space(x=Float(0, 1)), study="spam")) == []
    assert list(finished(store, study.space, study="spam").n) == [-1]


def test_a_study_of_nobody_is_empty(store: Store) -> None:
    assert list(finished(store, study="nobodys")) == []
    assert list(in_flight(store, study="nobodys")) == []


def test_the_readme_loop(tmp_path: Path) -> None:
    from dibs.search import Sobol

    store, space, sampler = Store(tmp_path / "store"), Space(x=Float(0, 1)), Sobol(seed=0)
    for trial in range(8):
        history = finished(store, space, study="loop") + in_flight(store, space, study="loop")
        point = sampler.ask(space, trial, history)
        assert point is not None
        if not take(store, point, study="loop", trial=trial, me="a", goal="min"):
            continue
        report(store, point, [1.0, point["x"]], study="loop", trial=trial, me="a", state="done", goal="min")
    study = Study(store, "loop")
    assert [r.n for r in study.results("done")] == list(range(8))
    assert study.best().score == min(r.point["x"] for r in study.results())
