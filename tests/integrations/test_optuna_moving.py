"""Studies moved between Optuna and dibs: everything arrives or is counted."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import optuna
import pytest
from click.testing import CliRunner
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial
from tests.parts import body_at, plant, store_over

from dibs import Choice, Constant, Float, Int, NotFound, RefusedError, Space, SpaceError, Store, Study, UsageError
from dibs.backend import CountingBackend, MemoryBackend
from dibs.cli import main
from dibs.integrations import _optuna_pruner
from dibs.integrations._optuna_space import derived_space
from dibs.optuna import OptunaPruner, Storage, export, import_study
from dibs.search import Curve
from dibs.study import report, take


def objective(trial: optuna.Trial) -> float:
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 8)
    opt = trial.suggest_categorical("opt", ["adam", "sgd", None])
    momentum = trial.suggest_float("momentum", 0.0, 1.0, step=0.25) if opt == "sgd" else 0.0
    if trial.number == 3:
        raise optuna.TrialPruned
    if trial.number == 4:
        raise ValueError
    return math.inf if trial.number == 5 else lr + layers - momentum


SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True), layers=Int(1, 8), opt=Choice("adam", "sgd", None),
    momentum=Float(0.0, 1.0, step=0.25, when={"opt": ["sgd"]}),
)  # fmt: skip


@pytest.fixture(params=["sqlite", "journal", "store"])
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, optuna.Study]:
    """(what to say, the study): twelve trials, of which one is pruned, one failed, one infinite, one running."""
    said: Any = {"sqlite": f"sqlite:///{tmp_path / 'o.db'}", "journal": str(tmp_path / "o.log")}.get(request.param)
    storage: Any = said
    if request.param == "journal":
        storage = JournalStorage(JournalFileBackend(said))
    elif request.param == "store":
        storage = said = Storage(tmp_path / "o")
    study = optuna.create_study(
        storage=storage, study_name="s", direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1)
    )
    study.optimize(objective, n_trials=12, catch=(ValueError,))
    study.ask()
    return said, study


def test_an_import_brings_every_result_once(theirs: tuple[Any, optuna.Study], tmp_path: Path) -> None:
    said, study = theirs
    told = import_study(said, "s", tmp_path / "store")
    assert (told.attached, told.there) == (9, 0)
    assert dict(told.left) == {"pruned": 1, "fail": 1, "running": 1, "without a finite result": 1}
    assert (told.study.goal, told.study.space) == ("max", SPACE)
    ours = sorted((score, sorted(point.items())) for point, score in told.study.finished() if score is not None)
    assert ours == sorted(
        (trial.value, sorted(trial.params.items()))
        for trial in study.trials
        if trial.state is TrialState.COMPLETE and math.isfinite(trial.value)
    )
    again = import_study(said, "s", tmp_path / "store")
    assert (again.attached, again.there) == (0, 9)


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    file, store = str(tmp_path / "o.log"), str(tmp_path / "store")
    study = optuna.create_study(storage=JournalStorage(JournalFileBackend(file)), study_name="s")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    study.ask()
    run = CliRunner().invoke(main, ["import", "--from", "optuna", file, "s", "--store", store, "--study", "t"])
    assert (run.exit_code, run.stdout) == (0, "3 results attached to t; 0 were there\nleft out: 1 running\n")
    run = CliRunner().invoke(
        main, ["import", "--from", "optuna", file, "s", "--store", store, "--study", "t", "--json"]
    )
    assert json.loads(run.stdout) == {"study": "t", "attached": 0, "there": 3, "left": {"running": 1}}
    run = CliRunner().invoke(main, ["import", "--from", "optuna", file, "nope", "--store", store])
    assert run.exit_code == 2
    assert "'s'" in run.stderr


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    for said in (f"sqlite:///{tmp_path / 'no.db'}", str(tmp_path / "no.log")):
        with pytest.raises(NotFound):
            import_study(said, "s", tmp_path / "store")
    assert [path.name for path in tmp_path.iterdir()] == []


def test_an_import_again_writes_nothing() -> None:
    source = optuna.storages.InMemoryStorage()
    study = optuna.create_study(storage=source, study_name="s")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 2), n_trials=10)
    inner = MemoryBackend()
    assert import_study(source, "s", store_over(inner)).attached == 10
    backend = CountingBackend(inner)
    told = import_study(source, "s", store_over(backend))
    assert (told.attached, told.there) == (0, 10)
    assert (backend.counts["stage"], backend.counts["create"]) == (0, 0)


def test_what_is_no_storage_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"\x00\xffhello\n{")
    for said in (str(tmp_path / "junk"), f"sqlite:///{tmp_path / 'junk'}", "foo://nowhere/x"):
        with pytest.raises(UsageError, match="cannot be read as a storage of Optuna"):
            import_study(said, "s", tmp_path / "store")


def test_a_study_that_is_there_keeps_its_space_and_goal(tmp_path: Path) -> None:
    source = Storage(tmp_path / "o")
    study = optuna.create_study(storage=source, study_name="s")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 2), n_trials=10)
    Study(tmp_path / "store", "s", {"x": Float(0.0, 1.0)}, goal="min")
    told = import_study(source, "s", tmp_path / "store")
    inside = sum(trial.params["x"] <= 1 for trial in study.trials)
    assert (told.attached, told.left["not in the space"]) == (inside, 10 - inside)
    Study(tmp_path / "store", "max", {"x": Float(0.0, 1.0)}, goal="max")
    with pytest.raises(RefusedError):
        import_study(source, "s", tmp_path / "store", "max")


def test_what_cannot_be_imported_says_why(tmp_path: Path) -> None:
    source = Storage(tmp_path / "o")
    optuna.create_study(storage=source, study_name="nine", directions=["minimize"] * 9)
    optuna.create_study(storage=source, study_name="none")
    with pytest.raises(UsageError, match="9 goals"):
        import_study(source, "nine", tmp_path / "store", "ours")
    with pytest.raises(UsageError, match="no complete trial"):
        import_study(source, "none", tmp_path / "store")


def two(trial: optuna.Trial) -> tuple[float, float]:
    x = trial.suggest_float("x", 0, 1)
    if trial.number != 2:
        trial.set_constraint("gb", x - 0.5)
    return x, math.nan if trial.number == 5 else math.inf if trial.number == 6 else -x * x


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_several_objectives_and_constraints_come_and_go(tmp_path: Path) -> None:
    theirs = optuna.create_study(
        storage=Storage(tmp_path / "o"), study_name="two", directions=["minimize", "maximize"],
        sampler=optuna.samplers.RandomSampler(seed=1),
    )  # fmt: skip
    theirs.optimize(two, n_trials=8)
    told = import_study(Storage(tmp_path / "o"), "two", tmp_path / "store")
    assert (told.attached, dict(told.left)) == (6, {"fail": 1, "without a finite result": 1})
    assert told.study.goal == ("min", "max")
    shown = {
        (*score, excess) for (_, score), excess in zip(told.study.finished(), told.study.finished().excess, strict=True)
    }
    good = [trial for trial in theirs.trials if trial.number not in (5, 6)]
    assert {triple[:2] for triple in shown} == {tuple(trial.values) for trial in good}
    assert {triple[2] for triple in shown if triple[2] == triple[2]} == {
        trial.constraints["gb"] for trial in good if trial.constraints
    }
    made = export(told.study)
    assert made.directions == theirs.directions
    assert sorted(map(str, ((t.values, t.constraints) for t in made.trials))) == sorted(
        map(str, ((t.values, t.constraints) for t in good))
    )


def test_an_export_of_several_goals_has_their_front(tmp_path: Path) -> None:
    study = Study(tmp_path / "store", "s", {"x": Float(0.0, 1.0)}, goal=["min", "max"], sampler="random", seed=1)
    for trial in study.trials(20):
        with trial:
            x = trial.point["x"]
            trial.report(x)
            scores = [x, x * (1 - x)] if trial.n != 3 else [x]
            trial.done(scores, constraints={"gb": x - 0.4, "s": -1} if trial.n % 2 else None)
    made = export(study)
    assert [trial.number for trial in made.best_trials] == [result.n for result in study.front()]
    assert made.trials[1].constraints == study.results()[1].constraints
    assert made.trials[3].state is TrialState.FAIL
    assert made.trials[0].intermediate_values == {0: made.trials[0].params["x"]}


def test_a_result_written_by_hand_stops_no_export(tmp_path: Path) -> None:
    study = Study(tmp_path / "store", "s", {"x": Float(0.0, 1.0)}, goal=["min", "max"], sampler="random", seed=1)
    for trial in study.trials(2):
        trial.done([1, 2])
    key = study.store.keys("s").attempt(0, 0)
    path = tmp_path / "store" / key
    path.write_text(json.dumps({**json.loads(path.read_text()), "scores": [1]}))
    made = export(Study(Store(tmp_path / "store"), "s"))
    assert [trial.state for trial in made.trials] == [TrialState.FAIL, TrialState.COMPLETE]


def test_an_attached_result_written_by_hand_stops_no_export(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    study = Study(tmp_path / "store", "s", {"x": Float(0.0, 1.0)}, goal=["min", "max"])
    for x in (0.25, 0.5):
        study.attach({"x": x}, [x, 1])
    path = min((tmp_path / "store" / study.store.keys("s").given).iterdir())
    path.write_text(json.dumps({**json.loads(path.read_text()), "point": {"x": 7.0}}))
    assert len(export(Study(Store(tmp_path / "store"), "s")).trials) == 1
    assert path.name in caplog.text


def test_constraints_that_no_study_takes_stop_no_import(tmp_path: Path) -> None:
    theirs = optuna.create_study(storage=(storage := optuna.storages.InMemoryStorage()), study_name="s")
    wild: list[Any] = [{"gb": 1.0}, {f"c{k}": 1.0 for k in range(65)}, {"": -1.0}, None]
    for k, constraints in enumerate(wild):
        theirs.add_trial(
            optuna.trial.create_trial(
                params={"x": k / 8}, distributions={"x": FloatDistribution(0, 1)}, value=1.0, constraints=constraints
            )
        )
    told = import_study(storage, "s", tmp_path / "store")
    assert (told.attached, dict(told.left)) == (2, {"with constraints that no study takes": 2})


F, C = FloatDistribution, CategoricalDistribution


@pytest.mark.parametrize(
    ("rows", "space"),
    [
        ([{"x": (0.5, F(0, 1))}, {"x": (2.0, F(0, 2))}], Space(x=Float(0.0, 2.0))),
        ([{"k": (3, IntDistribution(1, 9, step=2))}], Space(k=Int(1, 9, step=2))),
        ([{"x": (1.0, F(1, 1))}], Space(x=Constant(1.0))),
        (
            [{"c": ("a", C(["a", "b", 1])), "x": (0.5, F(0, 1))}, {"c": (1, C(["a", "b", 1]))}],
            Space(c=Choice("a", "b", 1), x=Float(0.0, 1.0, when={"c": ["a"]})),
        ),
    ],
)
def test_a_space_from_trials(rows: list[dict[str, Any]], space: Space) -> None:
    assert (
        derived_space([({n: v for n, (v, _) in row.items()}, {n: d for n, (_, d) in row.items()}) for row in rows])
        == space
    )


@pytest.mark.parametrize(
    "rows",
    [
        [{"x": (0.5, F(0, 1))}, {"x": (1, IntDistribution(0, 2))}],
        [{"x": (0.5, F(0.1, 1))}, {"x": (0.5, F(0.1, 1, log=True))}],
        [{"x": ("a", C(["a", "b"]))}, {"x": ("a", C(["a", "c"]))}],
        [{"x": (0.5, F(0, 1)), "y": (0.5, F(0, 1))}, {"y": (0.5, F(0, 1))}],
    ],
)
def test_no_space_from_trials(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(SpaceError, match="x"):
        derived_space([({n: v for n, (v, _) in row.items()}, {n: d for n, (_, d) in row.items()}) for row in rows])


def test_an_export_has_all_there_is(tmp_path: Path) -> None:
    space = {**SPACE.params, "odd": Choice(True, 1, (1, 2)), "fixed": Constant(3)}
    study = Study(tmp_path / "store", "s", space, goal="max", seed=1)
    for trial in study.trials(8):
        with trial:
            trial.report(0.25)
            trial.report(float(trial.n))
            if trial.n == 2:
                raise ValueError
    study.attach(study.results()[0].point, 77.0)
    study.claimer(9).step()
    made = export(study)
    assert [trial.state for trial in made.trials] == [
        *[TrialState.FAIL if n == 2 else TrialState.COMPLETE for n in range(8)],
        TrialState.RUNNING,
        TrialState.COMPLETE,
    ]
    assert made.best_value == 77.0
    assert made.trials[4].intermediate_values == {0: 0.25, 1: 4.0}
    first, point = made.trials[0], study.results()[0].point
    assert first.datetime_complete is not None
    assert {name: first.params[name] for name in ("lr", "layers", "opt", "fixed")} == {
        name: point[name] for name in ("lr", "layers", "opt", "fixed")
    }
    assert {trial.params["odd"] for trial in made.trials} <= {"true", "1", '{"tuple":[1,2]}'}
    assert not any(trial.intermediate_values for trial in export(study, curves=False).trials)


def test_an_export_of_what_others_wrote_leaves_out_what_it_cannot_have(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path / "store")
    Study(store, "s", Space(x=Float(0.0, 1.0), k=Choice("a", "b")), goal="min")
    for n, point in enumerate(
        [{"x": 5.0, "k": "a"}, {"x": 0.5, "k": "c"}, {"x": 0.25, "k": "b"}, {"x": 0.75, "k": "b"}]
    ):
        assert take(store, point, study="s", trial=n, goal="min")
        report(store, point, [float(n)], study="s", trial=n, state="done")
    for n, changes in ((2, {"started_at": "yesterday"}), (3, {"took_s": 1e300})):
        key = store.keys("s").attempt(n, 0)
        plant(store, key, {**body_at(store, key), **changes})
    made = export(Study(Store(tmp_path / "store"), "s"))
    assert [trial.params["x"] for trial in made.trials] == [0.25, 0.75]
    assert made.trials[1].datetime_start is not None
    assert "trial 0 is left out" in caplog.text
    assert "trial 1 is left out" in caplog.text


def curve(n: int, state: str, values: list[float]) -> Curve:
    return Curve(n, state, enumerate(values))


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_pruner_of_theirs_has_a_reason() -> None:
    others = [curve(n, "done", [1.0, 0.5 + n / 10]) for n in range(6)] + [curve(9, "running", [0.1])]
    theirs = OptunaPruner(optuna.pruners.MedianPruner(n_startup_trials=3))
    pruner = theirs.fitted(goal="min")
    said = pruner.verdict(curve(7, "running", [1.0, 5.0]), others)
    assert said is not None
    assert "MedianPruner" in said.reason
    assert said.seen == {"step": 1, "value": 5.0, "peers": 7}
    assert pruner.verdict(curve(7, "running", [1.0, 0.1]), others) is None
    assert pruner.verdict(curve(7, "running", []), others) is None
    assert theirs.fitted(goal="max").verdict(curve(7, "running", [1.0, 5.0]), others) is None
    assert pruner.args()["pruner"]["args"]["n_startup_trials"] == 3
    with pytest.raises(UsageError, match="goal"):
        theirs.verdict(curve(7, "running", [1.0, 5.0]), others)
    patient = OptunaPruner(optuna.pruners.PatientPruner(optuna.pruners.MedianPruner(), patience=1)).fitted(goal="min")
    assert patient.verdict(curve(7, "running", [1.0, 5.0]), others) is None


def test_a_curve_is_put_into_their_form_once_for_each_length(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = _optuna_pruner._trial
    monkeypatch.setattr(_optuna_pruner, "_trial", lambda curve: made.append(curve.n) or real(curve))
    pruner = OptunaPruner(optuna.pruners.MedianPruner(n_startup_trials=3)).fitted(goal="min")
    others = [curve(n, "done" if n < 3 else "running", [1.0, 0.5]) for n in range(5)]
    for _ in range(3):
        assert pruner.verdict(curve(7, "running", [1.0, 5.0]), others) is not None
    assert made == [0, 1, 2, 3, 4]
    others[4].add(2, 9.0)
    others[3] = curve(3, "done", [9.0, 9.0])
    pruner.verdict(curve(7, "running", [1.0, 5.0]), others)
    assert made[5:] == [3, 4]


def test_a_study_is_pruned_by_one_of_theirs(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    space = Space(x=Float(0.0, 1.0))

    def opened(startup: int = 3, **more: Any) -> Study:
        pruner = OptunaPruner(optuna.pruners.MedianPruner(n_startup_trials=startup, n_warmup_steps=0))
        return Study(store, "p", space, goal="min", sampler="sobol", seed=0, pruner=pruner, **more)

    for trial in opened().trials(12):
        with trial:
            for step in range(4):
                if trial.report(trial.point["x"] - step / 100):
                    break
    states = [result.state for result in opened().results()]
    assert states.count("pruned") > 2
    assert states.count("done") > 3
    pruned = opened().results("pruned")[0]
    assert "MedianPruner says so" in str(pruned.reason)
    with pytest.raises(RefusedError, match="pruner"):
        opened(startup=4)
    reader = Study(store, "p")
    assert len(reader.results()) == 12  # whoever only reads need not have it


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_pruner_that_remembers_in_its_trials_is_refused() -> None:
    for theirs in (
        optuna.pruners.HyperbandPruner(),
        optuna.pruners.PatientPruner(optuna.pruners.SuccessiveHalvingPruner(), patience=1),
        "median",
    ):
        with pytest.raises(UsageError):
            OptunaPruner(theirs)  # type: ignore[arg-type]


def test_a_trial_of_theirs_that_was_added_by_hand(tmp_path: Path) -> None:
    source = Storage(tmp_path / "o")
    study = optuna.create_study(storage=source, study_name="s")
    study.add_trial(create_trial(params={"x": 0.5}, distributions={"x": F(0, 1)}, value=1.0))
    assert import_study(source, "s", tmp_path / "store").attached == 1
