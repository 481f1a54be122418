"""What to search and how to score it: the same spam filter, and not one message is here.

    dibs run examples/federated_sms/federated_search.py --store ./studies --study federated-sms --trials 20 --workers 2

A trial begins a federated run and waits for its rounds; whoever holds messages takes part in it (``holder.py``).
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # a worker is a fresh process that may start anywhere
from holder import ROUNDS, RUNS, TRAINERS, store

import dibs
from dibs import Choice, Float, Int
from dibs.federation import gather

goal = "min"
space = dibs.Space(
    lr=Float(1.0, 100.0, log=True),
    l2=Float(1e-7, 1e-3, log=True),
    epochs=Int(1, 20),  # at home, between two averages
    momentum=Float(0.0, 0.9),  # of the server that there is not: everybody computes its step
    sublinear=Choice(True, False),
)


def objective(trial: dibs.Trial) -> float:
    """Log loss on the holders' own messages to judge by, in nats; lower is better. Curve: the loss before each round."""
    where = store()
    run = f"sms-{trial.n}-{trial.attempt}"
    where.claim(RUNS + run, meta=trial.point)
    for round in range(1, ROUNDS + 2):
        # sizes weigh the losses, too; None: this is no client, it only wants to know
        loss = float(gather(where, None, run=run, round=round, clients=TRAINERS, client=None).tensors["loss"])
        trial.report(loss, step=round - 1)
    return loss
