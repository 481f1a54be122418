"""Optuna's side of bench/ask.py; runs in bench/.venv: ``peer_optuna_ask.py TRIALS``.

The same ten parameters, as many finished trials and 16 running ones in memory; one ask is one ``study.ask``. The trial
it makes is failed at once, outside the time that is taken, so that the number of running ones stays.
"""

from __future__ import annotations

import random
import sys
import time
import warnings

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

SPACE = {
    "a": FloatDistribution(0, 1), "b": FloatDistribution(-5, 10), "c": FloatDistribution(0, 0.5),
    "d": FloatDistribution(1e-5, 1, log=True), "e": FloatDistribution(1e-3, 10, log=True), "f": IntDistribution(1, 9),
    "g": IntDistribution(1, 1024, log=True), "h": CategoricalDistribution(["adam", "sgd", "rmsprop"]),
    "i": CategoricalDistribution([True, False]), "j": CategoricalDistribution(["relu", "gelu", "silu", "tanh"]),
}  # fmt: skip
RUNNING = 16


def main(size: int) -> None:
    """Serve asks, as the contestants of bench/cycle.py do."""
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study()
    # the history is drawn by the random sampler and scored like ours; then the default sampler takes over
    study.sampler = optuna.samplers.RandomSampler(seed=3)
    rng, trials = random.Random(3), []
    for _ in range(size):
        drawn = study.ask(SPACE)
        study.tell(drawn, state=TrialState.FAIL)
        trials.append(create_trial(params=drawn.params, distributions=SPACE, value=rng.random()))
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.add_trials(trials)
    study.sampler, learning = optuna.samplers.RandomSampler(seed=5), study.sampler
    for _ in range(RUNNING):
        study.ask(SPACE)
    study.sampler = learning

    def ask() -> float:
        began = time.process_time()
        trial = study.ask(SPACE)
        took = time.process_time() - began
        study.tell(trial, state=TrialState.FAIL)
        return took

    ask()
    print("ready", flush=True)
    for line in sys.stdin:
        print(sum(ask() for _ in range(int(line))), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
