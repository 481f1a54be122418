"""The callbacks with the libraries themselves: every round is reported, and True ends the training."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dibs import Float, Study, Trial, UsageError
from dibs.integrations.callbacks import for_keras, for_lightgbm, for_xgboost
from dibs.view import Source, trial_detail

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]  # the libraries' own
os.environ.setdefault("KERAS_BACKEND", "jax")
X = np.linspace(-1, 1, 200).reshape(-1, 1)
Y = (X[:, 0] ** 2).astype(float)


def xgboost(trial: Trial, metric: str | None) -> int:
    import xgboost

    data = xgboost.DMatrix(X, Y)
    callback = for_xgboost(trial, metric)
    return int(
        xgboost.train(
            {"nthread": 1}, data, 10, evals=[(data, "v")], verbose_eval=False, callbacks=[callback]
        ).num_boosted_rounds()
    )


def lightgbm(trial: Trial, metric: str | None) -> int:
    import lightgbm

    data = lightgbm.Dataset(X, Y)
    params = {"verbose": -1, "num_threads": 1, "metric": "l2"}
    return int(
        lightgbm.train(params, data, 10, valid_sets=[data], callbacks=[for_lightgbm(trial, metric)]).current_iteration()
    )


def keras(trial: Trial, metric: str | None) -> int:
    import keras

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(loss="mse")
    callback = for_keras(trial, metric or "val_loss")
    return len(model.fit(X, Y, epochs=10, validation_data=(X, Y), verbose=0, callbacks=[callback]).epoch)


LIBRARIES = [xgboost, lightgbm, keras]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path / "store", "s", {"x": Float(0.0, 1.0)}, goal="min")


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_round_is_reported(study: Study, library: Callable[..., int]) -> None:
    for trial in study.trials(1):
        with trial:
            assert library(trial, None) == 10
    [attempt] = trial_detail(Source.over(study), 0).attempts
    assert [step for step, _ in attempt.curve] == list(range(10))
    assert attempt.score == attempt.curve[-1][1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_true_ends_the_training(study: Study, library: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    monkeypatch.setattr(Trial, "report", lambda trial, score, step=None: steps.append(step) or len(steps) == 3)
    for trial in study.trials(1):
        assert library(trial, None) == 3
        trial.done(1.0)
    assert steps == [0, 1, 2]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_metric_that_is_not_there_is_named(study: Study, library: Callable[..., int]) -> None:
    for trial in study.trials(1):
        with pytest.raises(UsageError, match="nope"):
            library(trial, "nope")
        trial.done(1.0)
