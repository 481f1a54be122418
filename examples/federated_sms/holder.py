"""A holder of messages: takes part in every federated run that somebody begins, and never shows a message to anybody.

    python holder.py north        # and south, and west, on machines of their own

It knows of rounds and of runs, and nothing of a study, trials or who asks.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "sms_spam"))
from messages import Message, find, read, side
from text_model import WORDS, Part, features, log_loss, rarity, tokenised, train

from dibs import RoundStopped, RoundTimeout, Store
from dibs.federation import FedAvgM, gather

HOLDERS = ["north", "south", "west"]
TRAINERS = ["north", "south"]  # west only tokenises: it counts words, and has nothing to train with
ROUNDS = 6  # of training; one more before them counts words, and one after them judges
IDLE_S = 600.0  # with no new run for so long, it is over as well
RUNS, OVER = "federated-sms/run/", "federated-sms/over"


def store() -> Store:
    """Where rounds lie: any folder or bucket, and not necessarily that of the study."""
    return Store(os.environ.get("ROUNDS", "./rounds"))


def mine(holder: str) -> tuple[list[Message], list[Message]]:
    """This holder's messages to learn from and to judge by; no text is on two sides, or at two holders."""
    third = HOLDERS.index(holder)
    own = [message for message in read(find()) if int(3 * side(message.text)) == third]
    return [m for m in own if 3 * side(m.text) % 1 >= 0.5], [m for m in own if 3 * side(m.text) % 1 < 0.5]


def take_part(where: Store, holder: str, run: str, point: dict[str, Any], learn: Part, judge: Part) -> None:
    """One run from its first round to its last, as this holder."""
    documents = {
        "documents": (learn.counts > 0).sum(axis=0).astype(float),
        "messages": np.array(float(len(learn.spam))),
    }
    got = gather(where, documents, run=run, round=0, clients=HOLDERS, client=holder, me=holder)
    if holder not in TRAINERS:
        return
    rare = rarity(got.tensors["documents"] * len(HOLDERS), float(got.tensors["messages"]) * len(HOLDERS))
    rows, judged = (features(part, rare, point["sublinear"]) for part in (learn, judge))
    options: dict[str, Any] = {"run": run, "clients": TRAINERS, "client": holder, "size": len(learn.spam), "me": holder}
    model: dict[str, Any] = {"w": np.zeros(WORDS), "b": np.zeros(1)}
    server, state = FedAvgM(momentum=point["momentum"]), None
    for round in range(1, ROUNDS + 1):
        loss = np.array(log_loss(model, judged, judge.spam))
        trained = train(model, rows, learn.spam, point["lr"], point["l2"], point["epochs"])
        average = dict(gather(where, {**trained, "loss": loss}, round=round, **options).tensors)
        average.pop("loss")
        model, state = server.step(model, average, state)  # everybody computes the same
    gather(where, {"loss": np.array(log_loss(model, judged, judge.spam))}, round=ROUNDS + 1, **options)


def main(holder: str) -> None:
    """Until somebody says that it is over, or nobody asks any more. Each run has a thread: two searchers may have begun one at the same time."""
    where, threads = store(), dict[str, threading.Thread]()
    learn, judge = (tokenised(part) for part in mine(holder))

    def one(run: str, point: dict[str, Any]) -> None:
        try:
            take_part(where, holder, run, point, learn, judge)
        except (RoundStopped, RoundTimeout) as wrong:  # one run less; the next one may do
            print(f"{holder}: {wrong}", file=sys.stderr)

    last = time.monotonic()
    while where.resolve(OVER) is None and time.monotonic() - last < IDLE_S:
        for name in where.scan(RUNS):
            run = name.name.removeprefix(RUNS)
            if run not in threads:
                threads[run] = threading.Thread(target=one, args=(run, name.meta))
                threads[run].start()
                last = time.monotonic()
        time.sleep(0.2)
    for thread in threads.values():
        thread.join()
    print(f"{holder}: took part in {len(threads)} runs")


if __name__ == "__main__":
    main(sys.argv[1])
