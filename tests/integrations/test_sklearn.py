"""DibsSearchCV: a scikit-learn estimator like others, and one search for all who fit the same thing."""

from __future__ import annotations

import ast
import functools
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

from dibs import Choice, Float, Int, RefusedError, Study
from dibs.errors import NoResult, UsageError
from dibs.integrations._sklearn_identity import identity
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


def test_no_candidate_at_all_says_why_again(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    X, y = iris
    with pytest.raises(ValueError, match="C"):
        search(tmp_path, space={"C": Choice(-1.0, -2.0)}, trials=2).fit(X, y)
    with pytest.raises(NoResult, match=r"2 failed.*'C' parameter.*retry"):
        search(tmp_path, space={"C": Choice(-1.0, -2.0)}, trials=2).fit(X, y)


@pytest.mark.parametrize("trials", [0, -1, True, 2.0, "3", None])
def test_a_wrong_number_of_trials_is_named(tmp_path: Path, iris: tuple[Any, Any], trials: Any) -> None:
    with pytest.raises(UsageError, match="trials="):
        search(tmp_path, trials=trials).fit(*iris)


def test_several_scorings_are_refused(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    with pytest.raises(UsageError, match="must be one"):
        search(tmp_path, scoring=["accuracy", "f1"]).fit(*iris)


IDENTITIES = """
import sys
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from dibs.integrations._sklearn_identity import identity
def mine(model, X, y): return model.score(X, y) if model.C in {"a", "b", "c", 1.0} else 0.0
class Odd:
    def __init__(self): self.f = mine
parts = [mine, lambda a, b, c: 0.5, np.log1p, make_scorer(f1_score, average="macro"), Odd(), {"b", "a", "c"},
    make_pipeline(FunctionTransformer(mine), LogisticRegression(random_state=np.random.RandomState(3)))]
print([identity(part) for part in parts])
"""


def test_functions_and_objects_are_known_in_every_process() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", IDENTITIES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
    assert len(set(ast.literal_eval(said.pop().decode()))) == 7


def _scorer(power: int) -> Any:
    def score(model: Any, X: Any, y: Any) -> float:
        return float(model.score(X, y)) ** power

    return score


def test_what_differs_somewhere_in_the_middle_is_another_search() -> None:
    long = np.linspace(0, 1, 5000)
    other = long.copy()
    other[2500] = 7
    assert identity(LogisticRegression(class_weight=long)) != identity(LogisticRegression(class_weight=other))
    assert identity(LogisticRegression(class_weight=long)) == identity(LogisticRegression(class_weight=long.copy()))
    assert identity("x" * 5000 + "a" + "x" * 5000) != identity("x" * 5000 + "b" + "x" * 5000)
    assert identity(_scorer(1)) != identity(_scorer(2)), "the code is the same, what it holds is not"
    assert identity(_scorer(2)) == identity(_scorer(2))
    assert identity(lambda a: a + 1) != identity(lambda a: a + 2)
    assert identity({"a": 1}, 2) != identity({"a": 1, "b": 2})
    assert identity(1) != identity(True) != identity(1.0) != identity("1")
    assert identity(make_scorer(f1_score)) != identity(make_scorer(f1_score, greater_is_better=False))
    assert identity(functools.partial(f1_score, average="macro")) != identity(functools.partial(f1_score))


def test_an_array_is_what_it_holds_wherever_and_in_whatever_order(tmp_path: Path) -> None:
    array = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "a.npy", array)
    wide = np.zeros((3, 8))
    wide[:, ::2] = array
    for twin in (array.copy(), np.asfortranarray(array), np.load(tmp_path / "a.npy", mmap_mode="r"), wide[:, ::2]):
        assert identity(twin) == identity(array)
    others = (array.T, array.reshape(4, 3), array.astype(np.float32), array.ravel(), np.ma.masked_equal(array, 3.0))
    assert len({identity(array), *map(identity, others)}) == 6


def test_what_cannot_be_told_apart_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for thing in (endless, (k for k in [1]), LogisticRegression(class_weight=threading.Lock())):
        with pytest.raises(UsageError, match="a search is known by"):
            identity(thing)


def test_groups_stay_together(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    X, y = iris
    groups = np.arange(150) % 5
    found = search(tmp_path, cv=GroupKFold(5), trials=2).fit(X, y, groups=groups)
    assert found.n_splits_ == 5
    assert search(tmp_path, cv=GroupKFold(5), trials=2).fit(X, y, groups=groups[::-1]).study_.name != found.study_.name
    with pytest.raises(ValueError, match="groups"):
        search(tmp_path, cv=GroupKFold(5), trials=2).fit(X, y)


class Recording(LogisticRegression):
    """Fits as ever, if it is given one row of ``extra`` for each sample."""

    def fit(self, X: Any, y: Any, extra: Any = None) -> Any:
        assert extra is None or extra.shape[0] == len(X)
        return super().fit(X, y)


def test_a_sparse_matrix_with_a_row_for_each_sample_goes_by_fold(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    X, y = iris
    extra = sparse.csr_matrix(np.eye(150))
    found = search(tmp_path, estimator=Recording(max_iter=200), trials=2).fit(X, y, extra=extra)
    assert found.cv_results_["state"].tolist() == ["done"] * 2


def test_another_space_is_another_search(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    one, other = search(tmp_path).fit(*iris), search(tmp_path, space={"C": Float(1.0, 2.0)}).fit(*iris)
    assert one.study_.name != other.study_.name


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


def test_targets_are_what_the_estimator_takes(tmp_path: Path, iris: tuple[Any, Any]) -> None:
    X, y = iris
    ridge = search(tmp_path, estimator=Ridge(), space={"alpha": Float(1e-3, 1.0)}, trials=1)
    assert get_tags(ridge).target_tags.multi_output
    assert ridge.fit(X, np.stack([y, -y], axis=1)).predict(X).shape == (150, 2)
