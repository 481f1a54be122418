"""Optuna on a store with real processes: racing, killed, forked; what one reader saw, all see."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState
from tests.buckets.servers import Server
from tests.parts import store_over

from dibs import Store
from dibs.backend import CountingBackend, MemoryBackend
from dibs.optuna import Storage

LIMIT_S = 90.0
WORKER = """
import os, sys
import optuna
from dibs.optuna import Storage

optuna.logging.set_verbosity(optuna.logging.ERROR)

def objective(trial):
    x, c = trial.suggest_float("x", -1, 1), trial.suggest_categorical("c", ["a", "b"])
    trial.report(x, 0)
    trial.set_user_attr("pid", os.getpid())
    return x * x + (c == "b")

study = optuna.load_study(storage=Storage(sys.argv[1]), study_name="s", sampler=optuna.samplers.RandomSampler())
print("ready", flush=True)
sys.stdin.readline()
study.optimize(objective, n_trials=int(sys.argv[2]))
"""


def worker(url: str, trials: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, url, str(trials)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def ready(workers: list[subprocess.Popen[str]]) -> None:
    """All of them begin at once."""
    for process in workers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in workers:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def wait_until(there: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not there():
        assert time.monotonic() < until, "it does not come"
        time.sleep(0.01)


def plain(storage: Storage) -> list[Any]:
    """All trials of all studies, as values that compare."""
    return [trial for study in storage.get_all_studies() for trial in storage.get_all_trials(study._study_id)]


def create(storage: Storage) -> optuna.Study:
    return optuna.create_study(storage=storage, study_name="s", sampler=optuna.samplers.RandomSampler(seed=1))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "store")


def race(storage: Storage, workers: int, trials: int) -> None:
    study = create(storage)
    crew = [worker(storage.store.url, trials) for _ in range(workers)]
    ready(crew)
    for process in crew:
        process.communicate()
        assert process.returncode == 0
    told = study.trials
    assert [trial.number for trial in told] == list(range(workers * trials))
    assert all(trial.state is TrialState.COMPLETE and set(trial.params) == {"x", "c"} for trial in told)
    for pid in {trial.user_attrs["pid"] for trial in told}:
        assert sum(trial.user_attrs["pid"] == pid for trial in told) == trials
    assert plain(Storage(storage.store)) == plain(storage)


def test_processes_that_race_on_a_folder(storage: Storage) -> None:
    race(storage, 3, 15)


def test_processes_that_race_on_a_bucket(server: Server, place: str, credentials: None) -> None:
    race(Storage(Store.on_bucket(server.endpoint, server.bucket, place, create=True)), 2, 5)


def test_a_killed_writer_stops_nobody(storage: Storage) -> None:
    study = create(storage)
    for k in range(4):
        victim = worker(storage.store.url, 10_000)
        ready([victim])
        before = len(study.trials)
        wait_until(lambda before=before: len(study.trials) > before + 2)
        victim.kill()
        victim.communicate()
        survivor = worker(storage.store.url, 3)
        ready([survivor])
        survivor.communicate()
        assert survivor.returncode == 0, k
    assert sum(trial.state is TrialState.RUNNING for trial in study.trials) <= 4
    assert plain(Storage(storage.store)) == plain(storage)


def test_half_an_entry_stops_nobody(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    study = create(storage)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=5)
    assert storage.store.backend.root is not None
    entries = sorted((storage.store.backend.root / "optuna/journal/entry").rglob("*.json"))
    param = next(path for path in reversed(entries) if "param_name" in path.read_text())
    os.truncate(param, 40)
    fresh = Storage(storage.store)
    assert [trial.value for trial in fresh.get_all_trials(0)] == [trial.value for trial in study.trials]
    assert param.name in caplog.text
    joined = optuna.load_study(storage=fresh, study_name="s")
    joined.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=5)
    assert len(study.trials) == 10
    assert [trial.value for trial in study.trials] == [trial.value for trial in joined.trials]


def test_values_come_back_as_they_were(storage: Storage) -> None:
    study = create(storage)
    trial = study.ask()
    trial.set_user_attr("deep", {"a": [1, 1.0, None, True, "é\ud800"], "big": 2**70, "tiny": 1e-320})
    trial.report(float("nan"), 0)
    trial.report(float("-inf"), 1)
    study.tell(trial, float("inf"))
    told = Storage(storage.store).get_trial(0)
    assert told.user_attrs == {"deep": {"a": [1, 1.0, None, True, "é\ud800"], "big": 2**70, "tiny": 1e-320}}
    assert [type(value) for value in told.user_attrs["deep"]["a"]] == [int, float, type(None), bool, str]
    assert told.values == [float("inf")]
    assert told.intermediate_values[1] == float("-inf")
    assert told.intermediate_values[0] != told.intermediate_values[0]


def test_what_optuna_refuses_leaves_the_storage_usable(storage: Storage) -> None:
    study = create(storage)
    with pytest.raises(optuna.exceptions.DuplicatedStudyError):
        create(storage)
    with pytest.raises(KeyError):
        storage.delete_study(77)
    with pytest.raises(TypeError):
        study.set_user_attr("no", object())
    other = Storage(storage.store)
    other.set_study_user_attr(0, "a", 1)
    with pytest.raises(KeyError):
        storage.set_study_user_attr(5, "a", 2)
    other.set_study_user_attr(0, "b", 2)
    assert study.user_attrs == {"a": 1, "b": 2}


def test_one_that_was_pickled_goes_on(storage: Storage) -> None:
    study = create(storage)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    twin = pickle.loads(pickle.dumps(storage))
    assert plain(twin) == plain(storage)
    assert twin.create_new_trial(0) != storage.create_new_trial(0)
    assert plain(twin) == plain(storage)


def test_a_forked_child_is_another_worker(storage: Storage) -> None:
    create(storage)
    wished = [storage.create_new_trial(0, optuna.trial.create_trial(state=TrialState.WAITING)) for _ in range(2)]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ours = [storage.set_trial_state_values(trial, TrialState.RUNNING) for trial in wished]
            code = 0 if ours == [True, True] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [storage.set_trial_state_values(trial, TrialState.RUNNING) for trial in wished] == [False, False]
    assert storage._replay_result.owned_trial_id is None


def test_what_each_step_costs_on_a_bucket() -> None:
    """One request for a look at nothing new, and one for a write that nobody races."""
    backend = CountingBackend(MemoryBackend(conditional_replace=True))
    storage = Storage(store_over(backend))
    create(storage).optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=5)
    backend.reset()
    storage.get_trial(0)
    assert backend.counts["read"] == 1
    backend.reset()
    storage.set_study_user_attr(0, "a", 1)
    assert {verb: backend.counts[verb] for verb in ("read", "create", "list")} == {"read": 0, "create": 1, "list": 0}
