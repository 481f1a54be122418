"""Scores and constraints asked for again, and written by hand: what was shown is rebuilt, and nobody is stopped."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.parts import FakeMachine, body_at, plant, store_over
from tests.study.goals import POOL, SPACE, Echo, a_study, key, run

from dibs import Sobol, Store, Study, UsageError
from dibs.backend import MemoryBackend
from dibs.search import _sampler
from dibs.study import finished
from dibs.study._definition import read_definition
from dibs.study._replay import replay
from dibs.study._view import view_of


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_sampler._KNOWN, Echo.name, Echo)


@pytest.fixture
def store() -> Store:
    return store_over()


# asked again


def test_every_trial_of_a_study_with_scores_and_constraints_is_replayed() -> None:
    bucket = MemoryBackend()
    study = a_study(store_over(bucket), sampler=Echo())
    study.attach({"x": 0.5, "y": 0.5}, [1, 2], constraints={"gb": 2})
    run(study, POOL)
    study.retry()
    run(study, [([3, 4], {"gb": 0.5}), [5, 6]], 9)
    store = store_over(bucket, FakeMachine(9))
    view = view_of(store, "s")
    view.refresh()
    for n in range(9):
        found = replay(view, read_definition(store, "s"), n)
        assert (n, found.matches) == (n, True), found.said


@pytest.mark.parametrize("sampler", ["auto", "gp", "tpe", "nsga2"])
@pytest.mark.parametrize("goal", ["max", ["min", "max"]], ids=str)
def test_whoever_learns_from_scores_and_constraints_is_replayed(sampler: str, goal: Any) -> None:
    bucket = MemoryBackend()
    study = a_study(store_over(bucket), sampler=sampler, goal=goal)
    for trial in study.trials(24):
        x, y = trial.point["x"], trial.point["y"]
        with trial:
            if trial.n == 5:
                raise ValueError
            trial.done(x * y if goal == "max" else [x, x * y], constraints={"sum": x + y - 1} if trial.n % 7 else None)
    assert len(study.front()) > 0
    store = store_over(bucket, FakeMachine(9))
    view = view_of(store, "s")
    view.refresh()
    for n in range(24):
        found = replay(view, read_definition(store, "s"), n)
        assert (n, found.matches) == (n, True), found.said


def test_another_score_or_constraint_is_another_history() -> None:
    """What the test above proves: it would see a score that was not shown."""
    for change in ({"scores": [1, 7]}, {"constraints": {"gb": 7}}):
        bucket = MemoryBackend()
        run(a_study(store_over(bucket), sampler=Echo()), [([1, 2], {"gb": -1}), [2, 3]])
        store = store_over(bucket, FakeMachine(9))
        plant(store, key(0), {**body_at(store, key(0)), **change})
        view = view_of(store, "s")
        view.refresh()
        assert replay(view, read_definition(store, "s"), 1).matches is False


# by hand

HAND = {
    "too few": {"scores": [1]}, "too many": {"scores": [1, 2, 3]}, "none": {"scores": None}, "empty": {"scores": []},
    "one score": {"score": 0.5, "scores": None}, "both": {"score": 0.5}, "a text": {"scores": ["a", "b"]}, "a word": {"scores": "ab"},
    "booleans": {"scores": [True, False]}, "one goal": {"goal": "min"}, "one goal and a score": {"goal": "min", "score": 0.5},
    "other goals": {"goal": ["min", "max", "min"], "scores": [1, 2, 3]}, "list of one": {"goal": ["min"]},
    "constraints a list": {"constraints": [1]}, "constraints of text": {"constraints": {"a": "b"}},
    "no constraints": {"constraints": {}}, "null": {"constraints": {"a": None}}, "goals of nonsense": {"goal": ["x", "y"]},
}  # fmt: skip


@pytest.mark.parametrize("change", HAND.values(), ids=HAND.keys())
@pytest.mark.parametrize("sampler", [Sobol(), Echo()], ids=["sobol", "echo"])
@pytest.mark.parametrize("attempt", [0, 1])
def test_a_record_written_by_hand_stops_no_reader(store: Store, change: Any, sampler: Any, attempt: int) -> None:
    from dibs.upkeep import check
    from dibs.view import Source, best_rows, front_rows, results_table, store_status, study_status, trial_detail

    study = a_study(store, sampler=sampler)
    run(study, [([1, 2], {"gb": -1}), [3, 4], [1, 1]])
    if attempt:
        plant(store, key(0, 1), {**body_at(store, key(0)), "attempt": 1})
        plant(store, key(0), {**body_at(store, key(0)), "state": "failed", "again": True})
    plant(store, key(0, attempt), {**body_at(store, key(0, attempt)), **change})
    late = store_over(store.backend, FakeMachine(2))
    reader = Study(late, "s")
    assert {1}.issubset(result.n for result in reader.front())
    assert [result.scores for result in reader.results()[1:]] == [(3.0, 4.0), (1.0, 1.0)]
    json.dumps([result._asdict() for result in reader.results()], default=str)
    assert all(len(score) == 2 for _, score in reader.finished() if score is not None)
    assert len(finished(late, SPACE, study="s")) == len(reader.finished())
    reader.in_flight()
    reader.status()
    source = Source.over(reader)
    for model in (study_status(source), store_status(late), trial_detail(source, 0, again=True)):
        json.dumps(model.to_json(), allow_nan=False)
    assert len(results_table(source)) == 3
    assert len(front_rows(source)) == len(reader.front())
    with pytest.raises(UsageError, match="2 goals"):
        best_rows(source)
    run(reader, [[5, 5], [6, 6]], 5)
    told = [finding for finding in check(late).findings if finding.fault]
    harmless = change in (HAND["both"], HAND["no constraints"])
    assert bool(told) is not harmless, told


@pytest.mark.parametrize(
    "odd", [{"goal": "min", "score": 0.5}, {"goal": ["min", "max", "min"], "scores": [1, 2, 3]}], ids=str
)
def test_a_copy_of_another_goal_in_a_roll_hides_no_other(odd: dict[str, Any]) -> None:
    bucket = MemoryBackend()
    study = a_study(store_over(bucket))
    study.view.rolls.threshold = 4
    run(study, POOL)
    (name, *_) = bucket.names("study/s/roll/0/")
    store = store_over(bucket, FakeMachine(2))
    body = body_at(store, f"study/s/roll/0/{name}")
    first = next(iter(body["records"]))
    body["records"][first].update(odd)
    plant(store, f"study/s/roll/0/{name}", body)
    wanted = [result for result in study.results() if f"{result.n}-0" != first]
    assert [result for result in Study(store, "s").results() if f"{result.n}-0" != first] == wanted


@pytest.mark.parametrize(
    "change",
    [
        {"scores": None}, {"scores": ["x", 1]}, {"scores": [True, 1]}, {"scores": {}}, {"scores": [1]}, {"scores": [1, 2, 3]},
        {"score": 1.0}, {"score": "1"}, {"constraints": [1]}, {"constraints": {"a": "x"}}, {"scores": [10**400, 1]},
    ],
    ids=lambda change: str(change)[:30],
)  # fmt: skip
def test_an_attached_result_written_by_hand_stops_nobody(store: Store, change: dict[str, Any]) -> None:
    study = a_study(store, sampler=Echo())
    study.attach({"x": 0.5, "y": 0.5}, [1, 2])
    (name,) = store.backend.names("study/s/given/")
    body = body_at(store, f"study/s/given/{name}")
    plant(store, f"study/s/given/{name}", {**body, **change})
    late = Study(store_over(store.backend, FakeMachine(2)), "s")
    run(late, [[1, 2], [2, 1]])
    assert len(late.front()) == 1
    assert all(score in (None, (1.0, 2.0), (2.0, 1.0)) for _, score in late.finished())
