"""Studies with several goals, and with constraints: what goes in comes out, everywhere, and what cannot be meant is told."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.parts import FakeMachine, body_at, plant, store_over
from tests.study.goals import FRONT, GOAL, POOL, SPACE, a_study, key, run

from dibs import AlreadyClosed, Choice, Float, NoResult, Random, RefusedError, Space, Store, Study, UsageError
from dibs._canon import digest
from dibs.backend import MemoryBackend
from dibs.record import TrialRecord
from dibs.study import finished, in_flight, report, take
from dibs.study._definition import read_definition
from dibs.study._table import Table


@pytest.fixture
def store() -> Store:
    return store_over()


# what a study is


def test_several_goals_are_kept_in_order_and_joined(store: Store) -> None:
    assert a_study(store).goal == ("min", "max")
    assert body_at(store, "study/s/study.json")["goal"] == GOAL
    for said in (GOAL, tuple(GOAL), None):
        assert Study(store, "s", goal=said).goal == ("min", "max")
    assert Study(store, "s").definition == read_definition(store, "s")


@pytest.mark.parametrize("other", ["min", ["max", "min"], ["min", "max", "min"]], ids=str)
def test_who_joins_with_other_goals_is_refused_with_both(store: Store, other: Any) -> None:
    a_study(store)
    with pytest.raises(RefusedError, match=r"goal = \('min', 'max'\), and you say") as told:
        Study(store, "s", SPACE, goal=other)
    ours = tuple(other) if isinstance(other, list) else other
    assert (told.value.field, told.value.theirs, told.value.ours) == ("goal", ("min", "max"), ours)
    with pytest.raises(RefusedError, match="you say"):
        take(store, {"x": 0.1, "y": 0.1}, study="s", trial=0, goal=other)


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        ([], "0 goals"), (["min"], "write goal='min'"), (["min", "MAX"], "'MAX'"), (["min", None], "None"), ("min,max", "min,max"),
        ({"min", "max"}, "goal"), (["min"] * 9, "9 goals"), ([["min"], "max"], "min"), (np.array(["min", "max"]), "goal"),
        (b"min", "goal"), (True, "goal"), (["min"] * 100_000, "goal"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, set) else str(value)[:20],
)  # fmt: skip
def test_goals_that_cannot_be_meant_make_no_store(tmp_path: Path, goal: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says) as told:
        Study(tmp_path / "store", "s", SPACE, goal=goal)
    assert len(str(told.value)) < 300
    with pytest.raises(UsageError, match=says):
        take(Store(tmp_path / "other"), {}, study="s", trial=0, goal=goal)
    assert not (tmp_path / "store").exists()


def test_a_pruner_is_refused_with_several_goals(store: Store) -> None:
    with pytest.raises(UsageError, match="a study of several goals has none"):
        a_study(store, pruner="median")
    assert store.studies() == []
    a_study(store)
    with pytest.raises(RefusedError, match="created without pruner"):
        Study(store, "s", pruner="median")


def test_a_sampler_for_one_goal_is_refused(store: Store) -> None:
    class Mine(Random):
        several: ClassVar[bool] = False

    with pytest.raises(UsageError, match=r"one goal, not 2.*sobol"):
        a_study(store, sampler=Mine())
    assert store.studies() == []


@pytest.mark.parametrize("change", [{"goal": ["min"]}, {"goal": []}, {"goal": ["min", 1]}, {"goal": {}}], ids=str)
def test_a_definition_with_no_such_goals_does_not_read(store: Store, change: Any) -> None:
    a_study(store)
    plant(store, "study/s/study.json", {**body_at(store, "study/s/study.json"), **change})
    with pytest.raises(Exception, match="not the definition of a study"):
        read_definition(store, "s")


def test_a_definition_with_a_pruner_beside_several_goals_is_read_and_not_run(store: Store) -> None:
    run(a_study(store), [[1, 2]])
    body = {**body_at(store, "study/s/study.json"), "pruner": {"name": "median", "version": 1, "args": {}}}
    plant(store, "study/s/study.json", body)
    again = Study(store, "s")
    assert len(again.front()) == 1
    with pytest.raises(UsageError, match="several goals has none"):
        next(again.trials(2))


def test_records_begun_by_functions_agree_with_the_goals(store: Store) -> None:
    assert take(store, {"x": 0.1, "y": 0.1}, study="s", trial=0, goal=GOAL) is not None
    assert Study(store, "s").goal == ("min", "max")
    with pytest.raises(RefusedError, match="goal"):
        a_study(store, goal="min")
    assert a_study(store).goal == ("min", "max")


# how a trial ends


def test_done_writes_scores_and_constraints(store: Store) -> None:
    run(a_study(store), [([0.5, np.float64(20)], {"gb": -0.5}), [1, 2]])
    body = body_at(store, key(0))
    assert (body["goal"], body["score"], body["scores"], body["constraints"]) == (GOAL, None, [0.5, 20.0], {"gb": -0.5})
    assert "constraints" not in body_at(store, key(1))
    first, second = Study(store, "s").results()
    assert (first.score, first.scores, first.constraints) == (None, (0.5, 20.0), {"gb": -0.5})
    assert (second.scores, second.constraints) == ((1.0, 2.0), None)


def test_with_one_goal_nothing_is_new_but_constraints(store: Store) -> None:
    study = a_study(store, goal="min")
    run(study, [0.5, (0.25, {"gb": 0.5})])
    plain, bound = body_at(store, key(0)), body_at(store, key(1))
    assert plain.keys() & {"scores", "constraints"} == set()
    assert (bound["score"], bound["constraints"], "scores" in bound) == (0.25, {"gb": 0.5}, False)
    assert [(each.score, each.scores) for each in study.results()] == [(0.5, (0.5,)), (0.25, (0.25,))]


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (0.5, "as a list: not float"),
        ([0.5], "not with 1"),
        ([0.5, math.nan], "score 2 of 2.*finite"),
        (([0.5, 1], {"gb": math.nan}), "constraint 'gb' must be finite"),
        (([0.5, 1], {3: 0.5}), "must be a text"),
        (([0.5, 1], [0.5]), "a mapping"),
    ],
)
def test_what_is_not_one_score_each_is_failed_with_the_reason(store: Store, end: Any, says: str) -> None:
    import re

    study = a_study(store)
    run(study, [end])
    (result,) = study.results()
    assert (result.state, result.scores, result.constraints) == ("failed", (), None)
    assert re.search(says, result.reason or "")
    assert body_at(store, key(0)).keys() & {"scores", "constraints"} == set()


def test_leaving_without_scores_is_failed_and_says_how_many(store: Store) -> None:
    study = a_study(store)
    for trial in study.trials(2):
        with trial:
            trial.report(0.5)  # a curve to look at is no score
            if trial.n:
                trial.report(0.25)
    assert {result.state for result in study.results()} == {"failed"}
    assert all("a trial ends with 2 scores" in (result.reason or "") for result in study.results())


def test_a_list_in_a_study_of_one_goal_is_failed_as_ever(store: Store) -> None:
    study = a_study(store, goal="min")
    run(study, [[0.5, 1]])
    assert "a score must be a number, not list" in (study.results()[0].reason or "")


def test_the_objective_returns_as_many_scores(store: Store) -> None:
    study = a_study(store)
    summary = study.run(lambda trial: [trial.point["x"], trial.n] if trial.n != 2 else None, 4, progress=False)
    assert (summary.states, summary.best) == ({"done": 3, "failed": 1}, None)
    assert summary.front == tuple(study.front())
    assert "2 scores" in (study.results()[2].reason or "")


def test_a_curve_of_one_value_is_kept_beside_several_scores(store: Store) -> None:
    from dibs.view import Source, trial_detail

    study = a_study(store)
    for trial in study.trials(1):
        trial.report(0.75)
        trial.done([1, 2])
    assert trial_detail(Source.over(study), 0).attempts[0].curve == ((0, 0.75),)


# what it amounts to


def test_front_is_what_nobody_dominates(store: Store) -> None:
    study = a_study(store)
    assert study.front() == []
    run(study, POOL)
    assert [result.n for result in study.front()] == FRONT
    assert [result.n for result in Study(store_over(store.backend, FakeMachine(2)), "s").front()] == FRONT
    assert study.status().front == tuple(study.front())


def test_best_and_top_name_the_front(store: Store) -> None:
    study = a_study(store)
    run(study, POOL[:2])
    for ask in (study.best, lambda: study.top(2)):
        with pytest.raises(UsageError, match=r"2 goals.*study\.front\(\)"):
            ask()


def test_with_one_goal_the_front_is_all_the_best(store: Store) -> None:
    study = a_study(store, goal="max")
    run(study, [1, 3, (4, {"gb": 1}), 3, (3, {"gb": -1}), 2])
    assert [result.n for result in study.front()] == [1, 3, 4]
    assert [result.n for result in study.top(9)] == [1, 3, 4, 5, 0]
    assert study.best().n == 1


def test_where_nothing_meets_its_constraints_the_nearest_is_told(store: Store) -> None:
    study = a_study(store, goal="min")
    run(study, [(1, {"gb": 3.0}), (2, {"gb": 0.5, "s": 0.25, "kg": -1}), (0, {"gb": 9}), ValueError("no")])
    with pytest.raises(
        NoResult, match=r"meets its constraints \(3 done, 1 failed\): trial 1 .* by 0.75 \('gb' by 0.5, 's' by 0.25\)"
    ):
        study.best()
    assert (study.top(3), study.front(), study.status().best) == ([], [], None)


def test_rescued_trials_count_in_the_front_and_in_the_nearest(store: Store) -> None:
    """A second attempt is no plain row of the table."""
    study = a_study(store, goal="min")
    run(study, [ValueError("no"), (5, {"gb": 2})])
    study.retry(0)
    run(study, [(1, {"gb": 1})], 2)
    assert study.results()[0].attempt == 1
    with pytest.raises(NoResult, match="trial 0 comes nearest"):
        study.best()
    study.retry()
    run(study, [(7, {"gb": 0})], 3)
    assert [result.n for result in study.front()] == [2]


def test_finished_and_in_flight_have_a_column_for_each_goal(store: Store) -> None:
    study = a_study(store)
    run(study, POOL)
    study.attach({"x": 0.5, "y": 0.5}, [7, 8], constraints={"gb": 0.25})
    study.claimer(9).step()
    history = study.finished()
    assert history.scores.shape == (8, 2)
    assert (history.n.tolist()[0], history.scores[0].tolist(), history.excess[0]) == (-1, [7, 8], 0.25)
    assert np.isnan(history.score).all()
    assert [score for _, score in history][:3] == [(7.0, 8.0), (1.0, 1.0), (2.0, 3.0)]
    for space in (None, SPACE):
        assert finished(store, space, study="s") == history
    assert [score for _, score in in_flight(store, study="s")] == [None]
    assert len(finished(store, Space(x=Float(0, 1)), study="s")) == 0


def test_what_is_shown_through_rolls_is_what_the_records_say() -> None:
    bucket = MemoryBackend()
    study = a_study(store_over(bucket))
    study.view.rolls.threshold = 4
    run(study, [*POOL, *POOL])
    assert list(bucket.names("study/s/roll/0/"))
    late = store_over(bucket, FakeMachine(2))
    first = Study(late, "s")
    results, front, history = first.results(), [result.n for result in first.front()], first.finished()
    for name in list(bucket.names("study/s/roll/0/")):
        bucket.delete(f"study/s/roll/0/{name}")
    assert late.kept["view", "s"].rolls.began
    again = Study(store_over(bucket, FakeMachine(3)), "s")
    assert (again.results(), [result.n for result in again.front()]) == (results, front)
    assert again.finished() == history


# attached results


def test_attached_results_have_a_score_each(store: Store) -> None:
    study = a_study(store)
    assert study.attach({"x": 0.5, "y": 0.5}, [1, 2])
    assert not study.attach({"x": 0.5, "y": 0.5}, (1.0, 2.0))
    assert study.attach({"x": 0.5, "y": 0.5}, [1, 2], constraints={"gb": 1})
    for wrong in (1.0, [1], [1, math.nan], None):
        with pytest.raises(UsageError, match=r"scores|finite"):
            study.attach({"x": 0.5, "y": 0.5}, wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="constraint"):
        study.attach({"x": 0.5, "y": 0.5}, [1, 2], constraints={"gb": "x"})  # type: ignore[dict-item]
    assert finished(store, study="s").scores.tolist() == [[1, 2], [1, 2]]
    assert study.front() == []


def test_an_attached_result_of_one_goal_has_the_name_it_always_had(store: Store) -> None:
    study = a_study(store, goal="min")
    study.attach({"x": 0.5, "y": 0.5}, 1)
    (name,) = store.backend.names("study/s/given/")
    assert name == f"{digest({'point': {'x': 0.5, 'y': 0.5}, 'score': 1.0})}.json"
    assert body_at(store, f"study/s/given/{name}").keys() & {"scores", "constraints"} == set()


# the functions


def test_take_and_report(store: Store) -> None:
    point = {"x": 0.1, "y": 0.2}
    assert take(store, point, study="s", trial=0, goal=GOAL) is not None
    with pytest.raises(RefusedError, match="taken with goal"):
        report(store, point, [], study="s", trial=0, goal="min")
    with pytest.raises(UsageError, match='with state="done"'):
        report(store, point, [], study="s", trial=0, scores=[1, 2])
    assert report(store, point, [0.5, math.nan], study="s", trial=0, goal=GOAL) is False
    report(store, point, [0.5], study="s", trial=0, state="done", scores=[1, 2], constraints={"gb": 0})
    body = body_at(store, key(0))
    assert (body["state"], body["score"], body["scores"], body["constraints"]) == (
        "done",
        None,
        [1.0, 2.0],
        {"gb": 0.0},
    )
    with pytest.raises(AlreadyClosed):
        report(store, point, [], study="s", trial=0, state="done", scores=[1, 2])


@pytest.mark.parametrize(
    "given",
    [{}, {"scores": [1]}, {"scores": [1, math.inf]}, {"scores": [1, 2], "constraints": {"gb": math.nan}}],
    ids=str,
)
def test_a_report_without_a_score_each_is_failed(store: Store, given: dict[str, Any]) -> None:
    point = {"x": 0.1, "y": 0.2}
    take(store, point, study="s", trial=0, goal=GOAL)
    report(store, point, [0.5], study="s", trial=0, state="done", **given)
    body = body_at(store, key(0))
    assert (body["state"], body["score"], body.get("scores")) == ("failed", None, None)
    assert body["reason"]


def test_scores_where_one_goal_was_taken_are_refused(store: Store) -> None:
    point = {"x": 0.1, "y": 0.2}
    take(store, point, study="s", trial=0, goal="min")
    with pytest.raises(UsageError, match="one goal"):
        report(store, point, [0.5], study="s", trial=0, state="done", scores=[1, 2])
    report(store, point, [0.5], study="s", trial=0, state="done", constraints={"gb": 0.5})
    assert (body_at(store, key(0))["score"], body_at(store, key(0))["constraints"]) == (0.5, {"gb": 0.5})


def test_a_space_keeps_scores_and_constraints_of_the_points_that_are_its_own(store: Store) -> None:
    """Attached and rescued results are looked at one by one, the others as columns."""
    study = Study(
        store, "s", {**SPACE.params, "z": Float(0, 1, when={"k": [1]}), "k": Choice(0, 1)}, goal=GOAL, sampler="random"
    )
    for k in (0, 1):
        point = {"x": 0.5, "y": 0.5, "k": k, **({"z": 0.5} if k else {})}
        study.attach(point, [k, 7], constraints={"gb": k - 2})
    run(study, [([n, n], {"gb": n}) for n in range(6)])
    history = finished(store, Space({**SPACE.params, "k": Choice(0, 1)}), study="s")
    own = [result for result in study.results() if "z" not in result.point]
    assert 0 < len(own) < 6
    assert history.scores.tolist() == [[0, 7], *(list(result.scores) for result in own)]
    assert history.excess.tolist() == [-2, *(result.scores[0] for result in own)]


def test_a_table_of_many_keeps_every_score_and_drops_the_right_one() -> None:
    table = Table()

    def row(n: int) -> TrialRecord:
        bound = {"gb": float(n)} if n > 300 else None
        goal: Any = ("min", "max")
        return TrialRecord(
            1, "trial", "s", n, 0, "done", "", {}, goal=goal, scores=(float(n), -float(n)), constraints=bound
        )

    for n in range(1000):
        table.add(row(n))
    before = table.history(done_only=True, goals=2)
    table.drop(500)
    assert before.scores.tolist() == [[n, -n] for n in range(1000)]
    assert np.isnan(before.excess[:301]).all()
    assert before.excess[301:].tolist() == list(range(301, 1000))
    after = table.history(done_only=True, goals=2)
    assert after.scores.tolist() == [[n, -n] for n in range(1000) if n != 500]
    assert table.record(999, "s").constraints == {"gb": 999.0}
    assert (table.record(7, "s").scores, table.record(7, "s").constraints) == ((7.0, -7.0), None)
    assert table.done(2)[0].tolist() == [0, *range(1, 301)]
    assert table.nearest() == 301
    assert np.isnan(table.history(done_only=True).scores).all()
    table.add(row(500))
    assert table.history(done_only=True, goals=2) == before
