"""How good a front samplers find where there are two goals, with and without constraints, beside Optuna's.

What is left of the hypervolume that the true front dominates, after 50, 100 and 150 trials of 8 workers, one slower than
the next: 0 is perfect, and chance's is given beside it. The functions are those of the tests. Optuna (whatever version
is installed here) runs its TPE and its NSGA-II as they come, told of the constraints.
``python -m bench.several`` (``--seeds 10``, ``--no-peer``).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from typing import Any

from tests.search.several import CASES, WHOLE, Case, hypervolume, played

from dibs.search import make_sampler

WORKERS = 8
MARKS = (50, 100, 150)
OURS = ("random", "tpe", "gp", "nsga2")
THEIRS = ("Optuna TPE", "Optuna NSGA-II")


def optuna_rows(name: str, case: Case, trials: int, seed: int) -> list[Any]:
    """``played`` with Optuna asking."""
    import optuna

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kind = optuna.samplers.TPESampler if name.endswith("TPE") else optuna.samplers.NSGAIISampler
    limits: Any = None
    if case.answer(dict.fromkeys(case.space.names, 0.5))[1] is not None:
        limits = lambda trial: [trial.user_attrs["excess"]]  # noqa: E731
    sampler = kind(seed=seed, constraints_func=limits)
    directions = ["maximize" if goal == "max" else "minimize" for goal in case.goals]
    study = optuna.create_study(directions=directions, sampler=sampler)
    space = {p: optuna.distributions.FloatDistribution(d.low, d.high) for p, d in case.space.params.items()}  # type: ignore[attr-defined]
    asked: list[Any] = []
    rows: list[Any] = []
    for n in range(trials):
        for k in range(max(0, n - WORKERS), n):
            if k + 1 + k % WORKERS == n:
                study.tell(asked[k], list(rows[k][2]))
        asked.append(study.ask(space))
        point = dict(asked[-1].params)
        scores, excess = case.answer(point)
        asked[-1].set_user_attr("excess", excess)
        rows.append((n, point, scores, "done", None, excess))
    return rows


def game(name: str, case: Case, seed: int) -> tuple[list[float], float]:
    """(what is left at each mark, CPU milliseconds per ask)."""
    began, trials = time.process_time(), MARKS[-1]
    if name in OURS:
        rows = played(make_sampler(name, seed=seed, goal=case.goals), case, trials, WORKERS)
    else:
        rows = optuna_rows(name, case, trials, seed)
    spent = 1e3 * (time.process_time() - began) / trials
    return [hypervolume(rows[:mark], case) for mark in MARKS], spent


def main() -> None:
    """Play all and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.several", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="games of each (%(default)s)")
    parser.add_argument("--no-peer", action="store_true", help="leave Optuna out")
    given = parser.parse_args()
    print(f"| function | sampler | {' | '.join(f'left after {mark}' for mark in MARKS)} | CPU ms per ask |")
    print("|---|---|---|---|---|---|")
    for title, whole in WHOLE.items():
        for name in OURS if given.no_peer else OURS + THEIRS:
            games = [game(name, CASES[title], seed) for seed in range(given.seeds)]
            cells = []
            for k in range(len(MARKS)):
                left = [1.0 - found[k] / whole for found, _ in games]
                error = statistics.stdev(left) / len(left) ** 0.5 if len(left) > 1 else 0.0
                cells.append(f"{statistics.mean(left):.3f} ± {error:.3f}")
            print(f"| {title} | {name} | {' | '.join(cells)} | {statistics.median(ms for _, ms in games):.1f} |")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
