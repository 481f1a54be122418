"""A log on a full disk: what is printed is lost and said to be, and no trial fails for it."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.study.processes import open_study, program, record, run

from dibs import Study, Trial


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return open_study(tmp_path)


def fill() -> None:
    """From now on the descriptors of the log answer as a full disk does."""
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    os.dup2(full, 2)
    os.close(full)


def log_of(study: Study, n: int) -> str:
    root = study.store.backend.root
    assert root is not None
    return (root / f"study/s/work/{n:08d}-0/log.txt").read_text()


def captured(study: Study, objective: Any, trials: int = 1) -> None:
    study.run(objective, trials, capture=True, progress=False, max_failures=None)


def test_prints_are_lost_and_counted(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: Trial) -> float:
        print("kept")
        fill()
        print("lost", flush=True)
        print("too", file=sys.stderr)
        return 1.0

    with caplog.at_level(logging.WARNING, "dibs"):
        captured(study, objective)
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.score) == ("done", 1.0)
    assert "9 bytes of what was printed are not in the log" in caplog.text
    assert "No space left on device" in caplog.text
    assert log_of(study, 0) == "kept\n"


def test_what_it_raised_stays_that(study: Study) -> None:
    def objective(trial: Trial) -> float:
        fill()
        if trial.n:
            sys.stderr.close()
        raise ValueError("its own")

    captured(study, objective, 2)
    for n in range(2):
        found = record(study, n)
        assert found is not None
        assert (found.state, found.reason) == ("failed", "ValueError: its own")


def test_what_follows_is_as_if_nothing_had_been(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: Trial) -> float:
        if trial.n == 0:
            fill()
            print("lost")
            sys.stdout.close()
        print("kept") if trial.n else None
        return 1.0

    with caplog.at_level(logging.WARNING, "dibs"):
        captured(study, objective, 2)
    assert log_of(study, 1) == "kept\n"
    assert caplog.text.count("not in the log") == 1


def test_a_worker_process_does_the_same(tmp_path: Path) -> None:
    body = """
def objective(trial):
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    os.dup2(full, 2)
    print("lost")
    print("too", file=sys.stderr)
    if trial.n == 1:
        raise ValueError("its own")
    return 1.0

if __name__ == "__main__":
    study().run(objective, 2, workers=2, max_failures=None)
"""
    code, _, err = run(program(tmp_path, body))
    assert code == 0, err
    assert "9 bytes of what was printed are not in the log" in err
    first, second = (record(open_study(tmp_path), n) for n in range(2))
    assert first is not None
    assert second is not None
    assert (first.state, second.state, second.reason) == ("done", "failed", "ValueError: its own")
