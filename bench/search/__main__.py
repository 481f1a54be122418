"""``python -m bench.search``: play simulated studies, dibs' default sampler against Optuna's, and print how they compare.

The short form takes ten minutes: the hard functions, W = 8 and 32, a few seeds. ``--long`` takes hours: all functions,
W = 1, 8, 32, 100, 20 seeds, chance and Optuna's Gaussian process too. Games that are in ``--out`` are not played
again, so it may be broken off and gone on with.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .functions import DEV, EASY, HARD
from .games import HERE, Game, has_torch, play, read, wanted
from .page import write
from .report import PEER, functions_table, summary_table
from .space import MARKS

SETS = {"hard": HARD, "easy": EASY, "dev": DEV}
METHODS = ("auto", PEER, "random")
#: Optuna's Gaussian process costs 50 times as much CPU as its default, so few games of it: the long form only
FEW = ("rosenbrock5", "rastrigin5", "bbob15-5", "bbob21-5", "svc_cancer", "svc_digits")
FEW_SEEDS = 5


def long_form(seeds: int) -> list[Game]:
    """In the order of what they tell: what breaks off early still is a whole."""
    every = [*HARD, *EASY]
    games = wanted([*METHODS, "tpe"], every, [8, 32], seeds)
    games += wanted(list(METHODS), every, [1, 100], seeds)
    return games + (wanted(["optuna-gp"], list(FEW), [8, 32], FEW_SEEDS) if has_torch() else [])


def main() -> None:
    """Play what is missing and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="everything: hours")
    parser.add_argument("--seeds", type=int, help="seeds per function (4; 20 with --long)")
    parser.add_argument(
        "--set", choices=[*SETS], default="hard", help="which functions, in the short form (%(default)s)"
    )
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="in the short form (%(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=[8, 32], help="in the short form (%(default)s)")
    parser.add_argument("--budget", type=int, default=200, choices=MARKS, help="trials per study (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="games at once, each a process (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "games.jsonl", help="where games are kept (%(default)s)")
    parser.add_argument("--read", action="store_true", help="play nothing, show what is there")
    parser.add_argument(
        "--page", action="store_true", help="write docs/reference/benchmarks-search.md from what is there"
    )
    given = parser.parse_args()
    if given.long:
        games = long_form(given.seeds or 20)
    else:
        games = wanted(given.methods, list(SETS[given.set]), given.workers, given.seeds or 4)
    mark = str(given.budget)
    if not given.read and not given.page:
        there = read(given.out, mark)
        if missing := [game for game in games if game not in there]:
            play(missing, given.out, given.budget, given.jobs)
    there, asked = read(given.out, mark), set(games)
    if given.page:
        return write(there)
    methods, workers = list(dict.fromkeys(g.method for g in games)), sorted({g.workers for g in games})
    there = {game: one for game, one in there.items() if game in asked}
    for title, names in SETS.items():
        if not any(game.function in names for game in there):
            continue
        print(f"\n{title} functions, {mark} trials\n")
        print("\n".join(summary_table(there, list(names), methods, workers, mark)))
        for w in workers if methods[0] != PEER else []:
            lines, behind = functions_table(there, list(names), methods[0], w, mark)
            if len(lines) == 2:
                continue
            print(f"\n`{methods[0]}` on each, W = {w}\n")
            print("\n".join(lines))
            print(f"\nworse than Optuna's at p < 0.05: {', '.join(behind) or 'none'}")
    return None


if __name__ == "__main__":
    main()
