"""Play studies and print one JSON line each; runs in bench/.venv, where dibs (from src), its peers and the tables are.

``play.py METHOD FUNCTION WORKERS SEED [BUDGET]``, or such words line by line on stdin. W workers ask, work for a
log-normal time (0, 0.5), tell, and ask again; what runs has no score. The first BUDGET indexes count. Times of work
and noise are those of (seed, W) and index, the same for every method.
"""

from __future__ import annotations

import heapq
import json
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
from bench.search.functions import make  # noqa: E402
from bench.search.players import player  # noqa: E402
from bench.search.space import MARKS, Function, drawn  # noqa: E402


@lru_cache(maxsize=64)
def function_of(name: str, seed: int) -> tuple[Function, float]:
    """The function and what the median of 500 points by chance is worth."""
    function, chance = make(name, seed), np.random.default_rng([seed, 6])
    return function, float(
        np.median([function.value(drawn(function.space, function.when, chance)) for _ in range(500)])
    )


def play(method: str, name: str, workers: int, seed: int, budget: int) -> dict[str, Any]:
    """One study: the regret of the incumbent's true value at the marks, repeats, CPU milliseconds per ask."""
    function, middle = function_of(name, seed)
    asker = player(method, function, seed)
    rng = np.random.default_rng([seed, workers, 5])
    times, noise = rng.lognormal(0.0, 0.5, budget), rng.normal(0.0, 1.0, budget)
    points: list[dict[str, Any]] = []
    true, seen = np.empty(budget), np.empty(budget)
    ends: list[tuple[float, int]] = []
    now, cpu = 0.0, 0.0
    for n in range(budget):
        if len(ends) == workers:
            now, k = heapq.heappop(ends)
            asker.tell(k, float(seen[k]))
        began = time.process_time()
        point = asker.ask(n)
        cpu += time.process_time() - began
        points.append(point)
        true[n] = function.value(point)
        seen[n] = true[n] if function.seen is None else function.seen(float(true[n]), float(noise[n]))
        heapq.heappush(ends, (now + times[n], n))
    regret = {}
    for mark in (m for m in MARKS if m <= budget):
        best = float(true[int(np.argmin(seen[:mark]))])
        regret[mark] = round(
            float(np.log10(max(function.floor, (best - function.least) / (middle - function.least)))), 4
        )
    repeats = len(points) - len({json.dumps(point, sort_keys=True) for point in points})
    return {
        "method": method, "version": asker.version, "function": name, "workers": workers, "seed": seed,
        "regret": regret, "repeats": repeats, "ms": round(1e3 * cpu / budget, 3),
    }  # fmt: skip


def main() -> None:
    """One study, or one for each line of stdin."""
    lines = [sys.argv[1:]] if len(sys.argv) > 1 else (line.split() for line in sys.stdin)
    for method, name, workers, seed, *budget in lines:
        played = play(method, name, int(workers), int(seed), int(budget[0]) if budget else 200)
        print(json.dumps(played), flush=True)


if __name__ == "__main__":
    main()
