"""A scikit-learn search whose candidates are the trials of a study: machines that fit the same thing share the work.

What is searched is known by a digest of data, estimator, folds and scoring, so that nobody joins a search of something
else (``_sklearn_identity``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dibs._clock import SystemClock
from dibs.errors import NoResult, RefusedError, UsageError
from dibs.search import Sampler
from dibs.space import Space
from dibs.store import Store
from dibs.study import Study, TrialResult
from dibs.view import Source, trial_detail

from ._sklearn_folds import CrossValidated
from ._sklearn_identity import identity

__all__ = ["DibsSearchCV"]


def _best_has(method: str) -> Callable[[Any], bool]:
    def check(search: Any) -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), method)
        return True

    return check


def _passed_on(method: str) -> Any:
    def call(self: Any, X: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        return getattr(self.best_estimator_, method)(X)

    call.__name__, call.__doc__ = method, f"``{method}`` of the best estimator, fitted to all of the data."
    return available_if(_best_has(method))(call)


class DibsSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc,unused-ignore]
    """``DibsSearchCV(SVC(), {"C": Float(1e-3, 1e3, log=True)}, store="/mnt/shared/studies").fit(X, y)``

    Guarantee: exactly ``trials`` candidates over all processes and machines that fit the same thing in one store, each
    cross-validated once; all of them end with the same ``cv_results_`` and ``best_params_``.

    ``space``: the estimator's parameters by name (``step__parameter`` in a pipeline). ``study``: its name; None = one
    made of a digest of data, estimator, folds, scoring and space, so that equal searches meet and others do not: folds
    drawn anew by each process (``shuffle=True`` without a ``random_state``) never meet. ``scoring``: a name or a callable,
    more is better; a function counts by its name where it can be imported, else with its code. ``workers``:
    processes here (more than one needs a ``__main__`` guard). ``sampler``, ``seed``: the study's.

    After ``fit``: ``best_params_``, ``best_score_``, ``best_index_``, ``cv_results_``, ``n_splits_``, ``scorer_``,
    ``study_``, and with ``refit`` ``best_estimator_``, which predict and the like ask. Raises RefusedError for a ``study``
    that searched something else, NoResult if no candidate could be fitted, and what Study raises.
    """

    def __init__(
        self,
        estimator: Any,
        space: Space | Mapping[str, Any],
        *,
        store: Store | str | os.PathLike[str],
        study: str | None = None,
        trials: int = 20,
        cv: Any = None,
        scoring: Any = None,
        workers: int = 1,
        refit: bool = True,
        sampler: str | Sampler | None = None,
        seed: int | None = None,
    ) -> None:
        self.estimator, self.space, self.store, self.study = estimator, space, store, study
        self.trials, self.cv, self.scoring, self.workers, self.refit = trials, cv, scoring, workers, refit
        self.sampler, self.seed = sampler, seed

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **fit_params: Any) -> DibsSearchCV:
        """Search, then fit the best candidate to all of the data.

        ``groups``: of the samples, for a ``cv`` such as GroupKFold. ``fit_params`` go to every fit, by fold where they
        have one item per sample.
        """
        if isinstance(self.trials, bool) or not isinstance(self.trials, int | np.integer) or self.trials < 1:
            raise UsageError(f"trials={self.trials!r} must be an integer of at least 1")
        X, y, groups = indexable(X, y, groups)
        folds = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        if isinstance(self.scoring, list | tuple | set | dict):
            raise UsageError(
                f"scoring={self.scoring!r:.80} must be one, by which the best is found: a name or a callable"
            )
        self.scorer_ = check_scoring(self.estimator, scoring=self.scoring)
        splits = list(folds.split(X, y, groups))
        self.n_splits_ = len(splits)
        self.study_ = self._study(identity(X, y, splits, fit_params, self.estimator, self.scoring))
        objective = CrossValidated(clone(self.estimator), X, y, splits, self.scorer_, fit_params)
        self.study_.run(
            objective, self.trials, self.workers, progress=False, wait=True, max_failures=min(3, self.trials)
        )
        self._tell(self.study_.results())
        if self.refit:
            self._refit(X, y, fit_params)
        return self

    def _study(self, digest: str) -> Study:
        """The study of this search, or RefusedError if there is another one of its name."""
        store = self.store if isinstance(self.store, Store) else Store(self.store)
        space = self.space if isinstance(self.space, Space) else Space(self.space)
        name = self.study if self.study is not None else f"sklearn-{identity(digest, space.to_json())[:16]}"
        if not store.claim(f"sklearn/{name}", meta={"searched": digest}):
            there = store.resolve(f"sklearn/{name}")
            if there is not None and there.meta.get("searched") != digest:
                raise RefusedError(
                    f"study {name!r} searched other data, another estimator, or scored in another way: give this search "
                    "another name, or none",
                    field="searched",
                    theirs=there.meta.get("searched"),
                    ours=digest,
                )
        return Study(store, name, space, goal="max", sampler=self.sampler, seed=self.seed)

    def _tell(self, results: list[TrialResult]) -> None:
        source, best = Source.over(self.study_), self._best(results)
        splits = np.full((len(results), self.n_splits_), np.nan)
        for at, result in enumerate(results):
            attempts = trial_detail(source, result.n).attempts
            curve = next((attempt.curve for attempt in attempts if attempt.attempt == result.attempt), ())
            for step, score in curve or (((0, result.score),) if result.score is not None else ()):
                if step < self.n_splits_:
                    splits[at, step] = score
        done = [result.state == "done" for result in results]
        mean = np.array([result.score if result.state == "done" else np.nan for result in results], float)
        self.cv_results_ = {
            "params": [dict(result.point) for result in results],
            **{f"param_{name}": _column(name, results) for name in self.study_.space.names},
            **{f"split{k}_test_score": splits[:, k] for k in range(self.n_splits_)},
            "mean_test_score": mean,
            "std_test_score": np.array([row.std() if ok else np.nan for row, ok in zip(splits, done, strict=True)]),
            "rank_test_score": np.array([1 + int((mean > own).sum()) if own == own else len(mean) for own in mean]),
            "took_s": np.array([result.took or np.nan for result in results], float),
            "trial": np.array([result.n for result in results], int),
            "state": np.array([result.state for result in results], object),
        }
        self.best_index_ = next(at for at, result in enumerate(results) if result.n == best.n)
        self.best_params_, self.best_score_ = dict(best.point), best.score

    def _best(self, results: list[TrialResult]) -> TrialResult:
        try:
            return self.study_.best()
        except NoResult as none:
            why = next((result.reason for result in reversed(results) if result.reason), None)
            if why is None:
                raise
            raise NoResult(
                f"{none}; the last one: {why}. When that is mended, study_.retry() or `dibs retry --study {self.study_.name}` "
                "has them tried again"
            ) from None

    def _refit(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        clock = SystemClock()
        began = clock.monotonic()
        self.best_estimator_ = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        self.best_estimator_.fit(*((X,) if y is None else (X, y)), **fit_params)
        self.refit_time_ = clock.monotonic() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def score(self, X: Any, y: Any = None) -> float:
        """The best estimator's score by ``scoring``."""
        check_is_fitted(self, "best_estimator_")
        return float(self.scorer_(self.best_estimator_, X) if y is None else self.scorer_(self.best_estimator_, X, y))

    predict = _passed_on("predict")
    predict_proba = _passed_on("predict_proba")
    predict_log_proba = _passed_on("predict_log_proba")
    decision_function = _passed_on("decision_function")
    score_samples = _passed_on("score_samples")
    transform = _passed_on("transform")
    inverse_transform = _passed_on("inverse_transform")

    @property
    def classes_(self) -> Any:
        """The class labels of the best estimator."""
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """How many features ``fit`` was given."""
        try:
            check_is_fitted(self, "best_estimator_")
        except NotFittedError as error:
            raise AttributeError(f"{type(self).__name__} has no n_features_in_ before it is fitted") from error
        return int(self.best_estimator_.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags.multi_output = inner.target_tags.multi_output
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.array_api_support = False
        return tags


def _column(name: str, results: list[TrialResult]) -> Any:
    """A parameter over all candidates, masked where it is not active."""
    values = np.empty(len(results), object)
    values[:] = [result.point.get(name) for result in results]
    return np.ma.MaskedArray(values, mask=[name not in result.point for result in results])
