"""From games to figures: paired differences, their standard errors, ranks, and a test per function.

Regret is log10((best - least) / (median of chance - least)), floor -5, of tables -3; less is better. Differences are paired by
function, workers and seed. The standard error takes the functions as given and the seeds as drawn.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from .games import Game

__all__ = ["PEER", "against", "functions_table", "holm", "marks_table", "spread", "summary_table"]

PEER = "optuna"
Games = Mapping[Game, dict[str, Any]]


def spread(groups: Mapping[str, list[float]]) -> tuple[float, float]:
    """Mean over functions and seeds, and its standard error with the functions given."""
    means = [statistics.fmean(values) for values in groups.values()]
    errors = [statistics.stdev(v) ** 2 / len(v) if len(v) > 1 else 0.0 for v in groups.values()]
    return statistics.fmean(means), sum(errors) ** 0.5 / len(groups)


def against(games: Games, functions: Iterable[str], method: str, workers: int, mark: str) -> dict[str, list[float]]:
    """function -> its regret minus the peer's, one for each seed both played."""
    names, gaps = set(functions), defaultdict(list)
    for game in sorted(games):
        peer = game._replace(method=PEER)
        if game.method == method and game.workers == workers and game.function in names and peer in games:
            gaps[game.function].append(games[game]["regret"][mark] - games[peer]["regret"][mark])
    return dict(gaps)


def worse(gaps: list[float]) -> float:
    """p of "not worse": Wilcoxon's signed-rank test, one-sided; 1 where nothing differs."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(gaps, alternative="greater").pvalue) if any(gaps) and len(gaps) > 1 else 1.0


def holm(ps: Mapping[str, float]) -> dict[str, float]:
    """p-values corrected for their number (Holm 1979)."""
    corrected, so_far = {}, 0.0
    for k, name in enumerate(sorted(ps, key=ps.__getitem__)):
        so_far = max(so_far, min(1.0, (len(ps) - k) * ps[name]))
        corrected[name] = so_far
    return corrected


def summary_table(games: Games, functions: list[str], methods: list[str], workers: list[int], mark: str) -> list[str]:
    """One line for each method and number of workers; ranks are among the methods that played everything."""
    lines = [
        "| W | sampler | games | regret | minus Optuna's | better, worse | mean rank | repeats | CPU ms per ask |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for w in workers:
        played = {m: {(g.function, g.seed) for g in games if g.method == m and g.workers == w and g.function in functions} for m in methods}  # fmt: skip
        whole = [m for m in methods if played.get(PEER) and played[m] >= played[PEER]]
        ranks: dict[str, list[float]] = defaultdict(list)
        for f, s in sorted(played.get(PEER, ())):
            ends = {m: games[Game(m, f, w, s)]["regret"][mark] for m in whole}
            for m, end in ends.items():
                below, alike = sum(e < end for e in ends.values()), sum(e == end for e in ends.values())
                ranks[m].append(below + (alike + 1) / 2)
        for m in methods:
            if not played[m]:
                continue
            regret: dict[str, list[float]] = defaultdict(list)
            for f, s in sorted(played[m]):
                regret[f].append(games[Game(m, f, w, s)]["regret"][mark])
            shared = [games[Game(m, f, w, s)] for f, s in sorted(played[m])]
            mean, error = spread(regret)
            cells = [
                w, f"`{m}`", len(shared), f"{mean:.2f} ± {error:.2f}", "", "",
                f"{statistics.fmean(ranks[m]):.2f}" if m in ranks else "",
                sum(game["repeats"] for game in shared), f"{statistics.median(game['ms'] for game in shared):.1f}",
            ]  # fmt: skip
            gaps = against(games, functions, m, w, mark)
            if m != PEER and gaps:
                every = [g for values in gaps.values() for g in values]
                cells[4] = _gap(gaps)
                cells[5] = f"{_share(every, -1)}, {_share(every, 1)}"
            lines.append(_line(cells))
    return lines


def marks_table(games: Games, functions: list[str], method: str, workers: list[int], marks: list[str]) -> list[str]:
    """How the difference to the peer grows with the trials."""
    lines = [_line(["W", *(f"after {mark}" for mark in marks)]), _line(["---"] * (1 + len(marks)))]
    for w in workers:
        gaps = [against(games, functions, method, w, mark) for mark in marks]
        if gaps[0]:
            lines.append(_line([w, *map(_gap, gaps)]))
    return lines


def functions_table(games: Games, functions: list[str], method: str, w: int, mark: str) -> tuple[list[str], list[str]]:
    """One line for each function, and those that are worse at a corrected p below 0.05."""
    gaps = against(games, functions, method, w, mark)
    raw = {f: worse(values) for f, values in gaps.items()}
    corrected = holm(raw)
    lines = [
        "| function | seeds | regret | Optuna's | difference | better, worse | p of worse | corrected |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for f in (f for f in functions if f in gaps):
        seeds = [g.seed for g in games if g.method == method and g.function == f and g.workers == w]
        seeds = [s for s in seeds if Game(PEER, f, w, s) in games]
        ours, theirs = ([games[Game(m, f, w, s)]["regret"][mark] for s in seeds] for m in (method, PEER))
        lines.append(_line([
            f, len(seeds), f"{statistics.fmean(ours):.2f}", f"{statistics.fmean(theirs):.2f}",
            _gap({f: gaps[f]}), f"{_share(gaps[f], -1)}, {_share(gaps[f], 1)}",
            _p(raw[f]), _p(corrected[f]),
        ]))  # fmt: skip
    return lines, [f for f, p in corrected.items() if p < 0.05]


def _gap(gaps: Mapping[str, list[float]]) -> str:
    """A mean difference; its error only where every function has two seeds at least."""
    mean, error = spread(gaps)
    return f"{mean:+.2f} ± {error:.2f}" if all(len(values) > 1 for values in gaps.values()) else f"{mean:+.2f}"


def _share(gaps: list[float], sign: int) -> str:
    return f"{sum(g * sign > 0 for g in gaps) / len(gaps):.0%}"


def _p(p: float) -> str:
    return f"{p:.2f}" if p >= 0.095 else f"{p:.2g}"


def _line(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |".replace("| --- ", "|---").replace("---|", "---|")
