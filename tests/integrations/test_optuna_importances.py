"""Importances: known functions come out in the known order, and what cannot be told is said instead of a number."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dibs.optuna
from dibs import Choice, Float, Int, Space, Store, Study
from dibs.cli import main
from dibs.errors import NoResult, RecordError, UsageError
from dibs.optuna import importances
from dibs.view import Importance, Source

SPACE = Space(
    much=Float(-1, 1), little=Float(-1, 1), none=Float(1e-5, 1, log=True), k=Int(0, 9), c=Choice(True, 1, "1", (1, 2)),
    epochs=30,
)  # fmt: skip


def searched(
    folder: Path, space: Space, score: Callable[[dict[str, Any]], float], trials: int = 200, goal: Any = "min"
) -> Study:
    store = Store(folder / "s", create=True, fsync="none")
    study = Study(store, "it", space, goal=goal, sampler="random", seed=4)
    for trial in study.trials(trials):
        with trial:
            trial.done(score(trial.point))
    return study


def by_name(study: Study) -> dict[str, Importance]:
    return {one.name: one for one in importances(study).parameters}


def hill(point: dict[str, Any]) -> float:
    return float(100 * point["much"] ** 2 + 10 * point["little"] ** 2)


def test_what_matters_most_comes_first_and_the_shares_add_up(tmp_path: Path) -> None:
    told = importances(searched(tmp_path, SPACE, hill))
    names = [one.name for one in told.parameters]
    assert names[:2] == ["much", "little"]
    assert set(names) == {"much", "little", "none", "k", "c"}, "a constant is no parameter of the search"
    shares = [one.importance for one in told.parameters]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] > 0.5
    assert (told.method, told.results, told.top, told.attached, told.outside) == ("PED-ANOVA", 200, 20, 0, 0)
    assert "Watanabe" in told.paper


def test_a_choice_and_a_goal_max(tmp_path: Path) -> None:
    found = importances(searched(tmp_path, SPACE, lambda point: 5.0 * (point["c"] == (1, 2)), goal="max"))
    assert found.parameters[0].name == "c"
    assert found.top > 20, "ties with the last good one are good, too"
    assert found.parameters[0].values == 4, "True, 1 and '1' are told apart"
    assert importances(Source.over(Study(tmp_path / "s", "it"))) == found, "the same results, the same numbers"


@pytest.mark.parametrize(("goal", "first"), [("max", "much"), ("min", "little")])
def test_it_asks_what_the_best_by_the_goal_have_in_common(tmp_path: Path, goal: str, first: str) -> None:
    study = searched(tmp_path, SPACE, lambda p: (p["much"] > 0.5) - float(p["little"] > 0.5), goal=goal)
    assert importances(study).parameters[0].name == first


def test_a_conditional_parameter_is_judged_among_those_that_have_it(tmp_path: Path) -> None:
    space = Space(opt=Choice("adam", "sgd"), momentum=Float(0, 1, when={"opt": ["sgd"]}), noise=Float(0, 1))
    study = searched(tmp_path, space, lambda p: 0.01 * p["noise"] + abs(p.get("momentum", 9.0) - 0.5))
    told = importances(study)
    found = {one.name: one for one in told.parameters}
    assert found["momentum"].active < 200
    assert found["momentum"].importance > 5 * found["noise"].importance
    assert any("momentum: judged among" in note for note in told.notes)


def test_a_parameter_of_which_one_value_was_seen_has_nothing(tmp_path: Path) -> None:
    study = Study(
        tmp_path / "s", "it", Space(x=Float(0, 1), y=Float(0, 1), z=Choice("a", "b"), u=Int(0, 3)), goal="min"
    )
    for k in range(60):
        study.attach({"x": k / 60, "y": 0.5, "z": "a", "u": 2}, (k - 20.0) ** 2)
    told = importances(study)
    assert [(one.name, one.importance) for one in told.parameters] == [("x", 1.0), ("u", 0.0), ("y", 0.0), ("z", 0.0)]
    assert any("only one value was seen of u, y, z" in note for note in told.notes)
    assert (told.results, told.attached) == (60, 60)


def test_too_few_results_or_nothing_to_tell_apart_is_no_result(tmp_path: Path) -> None:
    study = searched(tmp_path, SPACE, hill, trials=19)
    with pytest.raises(NoResult, match="19 done results: importances need 20"):
        importances(study)
    study.attach(study.results()[0].point, 0.5)
    assert importances(study).results == 20
    assert any("few results" in note for note in importances(study).notes)
    same = Study(tmp_path / "s", "same", SPACE, goal="min", sampler="random", seed=1)
    for trial in same.trials(30):
        with trial:
            trial.done(1.0)
    with pytest.raises(NoResult, match="all 30 results of study 'same' are equally good"):
        importances(same)


def test_failed_pruned_and_foreign_results_are_not_in_it(tmp_path: Path) -> None:
    study = searched(tmp_path, SPACE, hill, trials=40)
    for trial in study.trials(44):
        with trial:
            trial.fail("said so")
    path = next((tmp_path / "s").glob("study/it/trial/*/00000003-0.json"))
    body = json.loads(path.read_text())
    path.write_text(json.dumps({**body, "point": {**body["point"], "much": 17.0}}))
    told = importances(Study(tmp_path / "s", "it"))
    assert (told.results, told.outside) == (39, 1)


@pytest.mark.parametrize(
    "space",
    [
        Space(x=Float(0, 1), f=Float(0.1, 1.0, step=0.4), g=Float(2, 2), i=Int(5, 5), j=Int(1, 2, log=True)),
        Space(x=Float(0, 1), w=Float(-1e300, 1e300), l=Float(1e-150, 1e150, log=True), b=Int(-(2**62), 2**62)),
        Space(x=Float(0, 1), c=Choice("only"), o=Choice(*range(100), ordered=True), m=Choice(*map(str, range(300)))),
        Space({"x": Float(0, 1), "\u202eé": Choice("\x1b[31m", None), "a b": Int(0, 1)}),
    ],
    ids=["degenerate", "wide", "choices", "names"],
)
@pytest.mark.parametrize("scores", ["x", "huge", "two"])
def test_no_space_and_no_scores_break_it(tmp_path: Path, space: Space, scores: str) -> None:
    score = {"x": lambda p: p["x"], "huge": lambda p: p["x"] * 1.7e308, "two": lambda p: float(p["x"] > 0.9)}
    told = importances(searched(tmp_path, space, score[scores], trials=60))
    assert all(0.0 <= one.importance <= 1.0 for one in told.parameters)
    assert sum(one.importance for one in told.parameters) == pytest.approx(1.0)
    json.dumps(told.to_json(), allow_nan=False)


def test_a_space_without_anything_to_search_has_no_parameters(tmp_path: Path) -> None:
    study = Study(tmp_path / "s", "it", Space(epochs=3), goal="min", sampler="random")
    for k in range(30):
        study.attach({"epochs": 3}, float(k))
    assert importances(study).parameters == ()


def test_without_a_definition_there_is_no_space_to_speak_of(tmp_path: Path) -> None:
    study = searched(tmp_path, SPACE, hill, trials=25)
    (tmp_path / "s/study/it/study.json").write_bytes(b"{")
    with pytest.raises(RecordError, match="does not parse"):
        importances(Source.of(study.store, "it"))
    told = CliRunner().invoke(main, ["importances", "--store", str(tmp_path / "s"), "--study", "it"])
    assert (told.exit_code, told.stdout, told.stderr.count("\n")) == (3, "", 1)
    (tmp_path / "s/study/it/study.json").unlink()
    with pytest.raises(UsageError, match="never given a space"):
        importances(Source.of(study.store, "it"))


def test_the_verb_says_the_method_and_what_it_does_not_see(tmp_path: Path) -> None:
    searched(tmp_path, SPACE, hill, trials=30)
    run = CliRunner().invoke(main, ["importances", "--store", str(tmp_path / "s")])
    assert run.exit_code == 0
    assert "PED-ANOVA: what sets the best 3 results apart" in run.stdout
    assert "Watanabe" in run.stdout
    told = json.loads(CliRunner().invoke(main, ["importances", "--store", str(tmp_path / "s"), "--json"]).stdout)
    assert {one["name"] for one in told["parameters"]} == {"much", "little", "none", "k", "c"}
    few = Study(tmp_path / "s", "few", SPACE, goal="min")
    few.attach({"much": 0, "little": 0, "none": 0.1, "k": 1, "c": True}, 1.0)
    run = CliRunner().invoke(main, ["importances", "--store", str(tmp_path / "s"), "--study", "few"])
    assert (run.exit_code, run.stdout) == (5, "")
    assert "importances need 20" in run.stderr


def test_without_the_extra_it_is_one_sentence(tmp_path: Path) -> None:
    searched(tmp_path, SPACE, hill, trials=1)
    (tmp_path / "optuna.py").write_text("raise ImportError('no such library here')\n")
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from dibs.cli import main; main()",
    ]
    run = subprocess.run([*command, "importances", "--store", str(tmp_path / "s")], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "dibs: importances need Optuna, which is not installed here: pip install 'dibs[optuna]'\n"


def test_only_numpy_is_needed_beside_it() -> None:
    probe = (
        "import sys\n"
        "class Gone:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('scipy', 'sklearn', 'torch', 'pandas'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "from dibs import Float, Space\n"
        "from dibs.integrations._optuna_importances import _raw\n"
        "print(_raw(Space(x=Float(0, 1)), ['x'], [({'x': k / 40}, float(k)) for k in range(40)])['x'] > 0)\n"
    )
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert run.stdout == "True\n", run.stderr


def test_it_is_where_the_other_names_are() -> None:
    assert dibs.optuna.importances is importances
