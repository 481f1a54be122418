"""How often a proposal lands where somebody is already at work: running trials repelling, ignored, and lied about.

Studies of simulated workers on two of bench/search's functions, the same seeds for each treatment. *ignore* takes
running trials out of the history; *lie* gives them the worst score so far, which votes. A proposal is on top of a
running one if no coordinate of the unit cube is more than 0.01 away.
"""

from __future__ import annotations

import argparse
import heapq
from typing import Any

import numpy as np
from bench.search.functions import make

from dibs import Float, History, Space
from dibs.search import make_sampler

TREATMENTS = ("repel", "ignore", "lie")
CLOSE = 0.01


def seen(rows: list[Any], treatment: str) -> History:
    """The history as the treatment shows it."""
    if treatment == "repel":
        return History.of(rows)
    if treatment == "ignore":
        return History.of(row for row in rows if row[3] == "done")
    worst = max((row[2] for row in rows if row[3] == "done"), default=None)
    return History.of(
        (n, p, worst if s is None else s, "running" if worst is None else "done", None) for n, p, s, *_ in rows
    )


def study(name: str, treatment: str, function: str, workers: int, seed: int, budget: int) -> tuple[int, int, float]:
    """(proposals on top of a running one, proposals made while something ran, best score)."""
    f = make(function, seed)
    space = Space({axis: Float(s[1], s[2], log=s[3]) for axis, s in f.space.items()})
    sampler = make_sampler(name, seed=seed, goal="min")
    rng = np.random.default_rng([seed, workers])
    rows: list[Any] = []
    ends: list[tuple[float, int]] = []
    now, on_top, asked = 0.0, 0, 0
    for n in range(budget):
        if len(ends) == workers:
            now, k = heapq.heappop(ends)
            rows[k] = (k, rows[k][1], f.value(rows[k][1]), "done", None)
        point = sampler.ask(space, n, seen(rows, treatment))
        assert point is not None
        here = np.array([*space.unit(point).values()])
        others = [np.array([*space.unit(rows[k][1]).values()]) for _, k in ends]
        asked += bool(others)
        on_top += any(np.abs(here - other).max() < CLOSE for other in others)
        rows.append((n, point, None, "running", None))
        heapq.heappush(ends, (now + rng.lognormal(0.0, 0.5), n))
    return on_top, asked, min(row[2] for row in rows if row[2] is not None)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.repel", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="studies for each line and function (%(default)s)")
    parser.add_argument("--budget", type=int, default=150, help="trials per study (%(default)s)")
    given = parser.parse_args()
    print(
        "| W | sampler | running trials | proposals on top of one | best, median: branin2 | hartmann6 |\n|---|---|---|---|---|---|"
    )
    for workers in (8, 32):
        for name in ("tpe", "gp"):
            for treatment in TREATMENTS:
                played = {
                    function: [study(name, treatment, function, workers, s, given.budget) for s in range(given.seeds)]
                    for function in ("branin2", "hartmann6")
                }
                every = [game for games in played.values() for game in games]
                share = sum(game[0] for game in every) / sum(game[1] for game in every)
                best = [f"{np.median([game[2] for game in games]):.4f}" for games in played.values()]
                print(f"| {workers} | {name} | {treatment} | {share:.1%} | {best[0]} | {best[1]} |", flush=True)


if __name__ == "__main__":
    main()
