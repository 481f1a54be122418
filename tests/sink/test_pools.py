"""The sink inside real pools; what each returned to the main process is thrown away, as optimisers do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sink.programs import LIMIT_S, ROOT, ran


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


@pytest.mark.parametrize("name", ["locked", "child_ends", "made_by_a_worker"])
def test_a_fork_beside_a_thread_and_workers_that_end_by_themselves(name: str, tmp_path: Path) -> None:
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


MAIN = """
import json, multiprocessing, pickle, sys
from joblib import Parallel, delayed
from dibs import Sink

class Model:
    pass

def objective(sink, x):
    sink.record(x, artifact=Model())

def nameless(sink, x):
    sink.record(x, artifact=lambda: x)

if __name__ == "__main__":
    for start in (objective, nameless):
        for pool in ("fork", "spawn", "loky"):
            with Sink.create() as sink:
                if pool == "loky":
                    Parallel(n_jobs=2)(delayed(start)(sink, x) for x in range(3))
                else:
                    with multiprocessing.get_context(pool).Pool(1) as workers:
                        workers.starmap(start, [(sink, x) for x in range(3)])
                model = sink.best().artifact
                if start is nameless:
                    print(json.dumps([pool, model()]))
                else:
                    print(json.dumps([pool, type(model) is Model and len(pickle.dumps(model)) > 0]))
"""


def test_a_class_of_the_main_script_comes_back_as_that_class(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(MAIN)
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "DIBS_SINK_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, script], env=environ, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [pool, found] for found in (True, 2) for pool in ("fork", "spawn", "loky")
    ]
