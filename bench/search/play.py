"""Play studies and print one JSON line each; runs in dibs' environment and, for the peer, in bench/.venv.

``play.py METHOD FUNCTION WORKERS SEED [BUDGET]``, or such words line by line on stdin. W workers ask, work for a
log-normal time (0, 0.5), tell, and ask again; what runs has no score. The first BUDGET indexes count.
"""

from __future__ import annotations

import heapq
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Protocol

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from bench.search.functions import Function, Spec, make

MARKS = (50, 100, 200, 300, 500)


class Player(Protocol):
    """Asks for a point, later tells its score."""

    def ask(self, n: int) -> dict[str, Any]: ...
    def tell(self, n: int, score: float) -> None: ...


class Dibs:
    """A sampler of dibs, given the whole history at every ask."""

    def __init__(self, name: str, spec: Spec, seed: int) -> None:
        from dibs import Choice, Float, Int, Space
        from dibs.search import make_sampler

        made: dict[str, Any] = {
            name: Choice(*s[1]) if s[0] == "choice" else (Float if s[0] == "float" else Int)(s[1], s[2], log=s[3])
            for name, s in spec.items()
        }
        self.space, self.sampler = Space(made), make_sampler(name, seed=seed, goal="min")
        self.rows: dict[int, Any] = {}

    def ask(self, n: int) -> dict[str, Any]:
        from dibs import History

        point = self.sampler.ask(self.space, n, History.of(self.rows.values()))
        assert point is not None
        self.rows[n] = (n, point, None, "running", None)
        return point

    def tell(self, n: int, score: float) -> None:
        self.rows[n] = (n, self.rows[n][1], score, "done", None)


class Optuna:
    """The peer as it comes: its default sampler."""

    def __init__(self, spec: Spec, seed: int) -> None:
        import optuna
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        self.space: dict[str, Any] = {
            name: CategoricalDistribution(s[1])
            if s[0] == "choice"
            else (FloatDistribution if s[0] == "float" else IntDistribution)(s[1], s[2], log=s[3])
            for name, s in spec.items()
        }
        self.trials: dict[int, Any] = {}

    def ask(self, n: int) -> dict[str, Any]:
        self.trials[n] = self.study.ask(self.space)
        return dict(self.trials[n].params)

    def tell(self, n: int, score: float) -> None:
        self.study.tell(self.trials[n], score)


def play(method: str, function: Function, workers: int, seed: int, budget: int) -> dict[str, Any]:
    """One study: the true value of the incumbent at the marks, repeats, CPU milliseconds per ask."""
    player: Player = Optuna(function.space, seed) if method == "optuna" else Dibs(method, function.space, seed)
    rng = np.random.default_rng([seed, workers, 5])
    times, noise = rng.lognormal(0.0, 0.5, budget), rng.normal(0.0, 1.0, budget)
    points: list[dict[str, Any]] = []
    true, seen = np.empty(budget), np.empty(budget)
    ends: list[tuple[float, int]] = []
    now, cpu = 0.0, 0.0
    for n in range(budget):
        if len(ends) == workers:
            now, k = heapq.heappop(ends)
            player.tell(k, float(seen[k]))
        began = time.process_time()
        point = player.ask(n)
        cpu += time.process_time() - began
        points.append(point)
        true[n] = function.value(point)
        seen[n] = true[n] + function.noisy * noise[n]
        heapq.heappush(ends, (now + times[n], n))
    chance = np.random.default_rng([seed, 6])
    middle = float(np.median([function.value(_drawn(function.space, chance)) for _ in range(500)]))
    regret = {}
    for mark in (m for m in MARKS if m <= budget):
        best = float(true[int(np.argmin(seen[:mark]))])
        regret[mark] = round(float(np.log10(max(1e-5, (best - function.least) / (middle - function.least)))), 4)
    repeats = len(points) - len({json.dumps(point, sort_keys=True) for point in points})
    return {
        "method": method, "function": function.name, "workers": workers, "seed": seed, "regret": regret,
        "repeats": repeats, "ms": round(1e3 * cpu / budget, 3),
    }  # fmt: skip


def _drawn(space: Spec, rng: Any) -> dict[str, Any]:
    point: dict[str, Any] = {}
    for name, s in space.items():
        if s[0] == "choice":
            point[name] = s[1][int(rng.integers(len(s[1])))]
        else:
            u = rng.uniform()
            value = s[1] * (s[2] / s[1]) ** u if s[3] else s[1] + (s[2] - s[1]) * u
            point[name] = round(value) if s[0] == "int" else value
    return point


def main() -> None:
    """One study, or one for each line of stdin."""
    lines = [sys.argv[1:]] if len(sys.argv) > 1 else (line.split() for line in sys.stdin)
    for method, name, workers, seed, *budget in lines:
        played = play(method, make(name, int(seed)), int(workers), int(seed), int(budget[0]) if budget else 200)
        print(json.dumps(played), flush=True)


if __name__ == "__main__":
    main()
