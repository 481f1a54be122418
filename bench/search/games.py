"""Which games are wanted, which were played, and the processes that play the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["PYTHON", "Game", "play", "read", "wanted"]

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent / ".venv" / "bin" / "python"
NEEDS = (
    "optuna==5.0.0", "numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1", "coco-experiment==2.8.2", "msgspec>=0.18.6",
    "click>=8.1", "rich>=13",
)  # fmt: skip
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Game(NamedTuple):
    """One study."""

    method: str
    function: str
    workers: int
    seed: int


def wanted(methods: list[str], functions: list[str], workers: list[int], seeds: int) -> list[Game]:
    """All games, seed by seed, so that whatever is there when it is broken off is paired."""
    return [Game(m, f, w, s) for s in range(seeds) for f in functions for w in workers for m in methods]


def read(out: Path) -> dict[Game, dict[str, Any]]:
    """What has been played. Of several versions of a sampler the last one in the file stands."""
    found: dict[Game, dict[str, Any]] = {}
    newest: dict[str, str] = {}
    for line in out.read_text().splitlines() if out.exists() else []:
        one = json.loads(line)
        newest[one["method"]] = max(newest.get(one["method"], ""), one["version"])
        found[Game(one["method"], one["function"], one["workers"], one["seed"])] = one
    return {game: one for game, one in found.items() if one["version"] == newest[game.method]}


def play(games: list[Game], out: Path, budget: int, jobs: int) -> None:
    """So many processes, each given one game after the other; each line is kept as it comes."""
    _prepare()
    left, kept, broken = deque(games), threading.Lock(), []

    def worker(file: Any) -> None:
        process = subprocess.Popen(
            ["nice", "-n", "15", PYTHON, HERE / "play.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | ONE_THREAD,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        while left and not broken:
            game = left.popleft()
            process.stdin.write(f"{game.method} {game.function} {game.workers} {game.seed} {budget}\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                broken.append(game)
                break
            with kept:
                file.write(line)
                file.flush()
                print(f"\r{len(games) - len(left)} of {len(games)} games ", end="", file=sys.stderr, flush=True)
        process.stdin.close()
        process.wait()

    with out.open("a") as file:
        threads = [threading.Thread(target=worker, args=(file,)) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(file=sys.stderr)
    if broken:
        sys.exit(f"a game could not be played: {broken[0]}")


def _prepare() -> None:
    """The environment of the games, made once."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", PYTHON.parents[1]], check=True)
    if subprocess.run(
        [PYTHON, "-c", "import cocoex, optuna, sklearn, msgspec, click, rich"], capture_output=True
    ).returncode:
        subprocess.run([PYTHON, "-m", "pip", "install", "-q", *NEEDS], check=True)
