"""Optuna on a store with real processes: racing, killed, forked; what one reader saw, all see."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
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
from dibs.integrations._journal import Journal
from dibs.integrations._optuna_storage import StoreBackend
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


def test_a_child_forked_in_the_midst_of_other_threads_work_goes_on(storage: Storage) -> None:
    study = create(storage)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            study.set_user_attr("a", 1)

    threads = [threading.Thread(target=write, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(8):
        wait_until(storage._thread_lock.locked)  # or it may just have been let go: then this child proves nothing
        child = os.fork()
        if child == 0:
            code = 1
            try:
                storage.set_trial_state_values(storage.create_new_trial(0), TrialState.COMPLETE, [1.0])
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    try:
        for child in list(children):
            wait_until(lambda child=child: os.waitpid(child, os.WNOHANG) == (child, 0))
            children.remove(child)
    finally:
        stop.set()
        for child in children:  # one that waits for ever
            os.kill(child, signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert [trial.value for trial in study.trials] == [1.0] * 8


class Interrupts:
    """Ctrl-C at the n-th line that is run in the files that read and replay."""

    FILES = ("_journal.py", "_optuna_storage.py", "_storage.py")

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: Any, event: str, told: Any) -> Any:
        if not frame.f_code.co_filename.endswith(self.FILES):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def test_ctrl_c_at_any_line_loses_no_operation(storage: Storage) -> None:
    study = create(storage)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    told, at, left = plain(storage), 0, 0
    reader = StoreBackend(storage.store, "journal")
    while left <= 0:
        at += 7
        twin = Storage(storage.store, "another")
        twin._backend = pickle.loads(pickle.dumps(reader))
        interrupts = Interrupts(at)
        before = sys.gettrace()
        sys.settrace(interrupts)
        try:
            twin.get_all_trials(0)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        left = interrupts.left
        assert plain(twin) == told, at
    assert at > 300


@pytest.mark.parametrize("texts", [["{"], ["[]"], ['{"op_code":"x","worker_id":"w"}'], ["9" * 5000], [""]])
def test_an_entry_that_holds_no_operation_is_left_out_by_all(storage: Storage, texts: list[str]) -> None:
    study = create(storage)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    journal = Journal(storage.store, "journal")
    while journal.read() is not None:
        pass
    journal.append([*texts, json.dumps({"op_code": 2, "worker_id": "w", "study_id": 0, "user_attr": {"a": 1}})], print)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert study.user_attrs == {"a": 1}
    assert plain(Storage(storage.store)) == plain(storage)


def test_a_worker_loads_no_library_that_only_others_need() -> None:
    probe = "import sys; import dibs.optuna; print(sorted({name.partition('.')[0] for name in sys.modules} & set(sys.argv)))"
    run = subprocess.run(
        [sys.executable, "-c", probe, "scipy", "sklearn", "pandas", "matplotlib", "plotly"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "[]\n"


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
