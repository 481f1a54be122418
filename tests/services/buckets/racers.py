"""What racing processes do in a bucket: claim, beat and close names, or search a study until somebody kills them."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dibs import Float, Space, Store, Study
from dibs.backend import BucketBackend, RetryingBackend
from dibs.errors import StoreError, UnsureError
from dibs.store import Here

__all__ = ["SPACE", "claim_and_close", "search"]

SPACE = Space(x=Float(0, 1))
THREADS = 8


def over(url: str, options: dict[str, str], patience_s: float = 60.0) -> Store:
    """A store whose client waits for an answer as long as the server may take under a race, and no longer."""
    machine = Here()
    backend = RetryingBackend(BucketBackend(url, options, timeout_s=4.0), machine.clock, machine.entropy, patience_s)
    return Store.over(backend, machine, url, patience_s)


def claim_and_close(url: str, options: dict[str, str], names: int, seed: int) -> dict[str, dict[str, Any]]:
    """Race for every name: what is won is beaten twice and closed. name -> {"told": won, lost or unsure, ...}."""
    store = over(url, options)
    order = list(range(names))
    random.Random(seed).shuffle(order)
    # neighbours first meet in the same stretch, so that most names are wanted by several at once
    order.sort(key=lambda n: n // 40)

    def one(n: int) -> tuple[str, dict[str, Any]]:
        key = f"race/{n // 256:06d}/{n:08d}-0.json"
        body = {"v": 1, "kind": "name", "name": str(n), "state": "running", "by": seed}
        try:
            held = store.settler.claim(key, body)
        except UnsureError:
            return key, {"told": "unsure"}
        if held is None:
            return key, {"told": "lost"}
        told: dict[str, Any] = {"told": "won", "nonce": held.nonce, "closed": None}
        try:
            for _ in range(2):
                store.settler.rewrite(held, held.body)  # a beat
            store.settler.rewrite(held, {**held.body, "state": "done", "score": n})
            told["closed"] = held.data.decode()
        except (UnsureError, StoreError) as wrong:
            told["wrong"] = repr(wrong)
        return key, told

    with ThreadPoolExecutor(THREADS) as pool:
        return dict(pool.map(one, order))


def search(url: str, options: dict[str, str], trials: int, journal: str) -> None:
    """Work on a study; every claim and every acknowledged result is in the journal before the next step."""
    study = Study(over(url, options), "s", SPACE, goal="min", seed=7)
    with Path(f"{journal}-{os.getpid()}.jsonl").open("a") as lines:

        def tell(**what: Any) -> None:
            lines.write(json.dumps(what) + "\n")
            lines.flush()

        for trial in study.trials(trials, wait=True):
            tell(what="claimed", n=trial.n, attempt=trial.attempt, pid=os.getpid())
            with trial:
                for step in range(3):
                    time.sleep(0.15)  # an epoch
                    trial.report(1.0 - step / 4)
                trial.done(trial.point["x"])
            tell(what="done", n=trial.n, attempt=trial.attempt, score=trial.point["x"], pid=os.getpid())


if __name__ == "__main__":
    what = json.loads(sys.argv[1])
    search(what["url"], what["options"], what["trials"], what["journal"])
