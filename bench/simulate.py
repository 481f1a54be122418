"""What a study costs on an object store: requests by verb, collisions, waiting and dollars, in simulated time.

    python -m bench.simulate [--workers 10 100 1000 10000] [--history] [--short] ...

Workers run the real Claimer, View and Attempt code; time, network and prices are modelled in ``_simulated``.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from dataclasses import dataclass
from random import Random

from dibs.search import Random as RandomSampler
from dibs.space import Choice, Float, Int, Space
from dibs.store import Store
from dibs.study._claimer import Claimer, Idle
from dibs.study._view import View

from ._simulated import GET, LIST, PUT, Machine, Meter, Model, Shared, SimulatedBucket, World, bucket

SPACE = Space(lr=Float(1e-5, 1e-1, log=True), layers=Int(1, 8), opt=Choice("adam", "sgd"), drop=Float(0.0, 0.5))


@dataclass
class Scenario:
    """``each``: trials per worker; a trial takes ``trial_s`` (median of a log-normal); all start within ``ramp_s``.

    ``ending``: the study has just so many trials, so that every worker comes to its end; else it is cut out of a
    longer one.
    """

    workers: int
    each: int
    trial_s: float = 300.0
    spread: float = 0.5
    ramp_s: float = 60.0
    ending: bool = True
    history: bool = False  # whether the sampler learns from what others found
    seed: int = 1

    @property
    def trials(self) -> int:
        return self.workers * self.each

    @property
    def sampler(self) -> RandomSampler:
        return (Learning if self.history else RandomSampler)(seed=self.seed)


class Learning(RandomSampler):
    """Draws as random does, but has the worker read what a sampler that learns would need."""

    name = "bench-learning"
    needs_history = True


@dataclass
class Result:
    """What a scenario came to; times in simulated seconds."""

    scenario: Scenario
    meter: Meter
    asks_s: list[float]
    closes_s: list[float]
    took_s: float
    cpu_s: float

    def per_trial(self, kind: str) -> float:
        return self.meter.requests[kind] / len(self.closes_s)

    def dollars(self, model: Model) -> float:
        return sum(model.dollars[kind] * count for kind, count in self.meter.requests.items())

    def cells(self, model: Model) -> list[str]:
        """One row of the table."""
        meter, asks = self.meter, self.asks_s
        loads = {kind: meter.peak(kind) / limit for kind, limit in model.limits.items()}
        first = max(loads, key=lambda kind: loads[kind])
        return [
            f"{self.scenario.workers:,}",
            f"{len(self.closes_s):,}" + ("" if self.scenario.ending else " (cut out)"),
            *(f"{self.per_trial(kind):.1f}" for kind in (PUT, GET, LIST)),
            f"{meter.tries / meter.claims:.2f}",
            f"{statistics.median(asks):.2f}",
            f"{quantile(asks, 0.99):.2f}",
            f"{self.dollars(model):.3f}",
            f"{1e4 * self.dollars(model) / len(self.closes_s):.2f}",
            f"{meter.peak(first):,} {first} of {model.limits[first]:,.0f}" + ("" if loads[first] < 1 else " **over**"),
        ]


HEAD = [
    "workers", "trials", "PUT", "GET", "LIST", "names tried", "ask p50, s", "ask p99, s", "dollars", "per 10,000 trials",
    "busiest second",
]  # fmt: skip


def run(scenario: Scenario, model: Model) -> Result:
    """Play one study."""
    rng = Random(scenario.seed)
    world, meter = World(rng), Meter()
    objects = bucket(world)
    asks_s: list[float] = []
    closes_s: list[float] = []
    sampler = scenario.sampler

    def worker(name: str) -> None:
        store = Store.over(SimulatedBucket(objects, world, meter, model), Machine(world, name), url=name)
        claimer = Claimer(
            store, View(store, "s"), space=SPACE, sampler=sampler, goal="min", seed=1,
            trials=scenario.trials if scenario.ending else 100 * scenario.trials,
            stale_s=3600.0, me=name, rescue_after_s=3600.0,
        )  # fmt: skip
        done = 0
        while scenario.ending or done < scenario.each:
            began = world.now
            got = claimer.step()
            if isinstance(got, Idle):
                return
            asks_s.append(world.now - began)
            left_s = scenario.trial_s * math.exp(scenario.spread * rng.gauss(0.0, 1.0))
            while left_s > got.beat_s:
                world.sleep(got.beat_s)
                left_s -= got.beat_s
                got.beat()
            world.sleep(left_s)
            began = world.now
            got.close("done", score=rng.random(), step=0)
            closes_s.append(world.now - began)
            done += 1

    for number in range(scenario.workers):
        world.spawn(lambda name=f"w{number}": worker(name), rng.random() * scenario.ramp_s)
    cpu = time.process_time()
    with Shared():
        world.run()
    return Result(scenario, meter, asks_s, closes_s, world.now, time.process_time() - cpu)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# workers -> trials of each: what ends in bounded time. Whole studies; beyond 1,000 workers the first trial of each.
EACH = {10: 20, 100: 20, 1_000: 5, 3_000: 1, 10_000: 1}
SHORT = {10: 10, 100: 5}


def scenarios(options: argparse.Namespace) -> list[Scenario]:
    each = SHORT if options.short else EACH
    return [
        Scenario(
            workers, options.each or each.get(workers, 2), options.trial_s, ramp_s=options.ramp_s,
            ending=workers <= 1_000, history=options.history,
        )
        for workers in (options.workers or each)
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Play the scenarios, print one row each."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulate", description="What a study costs on a bucket.")
    parser.add_argument("--workers", type=int, nargs="+", help="how many workers (10 100 1000 10000)")
    parser.add_argument("--each", type=int, help="trials per worker")
    parser.add_argument("--trial-s", type=float, default=300.0, help="median seconds of a trial (%(default)s)")
    parser.add_argument("--ramp-s", type=float, default=60.0, help="all start within so many seconds (%(default)s)")
    parser.add_argument("--history", action="store_true", help="a sampler that learns from the others' results")
    parser.add_argument("--detail", action="store_true", help="requests per trial by type and folder, too")
    parser.add_argument("--short", action="store_true", help="few workers, few trials: seconds")
    options = parser.parse_args(arguments)
    model = Model()
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for scenario in scenarios(options):
        result = run(scenario, model)
        print("| " + " | ".join(result.cells(model)) + " |", flush=True)
        print(f"{scenario.workers} workers: {result.cpu_s:.0f} s of CPU", file=sys.stderr)
        if options.detail:
            for (kind, purpose), count in sorted(result.meter.purposes.items()):
                print(f"    {kind:6} {purpose or '(the parts)':12} {count / len(result.closes_s):10.3f}")


if __name__ == "__main__":
    main()
