"""DibsSearchCV: a scikit-learn estimator like others, and one search for all who fit the same thing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from dibs import Choice, Float, Int, RefusedError, Study
from dibs.sklearn import DibsSearchCV

SPACE = {"C": Float(1e-3, 1e2, log=True)}


@pytest.fixture(scope="module")
def iris() -> tuple[Any, Any]:
    return load_iris(return_X_y=True)


def search(tmp_path: Path, **given: Any) -> DibsSearchCV:
    return DibsSearchCV(
        given.pop("estimator", LogisticRegression(max_iter=200)), given.pop("space", SPACE), store=tmp_path / "store",
        **{"trials": 4, "cv": 3, "seed": 1, **given},
    )  # fmt: skip


def test_the_results_are_those_of_the_folds(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    X, y = iris
    found = search(tmp_path, scoring="neg_log_loss").fit(X, y)
    told = found.cv_results_
    splits = np.array([told[f"split{k}_test_score"] for k in range(3)])
    assert splits.shape == (3, 4)
    assert np.allclose(splits.mean(axis=0), told["mean_test_score"])
    assert np.allclose(splits.std(axis=0), told["std_test_score"])
    assert sorted(told["rank_test_score"]) == [1, 2, 3, 4]
    assert told["params"][found.best_index_] == found.best_params_
    assert told["mean_test_score"][found.best_index_] == found.best_score_ == told["mean_test_score"].max()
    assert told["param_C"].tolist() == [params["C"] for params in told["params"]]
    assert found.best_params_["C"] == found.best_estimator_.C
    assert found.score(X, y) == found.scorer_(found.best_estimator_, X, y)
    assert (found.predict(X) == found.best_estimator_.predict(X)).all()
    assert found.predict_proba(X).shape == (150, 3)
    assert not hasattr(found, "transform")
    assert pickle.loads(pickle.dumps(found)).best_params_ == found.best_params_


def test_the_same_search_is_joined_and_another_one_is_not(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    X, y = iris
    first = search(tmp_path).fit(X, y)
    again = clone(search(tmp_path)).fit(X, y)
    assert again.study_.name == first.study_.name
    assert [attempt.attempt for attempt in again.study_.results()] == [0] * 4
    assert again.best_params_ == first.best_params_
    assert search(tmp_path).fit(X[::2], y[::2]).study_.name != first.study_.name
    assert search(tmp_path, cv=KFold(3)).fit(X, y).study_.name != first.study_.name
    search(tmp_path, study="mine").fit(X, y)
    search(tmp_path, study="mine").fit(X, y)
    with pytest.raises(RefusedError, match="another name"):
        search(tmp_path, study="mine").fit(X[::2], y[::2])


def test_a_pipeline_with_conditions(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    X, y = iris
    pipe = make_pipeline(StandardScaler(), Ridge())
    space = {
        "ridge__solver": Choice("svd", "sag"), "ridge__alpha": Float(1e-3, 10.0, log=True),
        "ridge__max_iter": Int(50, 500, when={"ridge__solver": ["sag"]}), "standardscaler__with_mean": Choice(True, False),
    }  # fmt: skip
    found = search(tmp_path, estimator=pipe, space=space, trials=6, cv=KFold(3, shuffle=True, random_state=0)).fit(X, y)
    assert isinstance(found.best_estimator_, Pipeline)
    column = found.cv_results_["param_ridge__max_iter"]
    assert column.mask.tolist() == [solver != "sag" for solver in found.cv_results_["param_ridge__solver"]]


def test_candidates_that_cannot_be_fitted_are_told(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    X, y = iris
    found = search(tmp_path, space={"C": Choice(1.0, -1.0)}, sampler="grid", trials=2).fit(X, y)
    assert sorted(found.cv_results_["state"]) == ["done", "failed"]
    assert np.isnan(found.cv_results_["mean_test_score"]).sum() == 1
    assert found.best_params_ == {"C": 1.0}
    with pytest.raises(ValueError, match="C"):
        search(tmp_path, space={"C": Choice(-1.0, -2.0, -3.0)}, trials=3).fit(X, y)


def test_several_processes_share_one_search(tmp_path: Path) -> None:
    program = tmp_path / "search.py"
    program.write_text(
        "import sys\n"
        "from sklearn.datasets import load_iris\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from dibs import Float\n"
        "from dibs.sklearn import DibsSearchCV\n"
        "if __name__ == '__main__':\n"
        f"    found = DibsSearchCV(LogisticRegression(max_iter=200), {{'C': Float(1e-3, 1e2, log=True)}}, "
        f"store={str(tmp_path / 'store')!r}, study='s', trials=6, cv=3, seed=1, workers=int(sys.argv[1]))\n"
        "    print(found.fit(*load_iris(return_X_y=True)).best_params_)\n"
    )
    crew = [
        subprocess.Popen([sys.executable, str(program), workers], stdout=subprocess.PIPE, text=True) for workers in "12"
    ]
    said = {process.communicate()[0] for process in crew}
    assert len(said) == 1
    assert [result.attempt for result in Study(tmp_path / "store", "s").results("done")] == [0] * 6


@pytest.mark.timeout(300)  # some fifty searches
@pytest.mark.filterwarnings("ignore")  # the checks fit nonsense on purpose
def test_scikit_learns_own_checks(tmp_path: Path) -> None:
    failed = {}
    for estimator, check in estimator_checks_generator(search(tmp_path, trials=1, cv=2)):
        name = getattr(check, "func", check).__name__
        try:
            check(estimator)
        except SkipTest:  # of what this machine has not
            continue
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    assert failed == {}
