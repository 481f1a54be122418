"""Any Optuna sampler in our studies: the same history gives the same point, and it learns from all of it."""

from __future__ import annotations

import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from dibs import Choice, Float, History, Int, RefusedError, Space, SpaceError, Store, Study, UsageError
from dibs.integrations import _optuna_sampler
from dibs.optuna import OptunaSampler

SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True),
    width=Float(0.0, 1.0, step=0.1),
    layers=Int(1, 8),
    units=Int(1, 512, log=True),
    mixed=Choice(None, True, 1, 1.0, "1", (1, "a")),
    size=Choice("s", "m", "l", ordered=True),
    opt=Choice("adam", "sgd"),
    momentum=Float(0, 0.99, when={"opt": ["sgd"]}),
    fixed=7,
)
LINE = Space(x=Float(-1.0, 1.0), c=Choice("a", "b"))
KINDS = {
    "random": lambda: optuna.samplers.RandomSampler(seed=3),
    "tpe": lambda: optuna.samplers.TPESampler(n_startup_trials=4, constant_liar=True),
    "independent": lambda: optuna.samplers.TPESampler(n_startup_trials=4, multivariate=False),
    "partial": lambda: optuna.samplers.PartialFixedSampler(
        {"layers": 3}, optuna.samplers.TPESampler(n_startup_trials=2)
    ),
}


def made(kind: str) -> OptunaSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return OptunaSampler(KINDS[kind](), seed=5, goal="min")


