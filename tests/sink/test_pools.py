"""The sink inside real pools; what each returned to the main process is thrown away, as optimisers do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sink.programs import ran


@pytest.mark.parametrize("pool", ["fork", "spawn", "loky"])
def test_the_best_trial_of_a_pool(pool: str, tmp_path: Path) -> None:
    found = ran(pool, tmp_path)
    assert (found["score"], found["params"], found["matched_best_params"], found["tied_count"]) == (
        0.0,
        {"x": 31},
        True,
        1,
    )
    assert (found["artifact_is_winner"], found["artifact_x"], found["skipped"]) == (True, 31, 0)
    assert found["artifact_pid"] == found["scalars"]["pid"] != found["main"]
    assert found["kept"] == found["blobs"]  # one pair per process, and no blob that nobody names
    assert list(tmp_path.iterdir()) == []


def test_optuna_through_joblib(tmp_path: Path) -> None:
    found = ran("optuna", tmp_path)  # that the study and the sink agree is asserted there
    assert found["artifact_is_winner"]
    assert found["artifact_pid"] == found["scalars"]["pid"] != found["main"]


@pytest.mark.parametrize("name", ["locked", "child_ends"])
def test_a_fork_beside_a_thread_and_one_that_ends_by_itself(name: str, tmp_path: Path) -> None:
    found = ran(name, tmp_path)
    assert (found["score"], found["artifact_x"]) == (0.0, 31)
    assert list(tmp_path.iterdir()) == []


def test_a_pid_that_is_given_out_again(tmp_path: Path) -> None:
    found = ran("pid_again", tmp_path)
    assert (found["score"], found["artifact_is_winner"], found["tied_count"]) == (0.0, True, 2)


def test_a_process_per_trial_is_not_an_artefact_per_trial(tmp_path: Path) -> None:
    found = ran("each_its_own", tmp_path)
    assert (found["score"], found["artifact_x"]) == (0.0, 31)
    assert found["blobs"] <= 8 + 2  # of 48: those that were better when they began, and two at a time


def test_an_artefact_that_forks_when_it_is_pickled(tmp_path: Path) -> None:
    assert ran("forks_when_pickled", tmp_path)["score"] == 1.0
