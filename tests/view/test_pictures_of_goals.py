"""Pictures of studies with several goals and constraints: one goal at a time, and nothing over a constraint is the best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.parts import body_at, plant, store_over
from tests.study.goals import FRONT, POOL, SPACE, a_study, key, run

from dibs import Sobol, Space, Store, Study, UsageError
from dibs.cli import main
from dibs.optuna import importances
from dibs.view import Scored, Source, best_so_far, contour, slices
from dibs.view._slices import summary_of


def pooled(store: Store | None = None) -> Study:
    study = a_study(store or store_over())
    run(study, POOL)
    return study


@pytest.mark.parametrize(("goal", "better"), [(0, min), (1, max)])
def test_the_best_so_far_of_one_goal(goal: int, better: Any) -> None:
    told = best_so_far(Source.over(pooled()), goal=goal)
    assert (told.which, told.goals, told.goal) == (goal, 2, ("min", "max")[goal])
    seen: list[float] = []
    for trial, end in zip(told.trials, POOL, strict=True):
        scores, over = (end[0], end[1].get("gb", -1) > 0) if isinstance(end, tuple) else (end, False)
        if isinstance(scores, list):
            assert trial.score == scores[goal]
            seen += [] if over else [scores[goal]]
        assert (trial.feasible, trial.best_by_index) == (not over, better(seen))
    assert told.best is not None
    assert told.best.n in FRONT
    assert told.best.scores[goal] == better(seen)


def test_no_goal_of_that_number() -> None:
    source = Source.over(pooled())
    for goal in (2, -1, "min", True, 1.0):
        for picture in (best_so_far, slices):
            with pytest.raises(UsageError, match="goals 0 to 1: there is no goal"):
                picture(source, goal=goal)  # type: ignore[operator,arg-type]
    one = Study(store_over(), "one", SPACE, goal="min")
    with pytest.raises(UsageError, match="one goal, number 0: there is no goal 1"):
        contour(Source.over(one), "x", "y", goal=1)


def test_slices_and_contours_look_at_the_goals_score_and_the_best_is_feasible() -> None:
    study = pooled()
    source = Source.over(study)
    done = study.results("done")
    for goal, better in ((0, min), (1, max)):
        told = slices(source, ["x"], goal=goal)
        assert {spot.n: spot.score for spot in told.slices[0].spots} == {r.n: r.scores[goal] for r in done}
        assert (told.infeasible, [spot.n for spot in told.slices[0].spots if not spot.feasible]) == (1, [5])
        plane = contour(source, "x", "y", goal=goal)
        assert sum(cell.scores.count for cell in plane.cells) == len(done) == 7
        assert sum(cell.scores.feasible for cell in plane.cells) == 6
        bands = [band for band in told.slices[0].bands if band.best is not None]
        assert better(band.best for band in bands) == better(r.scores[goal] for r in done if r.n != 5)
    alone = summary_of([Scored(0, {}, 1.0, 0.5), Scored(1, {}, 2.0, 0.25)], 1.0)
    assert (alone.count, alone.feasible, alone.best, alone.n, alone.mean) == (2, 0, None, None, 1.5)


def test_constraints_with_one_goal() -> None:
    study = Study(store_over(), "s", SPACE, goal="min", sampler=Sobol(), seed=1)
    for trial in study.trials(3):
        with trial:
            trial.done(float(trial.n), constraints={"gb": 1.0 - trial.n})
    source = Source.over(study)
    told = best_so_far(source)
    assert [trial.best_by_index for trial in told.trials] == [None, 1.0, 1.0]
    assert told.best is not None
    assert told.best.n == study.best().n == 1
    assert slices(source).infeasible == 1


def test_a_record_of_other_goals_is_no_result_of_these() -> None:
    study = pooled()
    hand = {**body_at(study.store, key(0)), "goal": "min", "score": 0.125, "scores": None}
    plant(study.store, key(0), hand)
    store = Store.over(study.store.backend, study.store.machine)
    assert slices(Source.of(store, "s")).results == 6
    assert best_so_far(Source.of(store, "s")).trials[0].score is None


def test_importances_are_of_one_goal_and_prefer_what_is_feasible(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True, fsync="none")
    study = a_study(store, sampler=Sobol(), seed=3)
    for trial in study.trials(100):
        with trial:
            trial.done([trial.point["x"], trial.point["y"]])
    assert importances(study).parameters[0].name == "x"
    assert importances(study, goal=1).parameters[0].name == "y"
    bound = Study(store, "bound", SPACE, goal="min", sampler=Sobol(), seed=3)
    for trial in bound.trials(100):
        with trial:
            trial.done(trial.point["x"], constraints={"gb": trial.point["y"] - 0.1})
    first = importances(bound).parameters[0]
    assert (first.name, first.importance > 0.9) == ("y", True), "about a tenth is feasible, by y alone"


def test_the_verbs_say_which_goal(tmp_path: Path) -> None:
    pooled(Store(tmp_path / "s", create=True))
    store = str(tmp_path / "s")

    def said(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, [*words, "--store", store])
        assert done.exit_code == code, done.output
        return done.output

    assert said("history").startswith("study s, goal 0 (min) of 0 to 1: best 0.5, trial 6\n")
    assert "done, over a constraint" in said("history", "--goal", "1", "--all")
    assert "goal 1 (max) of 0 to 1: 7 results\n  1 break a constraint" in said("slice", "--goal", "1")
    assert "goal 0 (min) of 0 to 1:" in said("contour", "x", "y")
    assert "no goal 2" in said("slice", "--goal", "2", code=2)
    assert json.loads(said("history", "--goal", "1", "--json"))["which"] == 1


def test_a_dibs_toml_with_goals_for_run_is_not_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pooled(Store(tmp_path / "s", create=True))
    (tmp_path / "dibs.toml").write_text('store = "s"\ngoal = "min,max"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DIBS_STORE", raising=False)  # it would win
    assert CliRunner().invoke(main, ["history"]).exit_code == 0


def test_nothing_that_meets_its_constraints_is_said(tmp_path: Path) -> None:
    study = a_study(Store(tmp_path / "s", create=True))
    run(study, [([1, 1], {"gb": 1.0})])
    done = CliRunner().invoke(main, ["history", "--store", str(tmp_path / "s")])
    assert "nothing meets its constraints yet" in done.output


def test_a_fork_takes_all_scores_and_constraints_along() -> None:
    study = pooled()
    study.attach({"x": 0.5, "y": 0.5}, [0.25, 7], constraints={"gb": -3})
    fork = study.fork("two", Space({**SPACE.params, "z": 1}), fill={"z": 1})
    assert fork.forked is not None
    assert (fork.forked.attached, fork.forked.left) == (8, {"failed": 1})
    assert fork.goal == ("min", "max")
    old, new = study.finished(), fork.finished()
    rows = [
        sorted((tuple(s), e if e == e else None, p["x"]) for p, s, e in zip(h.points, h.scores.tolist(), h.excess.tolist(), strict=True))
        for h in (old, new)
    ]  # fmt: skip
    assert repr(rows[0]) == repr(rows[1])
    bodies = [body_at(fork.store, e.key) for e in fork.store.backend.list("study/two/given/")]
    assert {"gb": 0.5, "s": -1} in [body.get("constraints") for body in bodies]
    again = fork.fork("three").forked
    assert again is not None
    assert again.attached == 8
    assert study.fork("two", fork.space, fill={"z": 1}).forked == ("s", 0, 8, {"failed": 1})


@pytest.mark.parametrize("scores", [None, [], [1.0], [1.0, 2.0, 3.0]])
def test_scores_written_by_hand_that_are_not_of_these_goals_are_left(scores: Any) -> None:
    study = pooled()
    plant(study.store, key(0), {**body_at(study.store, key(0)), "scores": scores})
    told = Study(Store.over(study.store.backend, study.store.machine), "s").fork("two").forked
    assert told is not None
    assert (told.attached, told.left) == (6, {"failed": 1, "without a score": 1})