def history(sampler: OptunaSampler, count: int, space: Space = SPACE) -> History:
    """Trials as they would have come, in every state."""
    rows: list[Any] = []
    for n in range(count):
        point = sampler.ask(space, n, History.of(rows))
        state = ("done", "done", "pruned", "failed", "running")[n % 5]
        score = float(n % 7) if state in ("done", "pruned") else None
        rows.append((n, point, score, state, 3 if score is not None else None))
    return History.of(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_history_gives_the_same_point(kind: str) -> None:
    told = history(made(kind), 12)
    used = made(kind)
    for n in (3, 40, 12):
        used.ask(SPACE, n, told[:5])
    fresh = pickle.loads(pickle.dumps(made(kind)))
    assert fresh.ask(SPACE, 12, told) == used.ask(SPACE, 12, told) == made(kind).ask(SPACE, 12, told)
    assert used.ask(SPACE, 13, told) != used.ask(SPACE, 12, told)
    assert made(kind).seeded(None, None).ask(SPACE, 12, told) != OptunaSampler(KINDS["random"](), seed=6).ask(SPACE, 12)


@pytest.mark.parametrize("kind", KINDS)
def test_every_point_is_in_the_space(kind: str) -> None:
    for point, _ in history(made(kind), 25):
        assert SPACE.check(point) == point
        assert {name: type(value) for name, value in SPACE.check(point).items()} == {
            name: type(value) for name, value in point.items()
        }
        assert ("momentum" in point) == (point["opt"] == "sgd")


def test_the_optuna_sampler_that_was_given_stays_as_it_was() -> None:
    theirs = optuna.samplers.TPESampler(seed=1)
    before = theirs._rng.rng.get_state()[1].tolist()
    OptunaSampler(theirs, seed=5).ask(SPACE, 0)
    assert theirs._rng.rng.get_state()[1].tolist() == before


@pytest.mark.parametrize(("goal", "sign"), [("min", 1.0), ("max", -1.0)])
def test_it_learns(tmp_path: Path, goal: Any, sign: float) -> None:
    """Better later than at the beginning, whichever way the goal points."""

    def far(point: Any) -> float:
        return abs(point["x"] - 0.3) + (point["c"] == "b")

    study = Study(tmp_path / "s", "s", LINE, goal=goal, seed=0, sampler=OptunaSampler(optuna.samplers.TPESampler()))
    study.run(lambda trial: sign * far(trial.point), trials=40, progress=False)
    distances = [far(result.point) for result in study.results()]
    assert sum(distances[20:]) < 14, "by chance it would be about 21"


def test_what_it_is_shown() -> None:
    shown: list[Any] = []

    class Spy(optuna.samplers.RandomSampler):
        def infer_relative_search_space(self, study: Any, trial: Any) -> Any:
            shown.append((study.direction, study.get_trials(deepcopy=False)))
            return {}

    sampler = OptunaSampler(Spy(), seed=1, goal="max")
    points = [sampler.ask(SPACE, n) for n in range(4)]
    foreign = {"elsewhere": 1.0}
    rows = [
        (0, points[0], 1.5, "done", 9),
        (1, points[1], None, "running", None),
        (2, foreign, 1.0, "done", None),
        (4, points[2], 0.5, "pruned", 2),
        (5, points[3], None, "failed", None),
        (-1, points[0], 2.0, "done", None),
    ]
    shown.clear()
    sampler.ask(SPACE, 6, History.of(rows))
    direction, trials = shown[0]
    assert direction is optuna.study.StudyDirection.MAXIMIZE
    assert [(trial.state, trial.value) for trial in trials[:-1]] == [
        (TrialState.COMPLETE, 2.0),
        (TrialState.COMPLETE, 1.5),
        (TrialState.RUNNING, None),
        (TrialState.PRUNED, 0.5),
        (TrialState.FAIL, None),
    ]
    assert [trial.number for trial in trials] == list(range(6))
    assert trials[3].intermediate_values == {2: 0.5}
    assert "fixed" not in trials[0].params
    assert ("momentum" in trials[0].params) == ("momentum" in points[0])
    assert trials[0].params["lr"] == points[0]["lr"]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_several_goals_and_the_excess_are_shown_as_objectives_and_a_constraint() -> None:
    shown: list[Any] = []

    class Spy(optuna.samplers.RandomSampler):
        def infer_relative_search_space(self, study: Any, trial: Any) -> Any:
            shown.append((study.directions, study.get_trials(deepcopy=False)))
            return {}

    sampler = OptunaSampler(Spy(), seed=1, goal=("max", "min"))
    point = sampler.ask(SPACE, 0)
    rows: list[Any] = [
        (0, point, (1.5, 2.0), "done", 9, 0.5),
        (1, point, (1, 2), "done", None),
        (2, point, None, "failed", 1),
    ]
    for excess in (0.5, 0.75):  # a record that somebody edited is not the one that was shown before
        rows[0] = (*rows[0][:5], excess)
        shown.clear()
        sampler.ask(SPACE, 3, History.of(rows))
        directions, trials = shown[0]
        assert [direction.name for direction in directions] == ["MAXIMIZE", "MINIMIZE"]
        assert [(trial.state, trial.values) for trial in trials[:-1]] == [
            (TrialState.COMPLETE, [1.5, 2.0]),
            (TrialState.COMPLETE, [1.0, 2.0]),
            (TrialState.FAIL, None),
        ]
        assert [trial.constraints for trial in trials[:-1]] == [{"excess": excess}, {}, {}]


def test_a_study_of_several_goals_by_theirs(tmp_path: Path) -> None:
    sampler = OptunaSampler(optuna.samplers.TPESampler(n_startup_trials=5))
    study = Study(tmp_path / "s", "s", LINE, goal=["min", "max"], seed=0, sampler=sampler)
    for trial in study.trials(25):
        x = trial.point["x"]
        trial.done([x * x, (x - 1) ** 2], constraints={"right": x - 0.5})
    assert len(study.front()) > 0
    assert {result.state for result in study.results()} == {"done"}


def test_one_that_joins_passes_an_equal_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    Study(store, "s", LINE, goal="min", sampler=OptunaSampler(optuna.samplers.TPESampler(n_startup_trials=3)))
    joined = Study(store, "s", sampler=OptunaSampler(optuna.samplers.TPESampler(n_startup_trials=3, seed=9)))
    for trial in joined.trials(2):
        trial.done(0.5)
    with pytest.raises(RefusedError, match="n_startup_trials"):
        Study(store, "s", sampler=OptunaSampler(optuna.samplers.TPESampler(n_startup_trials=4)))
    reader = Study(store, "s")
    assert len(reader.results()) == 2
    with pytest.raises(UsageError, match="optuna"):
        next(reader.trials(3))


@pytest.mark.parametrize(
    "kind",
    ["CmaEsSampler", "NSGAIISampler", "QMCSampler"],
)
def test_a_sampler_that_remembers_in_its_trials_is_refused(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        theirs = getattr(optuna.samplers, kind)()
    with pytest.raises(UsageError, match=r"Storage"):
        OptunaSampler(theirs)
    with pytest.raises(UsageError):
        OptunaSampler("tpe")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning", "ignore::FutureWarning")
def test_what_would_be_asked_about_theirs_trials_is_refused_in_other_hands_too() -> None:
    partial = optuna.samplers.PartialFixedSampler
    for theirs, said in (
        (partial({"x": 0.5}, optuna.samplers.QMCSampler()), "QMCSampler"),
        (partial({"x": 0.5}, partial({"c": "a"}, optuna.samplers.NSGAIISampler())), "NSGAIISampler"),
        (optuna.samplers.TPESampler(constraints_func=lambda trial: (0.0,)), "constraints_func of TPESampler"),
        (partial({}, optuna.samplers.TPESampler(constraints_func=lambda trial: (0.0,))), "constraints_func"),
    ):
        with pytest.raises(UsageError, match=said):
            OptunaSampler(theirs)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_fixed_choices_are_what_people_call_them() -> None:
    fixed = {"mixed": (1, "a"), "size": "l", "opt": "sgd", "momentum": 0.5, "unknown": 3}
    sampler = OptunaSampler(
        optuna.samplers.PartialFixedSampler(fixed, optuna.samplers.TPESampler(n_startup_trials=2)), 1
    )
    told = history(sampler, 10)
    for point, _ in told:
        assert {name: point[name] for name in ("mixed", "size", "opt", "momentum")} == {
            name: fixed[name] for name in ("mixed", "size", "opt", "momentum")
        }
    assert len({point["lr"] for point, _ in told}) == 10
    with pytest.raises(SpaceError, match="opt"):
        OptunaSampler(optuna.samplers.PartialFixedSampler({"opt": "lamb"}, optuna.samplers.RandomSampler())).ask(
            SPACE, 0
        )


def test_old_trials_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = made("random")
    told = history(sampler, 10)
    calls: list[int] = []
    real = _optuna_sampler._trial
    monkeypatch.setattr(_optuna_sampler, "_trial", lambda *given: calls.append(1) or real(*given))
    sampler.ask(SPACE, 10, told)
    assert len(calls) == 1, "only the last one is new"
    calls.clear()
    sampler.ask(SPACE, 11, told)
    assert not calls
    sampler.ask(LINE, 11, told)
    assert len(calls) == 10, "another space"


def test_a_library_that_the_sampler_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    asked = OptunaSampler(optuna.samplers.GPSampler(n_startup_trials=1), seed=1, goal="min")
    rows: list[Any] = [(n, {"x": n / 5}, float(n), "done", None) for n in range(5)]
    with pytest.raises(UsageError, match=r"GPSampler needs a library .*torch"):
        asked.ask(Space(x=Float(0, 1)), 5, History.of(rows))
