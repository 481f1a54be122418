"""``python -m dibs.testing.simulate --seeds 10000``: many seeds over the processors, and one line that says it.

The first failing seeds are explained in full on stderr, with the call that replays each. Exit 0 if all hold.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from typing import NamedTuple

from dibs._clock import SystemClock

from ._simulator import simulate

__all__ = ["main"]

_BATCH = 25
_EXPLAINED = 3


class Result(NamedTuple):
    """What is told of one seed."""

    seed: int
    steps: int
    broken: list[str]
    story: str


def one(seed: int) -> Result:
    """Run a seed; its story is told only if something is broken."""
    run = simulate(seed)
    return Result(seed, run.steps, run.broken, run.explain() if run.broken else "")


def results(seeds: Sequence[int], jobs: int) -> Iterator[Result]:
    """The seeds' results, as they come."""
    if jobs == 1:
        yield from map(one, seeds)
        return
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(one, seeds, chunksize=_BATCH)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dibs.testing.simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many seeds (10000)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one per processor)")
    told = parser.parse_args(arguments)
    seeds = range(told.start, told.start + told.seeds)
    clock = SystemClock()
    began = clock.monotonic()
    broken: Counter[str] = Counter()
    failed: list[int] = []
    steps = done = 0
    for result in results(seeds, max(1, min(told.jobs, told.seeds))):
        done += 1
        steps += result.steps
        if result.broken:
            failed.append(result.seed)
            broken.update({sentence.partition(":")[0] for sentence in result.broken})
            if len(failed) <= _EXPLAINED:
                print(result.story, file=sys.stderr)
        if done % 100 == 0 and sys.stderr.isatty():
            print(f"\r{done} of {len(seeds)} seeds, {len(failed)} broken", end="", file=sys.stderr)
    if done >= 100 and sys.stderr.isatty():
        print(file=sys.stderr)
    took_s = clock.monotonic() - began
    which = f": {', '.join(f'{name} {count}' for name, count in sorted(broken.items()))}" if broken else ""
    print(f"{done} seeds, {steps} steps, {len(failed)} broken{which} ({took_s:.0f} s)")
    for seed in sorted(failed)[:20]:
        print(f"  python -m dibs.testing.simulate --seeds 1 --start {seed}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
