"""The peer's side of bench/cycle.py; runs in bench/.venv, which has Optuna and no dibs.

``fill JOURNAL N`` writes a study of N finished trials, ``serve JOURNAL N`` does trials on demand, ``version`` says
what it is.
"""

from __future__ import annotations

import sys
import time

import optuna
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

DISTRIBUTIONS = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(5)}


def fill(journal: str, size: int) -> None:
    """Finished trials, appended as Optuna would write them."""
    study = optuna.create_study(storage=JournalStorage(JournalFileBackend(journal)), study_name="bench")
    params = dict.fromkeys(DISTRIBUTIONS, 0.5)
    for _ in range(size):
        study.add_trial(optuna.trial.create_trial(value=0.5, params=params, distributions=DISTRIBUTIONS))


def serve(journal: str) -> None:
    """One ask and one tell per trial, with the sampler that needs no history."""
    study = optuna.load_study(
        storage=JournalStorage(JournalFileBackend(journal)),
        study_name="bench",
        sampler=optuna.samplers.RandomSampler(seed=0),
    )

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


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    match sys.argv[1:]:
        case ["version"]:
            print(optuna.__version__)
        case ["fill", journal, size]:
            fill(journal, int(size))
        case ["serve", journal, _]:
            serve(journal)
        case _:
            sys.exit("usage: peer_optuna.py version | fill JOURNAL N | serve JOURNAL N")
