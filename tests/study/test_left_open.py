"""A loop whose body closes no trial says so: it would go through every trial again and again without a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.study.processes import open_study

from dibs import Study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return open_study(tmp_path)


def test_a_loop_whose_trials_nobody_closes_says_so_once(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    for trial in study.trials(2):
        if trial.attempt == 2:
            trial.done(1.0)
    (said,) = [line for line in caplog.messages if "with trial:" in line]
    assert said.startswith("trial 0 was left open")


def test_leaving_a_loop_early_is_not_forgetting(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    for _ in study.trials(2):
        break
    assert caplog.messages == []
