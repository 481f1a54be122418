"""docs/reference/benchmarks-search.md, made from the games that are there."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .functions import EASY, HARD
from .games import Game
from .report import PEER, against, functions_table, marks_table, spread, summary_table

__all__ = ["page", "write"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "benchmarks-search.md"
AIM, MARK = 0.25, "200"
WORKERS = [1, 8, 32, 100]
NAMES = {
    "auto": "auto",
    "tpe": "tpe",
    "optuna": "Optuna",
    "optuna-gp": "Optuna's GPSampler",
    "neps": "NePS",
    "random": "chance",
}


def write(games: Mapping[Game, dict[str, Any]]) -> None:
    """Write the page."""
    PAGE.write_text(page(games), encoding="utf-8")
    print(f"written to {PAGE}")


def page(games: Mapping[Game, dict[str, Any]]) -> str:
    """The page as text."""
    games = {game: one for game, one in games.items() if game.function in (*HARD, *EASY)}
    methods = [
        m for m in ("auto", "tpe", "random", "optuna-gp", "neps", PEER) if any(game.method == m for game in games)
    ]
    everywhere = [m for m in methods if m in ("auto", "tpe", "random", PEER)]
    workers = [w for w in WORKERS if any(game.workers == w for game in games)]
    versions = {m: next(one["version"] for game, one in games.items() if game.method == m) for m in methods}
    parts = [
        "# How good are the points?",
        _intro(versions),
        "## The aim, and what came of it",
        *_verdicts(games),
        "## Hard functions",
        _text(summary_table(games, list(HARD), everywhere, workers, MARK)),
        "`auto` minus Optuna's default after so many trials:",
        _text(marks_table(games, list(HARD), "auto", workers, ["50", "100", "200"])),
        "## Easy functions",
        _text(summary_table(games, list(EASY), everywhere, workers, MARK)),
    ]
    dear = [m for m in methods if m not in everywhere]
    if dear:
        names = sorted({game.function for game in games if game.method in dear}, key=HARD.index)
        shared = {(g.function, g.workers, g.seed) for g in games if g.method in dear}
        few = {g: one for g, one in games.items() if (g.function, g.workers, g.seed) in shared}
        parts += [
            "## Against a Gaussian process that costs more",
            f"Only {', '.join(names)}, and few seeds: an ask of it is dear.",
            _text(summary_table(few, names, [*everywhere, *dear], sorted({w for _, w, _ in shared}), MARK)),
        ]
    for w in workers:
        lines, _ = functions_table(games, [*HARD, *EASY], "auto", w, MARK)
        parts += [f"## Each function, W = {w}", _text(lines)]
    return "\n\n".join(parts) + "\n"


def _intro(versions: dict[str, str]) -> str:
    shown = ", ".join(f"{NAMES[m]} {version}" for m, version in versions.items() if m != "random")
    return f"""Simulated studies of 200 trials with W workers asking at once, dibs' default sampler beside Optuna's default.
Regret is log10 of (best - least) / (median of chance - least), at least -5 (tables: -3); less is better. Differences are
paired by function and seed; the standard error takes the functions as given and the seeds as drawn. Which functions are
hard, what a game is and what the aim is was written down before these games were played:
[bench/search/README.md](../../bench/search/README.md).

Versions: {shown}; {platform.system()}, {os.cpu_count()} shared cores, Python {platform.python_version()}. CPU times are those
of a busy machine: compare them with one another. Rerun: `python -m bench.search --long` (hours; without `--long` ten
minutes), then `--page`, which writes this page."""


def _verdicts(games: Mapping[Game, dict[str, Any]]) -> list[str]:
    lines = ["| | W | measured | |", "|---|---|---|---|"]
    for w in (8, 32):
        gaps = against(games, HARD, "auto", w, MARK)
        mean, error = spread(gaps)
        met = "met" if mean <= -AIM else "**missed**"
        seeds = sum(map(len, gaps.values()))
        lines.append(
            f"| paired mean over {len(gaps)} hard functions at least {AIM} below Optuna's | {w} "
            f"| {mean:+.2f} ± {error:.2f} ({seeds} pairs) | {met} |"
        )
    for w in (8, 32):
        behind = functions_table(games, [*HARD, *EASY], "auto", w, MARK)[1]
        found = ", ".join(behind) or "none"
        lines.append(
            f"| no function worse at p < 0.05, corrected | {w} | {found} | {'**missed**' if behind else 'met'} |"
        )
    return [_text(lines), *(_close(games, w) for w in (8, 32))]


def _close(games: Mapping[Game, dict[str, Any]], w: int) -> str:
    """The hard functions that carry nothing of the mean, and those that carry half of it."""
    gaps = {f: statistics.fmean(values) for f, values in against(games, HARD, "auto", w, MARK).items()}
    even = ", ".join(f"{f} ({gap:+.2f})" for f, gap in gaps.items() if gap > -0.1)
    carry, order = [], sorted(gaps, key=gaps.__getitem__)
    while order and 2 * sum(gaps[f] for f in carry) > sum(gaps.values()):
        carry.append(order.pop(0))
    return (
        f"W = {w}: half of the mean comes from {', '.join(carry)}; the median function is at "
        f"{statistics.median(gaps.values()):+.2f}. Less than 0.1 ahead, or behind: {even or 'none'}."
    )


def _text(lines: list[str]) -> str:
    return "\n".join(lines)
