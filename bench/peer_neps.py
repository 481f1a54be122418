"""The NePS side of bench/scale.py; runs in bench/.venv/neps, which has NePS and no dibs.

``fill FOLDER N LIMIT_S`` runs N trials, or as many as the time allows, and says how many; ``serve FOLDER N`` runs
trials on demand; ``work FOLDER SLEEP_S`` counts the trials of a window of seconds; ``version`` says what it is.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import sys
import time
import warnings

warnings.simplefilter("ignore")
import neps  # noqa: E402 - it warns while it is imported


class Space(neps.PipelineSpace):
    """Five floats."""

    x0 = neps.Float(0.0, 1.0)
    x1 = neps.Float(0.0, 1.0)
    x2 = neps.Float(0.0, 1.0)
    x3 = neps.Float(0.0, 1.0)
    x4 = neps.Float(0.0, 1.0)


def run(folder: str, count: int, sleep_s: float = 0.0) -> None:
    """So many trials of this worker."""

    def objective(**point: float) -> float:
        if sleep_s:
            time.sleep(sleep_s)
        return 0.5

    neps.run(
        objective, Space(), root_directory=folder, worker_evaluations_to_spend=count, optimizer="random_search",
    )  # fmt: skip


def fill(folder: str, size: int, limit_s: float) -> None:
    until, done = time.monotonic() + limit_s, 0
    while done < size and time.monotonic() < until:
        run(folder, min(50, size - done))
        done += min(50, size - done)
    print(done)


def serve(folder: str) -> None:
    run(folder, 1)
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.process_time()
        run(folder, int(line))
        print(time.process_time() - began, flush=True)


def work(folder: str, sleep_s: float) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        until, done = time.monotonic() + float(line), 0
        while time.monotonic() < until:
            run(folder, 1, sleep_s)
            done += 1
        print(json.dumps({"trials": done}), flush=True)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    match sys.argv[1:]:
        case ["version"]:
            print(importlib.metadata.version("neural-pipeline-search"))
        case ["fill", folder, size, limit_s]:
            fill(folder, int(size), float(limit_s))
        case ["serve", folder, _]:
            serve(folder)
        case ["work", folder, sleep_s]:
            work(folder, float(sleep_s))
        case _:
            sys.exit("usage: peer_neps.py version | fill FOLDER N LIMIT_S | serve FOLDER N | work FOLDER SLEEP_S")
