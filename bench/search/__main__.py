"""``python -m bench.search``: play the studies, in dibs' and the peer's environment, and print how they compare.

The short form (the default) plays 4 hard functions, W = 8 and 32, 4 seeds; ``--long`` all functions, W = 1, 8, 32, 20
seeds, which takes hours. Lines already in ``--out`` are not played again, so a run may be broken off and gone on with.

Regret is log10((best - least) / (median of chance - least)), floor -5; less is better. Differences are paired by
function, workers and seed; the standard error treats functions as given and seeds as drawn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.cycle import Peer

from .functions import EASY, HARD

HERE = Path(__file__).resolve().parent
METHODS = ("gp", "tpe", "random")
PEER = "optuna"


def wanted(functions: list[str], workers: list[int], seeds: int) -> list[tuple[str, str, int, int]]:
    """All games, seed by seed, so that whatever is there when it is broken off is paired."""
    return [
        (method, name, w, seed)
        for seed in range(seeds)
        for name in functions
        for w in workers
        for method in (*METHODS, PEER)
    ]


def read(out: Path) -> dict[tuple[str, str, int, int], dict[str, Any]]:
    """What has been played."""
    lines = map(json.loads, out.read_text().splitlines() if out.exists() else [])
    return {(g["method"], g["function"], g["workers"], g["seed"]): g for g in lines}


def play(games: list[tuple[str, str, int, int]], out: Path, budget: int) -> None:
    """Two processes, one for each environment; each line is kept as it comes."""
    with tempfile.TemporaryDirectory() as work, out.open("a") as kept:
        pythons = {False: sys.executable, True: str(Peer(Path(work)).python)}
        running = []
        for peer, python in pythons.items():
            words = "".join(f"{m} {f} {w} {s} {budget}\n" for m, f, w, s in games if (m == PEER) is peer)
            process = subprocess.Popen([python, HERE / "play.py"], stdin=subprocess.PIPE, stdout=kept, text=True)
            assert process.stdin is not None
            process.stdin.write(words)
            process.stdin.close()
            running.append(process)
        for process in running:
            if process.wait():
                sys.exit(process.returncode)


def spread(groups: dict[str, list[float]]) -> tuple[float, float]:
    """Mean over functions and seeds, and its standard error with the functions given."""
    means = [statistics.fmean(values) for values in groups.values()]
    errors = [statistics.stdev(v) ** 2 / len(v) if len(v) > 1 else 0.0 for v in groups.values()]
    return statistics.fmean(means), sum(errors) ** 0.5 / len(groups)


def table(games: dict[tuple[str, str, int, int], dict[str, Any]], functions: list[str], mark: str) -> list[str]:
    """One line for each method and number of workers."""
    lines = [
        "| W | sampler | games | regret | minus the peer's | better in | mean rank | repeats | ms per ask |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for w in sorted({key[2] for key in games}):
        shared = [
            (f, s) for f in functions for s in sorted({key[3] for key in games})
            if all((m, f, w, s) in games for m in (*METHODS, PEER))
        ]  # fmt: skip
        if not shared:
            continue
        ranks: dict[str, list[float]] = defaultdict(list)
        for f, s in shared:
            ends = {m: games[m, f, w, s]["regret"][mark] for m in (*METHODS, PEER)}
            for m, end in ends.items():
                below, alike = sum(e < end for e in ends.values()), sum(e == end for e in ends.values())
                ranks[m].append(below + (alike + 1) / 2)
        for m in (*METHODS, PEER):
            regret: dict[str, list[float]] = defaultdict(list)
            gap: dict[str, list[float]] = defaultdict(list)
            for f, s in shared:
                regret[f].append(games[m, f, w, s]["regret"][mark])
                gap[f].append(games[m, f, w, s]["regret"][mark] - games[PEER, f, w, s]["regret"][mark])
            (mean, error), (less, gap_error) = spread(regret), spread(gap)
            wins = sum(g < 0 for gs in gap.values() for g in gs) / len(shared)
            cost = statistics.median(games[m, f, w, s]["ms"] for f, s in shared)
            repeats = sum(games[m, f, w, s]["repeats"] for f, s in shared)
            against = "" if m == PEER else f"{less:+.2f} ± {gap_error:.2f}"
            better = "" if m == PEER else f"{wins:.0%}"
            lines.append(
                f"| {w} | {m} | {len(shared)} | {mean:.2f} ± {error:.2f} | {against} | {better} "
                f"| {statistics.fmean(ranks[m]):.2f} | {repeats} | {cost:.1f} |"
            )
    return lines


def main() -> None:
    """Play what is missing and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="all functions, W = 1, 8, 32, 20 seeds: hours")
    parser.add_argument("--seeds", type=int, help="seeds per function (4; 20 with --long)")
    parser.add_argument("--budget", type=int, default=200, help="trials per study (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "games.jsonl", help="where games are kept (%(default)s)")
    parser.add_argument("--read", action="store_true", help="play nothing, show what is there")
    given = parser.parse_args()
    functions = [*HARD, *(EASY if given.long else [])]
    workers, seeds = ([1, 8, 32], given.seeds or 20) if given.long else ([8, 32], given.seeds or 4)
    if not given.read:
        there = read(given.out)
        missing = [game for game in wanted(functions, workers, seeds) if game not in there]
        if missing:
            play(missing, given.out, given.budget)
    games = read(given.out)
    for title, names in (("hard functions", [*HARD]), ("easy functions", [*EASY]), *((name, [name]) for name in HARD)):
        if any(key[1] in names for key in games):
            print(f"\n{title}, B = {given.budget}\n")
            print("\n".join(table(games, names, str(given.budget))))


if __name__ == "__main__":
    main()
