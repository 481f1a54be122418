"""The objective of a scikit-learn search: one candidate fitted and scored, fold by fold, wherever a worker runs it.

Of scikit-learn one private name is used, ``_safe_indexing``: it has no public one for rows of whatever was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from dibs.study import Trial

__all__ = ["CrossValidated"]


@dataclass
class CrossValidated:
    """The objective: the mean score over the folds, each fold's reported as it comes. Picklable, for workers."""

    estimator: Any
    X: Any
    y: Any
    folds: list[tuple[Any, Any]]
    scorer: Any
    fit_params: dict[str, Any]

    def __call__(self, trial: Trial) -> float:
        scores: list[float] = []
        for train, test in self.folds:
            model = clone(self.estimator).set_params(**clone(trial.point, safe=False))
            model.fit(*_part(self.X, self.y, train), **_params_of(self.fit_params, self.X, train))
            scores.append(float(self.scorer(model, *_part(self.X, self.y, test))))
            if trial.report(scores[-1]):
                break
        return float(np.mean(scores))


def _part(X: Any, y: Any, rows: Any) -> tuple[Any, ...]:
    from sklearn.utils import _safe_indexing

    return (_safe_indexing(X, rows),) if y is None else (_safe_indexing(X, rows), _safe_indexing(y, rows))


def _params_of(params: Mapping[str, Any], X: Any, rows: Any) -> dict[str, Any]:
    """What has one item per sample, such as weights, goes by fold; the rest as it is."""
    count = X.shape[0] if hasattr(X, "shape") else len(X)
    each = {name for name, held in params.items() if not isinstance(held, str) and _length(held) == count}
    return {name: _part(held, None, rows)[0] if name in each else held for name, held in params.items()}


def _length(held: Any) -> int:
    shape = getattr(held, "shape", None)
    if shape is not None:  # a sparse matrix has no len()
        return int(shape[0]) if shape else -1
    return len(held) if hasattr(held, "__len__") else -1
