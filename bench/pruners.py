"""``python -m bench.pruners``: does it pay to prune, and how much; simulated, in a few minutes.

Synthetic noisy curves of 81 steps, an event simulator with 8 and 32 workers, the pruners as they are shipped. The
budget is that of 60 full trials; what counts is the true final value of the trial with the best reported one, minus
the best there is (regret; less is better). Mean and standard error over seeds, and how many trials were started.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import statistics
from functools import lru_cache
from typing import NamedTuple

from dibs.search import Curve, make_pruner

MAX_STEP = 80  # 81 steps, from 0
WORKERS = (8, 32)
SPECS: dict[str, object] = {
    "none": None,
    "asha": {"name": "asha", "args": {"min_step": 1, "eta": 3}},
    "hyperband": {"name": "hyperband", "args": {"min_step": 1, "eta": 3}},
    "median": "median",
}


class Outcome(NamedTuple):
    """How one search ended."""

    regret: float
    started: int
    finished: int
    best_lost: int  # of the best 2 % of the trials that were started, how many were stopped


class Trial:
    """A noisy learning curve: a + (b - a) * (step + 1)^-c, where what starts better need not end better."""

    def __init__(self, n: int, seed: int) -> None:
        draw = random.Random(f"{seed}-{n}")
        self.final = draw.random()
        self.first = self.final + 0.5 + 0.5 * draw.random()
        self.speed = draw.uniform(0.4, 1.6)
        self.noise = draw
        self.curve = Curve(n, "running")

    def step(self) -> int:
        """Report once more."""
        at = self.curve.last + 1
        true = self.final + (self.first - self.final) * (at + 1.0) ** -self.speed
        self.curve.add(at, true + self.noise.gauss(0.0, 0.02))
        return at

    @property
    def true_end(self) -> float:
        """The value at the last step, without noise."""
        return self.final + (self.first - self.final) * (MAX_STEP + 1.0) ** -self.speed


def search(spec: object, workers: int, seed: int, full: int) -> Outcome:
    """One search, until the budget of so many full trials is spent."""
    pruner = make_pruner(spec, goal="min", max_step=MAX_STEP, seed=seed) if spec else None  # type: ignore[arg-type]
    pace = random.Random(f"pace-{seed}")
    budget = full * (MAX_STEP + 1)
    trials = [Trial(n, seed) for n in range(workers)]
    due = [(pace.expovariate(1.0), n) for n in range(workers)]
    heapq.heapify(due)
    pace_of = {n: math.exp(pace.gauss(0.0, 0.5)) for n in range(workers)}
    while budget and due:
        now, n = heapq.heappop(due)
        trial, budget = trials[n], budget - 1
        at = trial.step()
        if at < MAX_STEP:
            others = [each.curve for each in trials if each is not trial]
            if pruner is None or pruner.verdict(trial.curve, others) is None:
                heapq.heappush(due, (now + pace_of[n], n))
                continue
        trial.curve.state = "done" if at == MAX_STEP else "pruned"
        fresh = Trial(len(trials), seed)
        trials.append(fresh)
        pace_of[fresh.curve.n] = math.exp(pace.gauss(0.0, 0.5))
        heapq.heappush(due, (now + pace_of[fresh.curve.n], fresh.curve.n))
    done = [trial for trial in trials if trial.curve.state == "done"]
    top = sorted(trials, key=lambda trial: trial.true_end)[: max(1, len(trials) // 50)]
    chosen = min(done, key=lambda trial: trial.curve.values[-1], default=None)
    regret = (chosen.true_end if chosen else 1.0) - best_there_is(seed)
    return Outcome(regret, len(trials), len(done), sum(trial.curve.state == "pruned" for trial in top))


@lru_cache
def best_there_is(seed: int) -> float:
    """The best true end of more trials than any of these searches starts."""
    return min(Trial(n, seed).true_end for n in range(2000))


def row(name: str, spec: object, workers: int, seeds: int, full: int) -> str:
    """One line of the table."""
    runs = [search(spec, workers, seed, full) for seed in range(seeds)]
    regrets = [run.regret for run in runs]
    error = statistics.stdev(regrets) / math.sqrt(seeds)
    counts = "  ".join(
        f"{statistics.mean(getattr(run, field) for run in runs):8.1f}" for field in ("started", "finished", "best_lost")
    )
    return f"{name:10}  {workers:4}  {statistics.mean(regrets):.4f} +- {error:.4f}  {counts}"


def main(words: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.pruners", description="What pruning is worth, simulated.")
    parser.add_argument("--seeds", type=int, default=20, help="searches per line (%(default)s)")
    parser.add_argument("--budget", type=int, default=60, help="in full trials (%(default)s)")
    parser.add_argument("--only", nargs="+", choices=list(SPECS), default=list(SPECS), help="these pruners")
    given = parser.parse_args(words)
    print(f"regret after the budget of {given.budget} full trials of {MAX_STEP + 1} steps, {given.seeds} seeds")
    print(f"{'pruner':10}  {'W':>4}  {'regret':16}  {'started':>8}  {'finished':>8}  {'best lost':>8}")
    for workers in WORKERS:
        for name in given.only:
            print(row(name, SPECS[name], workers, given.seeds, given.budget), flush=True)


if __name__ == "__main__":
    main()
