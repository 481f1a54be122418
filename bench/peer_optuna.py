"""The Optuna side of the benchmarks; runs in bench/.venv, which has Optuna and no dibs.

PATH is a journal file (``.log``) or an SQLite database (``.db``). ``fill PATH N [LIMIT_S]`` writes a study of N finished
trials, or as many as the time allows, and says how many; ``serve PATH N`` does trials on demand; ``join PATH`` reads
all trials once; ``work PATH SLEEP_S`` counts the trials of a window of seconds; ``version`` says what it is.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import optuna
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

DISTRIBUTIONS = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(5)}


def storage(path: str) -> Any:
    """What lies under the path, by its suffix."""
    return f"sqlite:///{path}" if path.endswith(".db") else JournalStorage(JournalFileBackend(path))


def load(path: str) -> optuna.Study:
    """The study, with the sampler that needs no history."""
    sampler = optuna.samplers.RandomSampler(seed=0)
    return optuna.load_study(storage=storage(path), study_name="bench", sampler=sampler)


def fill(path: str, size: int, limit_s: float = float("inf")) -> None:
    """Finished trials, appended as Optuna would write them."""
    study = optuna.create_study(storage=storage(path), study_name="bench")
    params = dict.fromkeys(DISTRIBUTIONS, 0.5)
    until, done = time.monotonic() + limit_s, 0
    while done < size and time.monotonic() < until:
        study.add_trial(optuna.trial.create_trial(value=0.5, params=params, distributions=DISTRIBUTIONS))
        done += 1
    print(done)


def serve(path: str) -> None:
    """One ask and one tell per trial."""
    study = load(path)

    def trial() -> None:
        study.tell(study.ask(DISTRIBUTIONS), 0.5)

    for _ in range(3):
        trial()
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.process_time()
        for _ in range(int(line)):
            trial()
        print(time.process_time() - began, flush=True)


def join(path: str) -> None:
    """What a fresh process does before it knows the trials: CPU seconds."""
    began = time.process_time()
    trials = len(load(path).trials)
    print(json.dumps({"cpu_s": time.process_time() - began, "trials": trials}))


def work(path: str, sleep_s: float) -> None:
    """A worker whose objective only sleeps."""
    study = load(path)
    print("ready", flush=True)
    for line in sys.stdin:
        until, done = time.monotonic() + float(line), 0
        while time.monotonic() < until:
            trial = study.ask(DISTRIBUTIONS)
            time.sleep(sleep_s)
            study.tell(trial, 0.5)
            done += 1
        print(json.dumps({"trials": done}), flush=True)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    match sys.argv[1:]:
        case ["version"]:
            print(optuna.__version__)
        case ["fill", path, size]:
            fill(path, int(size))
        case ["fill", path, size, limit_s]:
            fill(path, int(size), float(limit_s))
        case ["serve", path, _]:
            serve(path)
        case ["join", path]:
            join(path)
        case ["work", path, sleep_s]:
            work(path, float(sleep_s))
        case _:
            sys.exit(
                "usage: peer_optuna.py version | fill PATH N [LIMIT_S] | serve PATH N | join PATH | work PATH SLEEP_S"
            )
