"""A run that ends once enough of its trials have failed: here, and in worker processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.study.processes import open_study, program, run

from dibs import Study, Trial
from dibs.store import Store
from dibs.study._run import run as run_study
from dibs.study._work import Halt

MAIN = """
import time
from pathlib import Path
from dibs.study._run import run
from dibs.study._work import Halt

def objective(trial):
    if trial.n == 0:  # fails once the other one has begun
        while not Path(__file__).with_name("begun").exists():
            time.sleep(0.01)
        raise ValueError("boom")
    Path(__file__).with_name("begun").touch()
    while {now} or not Path(__file__).with_name("halted").exists():
        time.sleep(0.01)
    return 1.0

def shown(event):
    if "nothing new is begun" in getattr(event, "text", ""):
        Path(__file__).with_name("halted").touch()

if __name__ == "__main__":
    summary = run(study(), objective, 9, 2, halt=Halt(1, now={now}), max_failures=None, on_event=shown)
    print(summary.why, summary.ran, summary.failed, sorted(summary.states.items()))
"""


def fails(trial: Trial) -> float:
    if trial.n < 4:
        raise ValueError("boom")
    return 1.0


def test_here_it_ends_after_so_many(tmp_path: Path) -> None:
    summary = run_study(open_study(tmp_path), fails, 9, halt=Halt(2), max_failures=None, progress=False)
    assert (summary.why, summary.ran, summary.failed, summary.unfinished) == ("halted", 2, 2, True)


def test_a_failure_that_is_tried_again_is_none(tmp_path: Path) -> None:
    summary = run_study(open_study(tmp_path), fails, 3, halt=Halt(2), retries=1, max_failures=None, progress=False)
    assert (summary.why, summary.ran, summary.failed) == ("halted", 4, 4)


@pytest.mark.parametrize(("now", "other"), [(False, "done"), (True, "interrupted")])
def test_what_runs_elsewhere_ends_well_or_is_interrupted(tmp_path: Path, now: bool, other: str) -> None:
    code, said, err = run(program(tmp_path, MAIN.format(now=now)))
    assert code == 0, err
    assert said.strip() == f"halted 2 1 {sorted([(other, 1), ('failed', 1)])}"


def test_a_trial_may_be_done_without_a_score_where_nobody_asked_for_one(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    for trial in study.trials(1):
        trial._attempt.ended = {"cause": "ok", "code": 0}
        trial._close("done", score=None)
        record = trial._attempt.record()
    (found,) = Study(Store(study.store.url), study.name).results()
    assert (found.state, found.score) == ("done", None)
    assert record.blob is not None
    assert b'"cause":"ok"' in study.store.get(record.blob)
