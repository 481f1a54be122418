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

__all__ = ["HERE", "Game", "has_torch", "play", "read", "wanted"]

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent / ".venv" / "bin" / "python"
NEPS = HERE.parent / ".venv" / "neps" / "bin" / "python"
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


def read(out: Path, mark: str) -> dict[Game, dict[str, Any]]:
    """What has been played for at least so many trials. Of a method's versions the one played last stands."""
    lines = map(json.loads, out.read_text().splitlines() if out.exists() else [])
    played = [one for one in lines if mark in one["regret"]]
    last = {one["method"]: one["version"] for one in played}
    return {
        Game(one["method"], one["function"], one["workers"], one["seed"]): one
        for one in played
        if one["version"] == last[one["method"]]
    }


def play(games: list[Game], out: Path, budget: int, jobs: int) -> None:
    """So many games at once, each job with a process for each environment; each line is kept as it comes."""
    prepare()
    left, kept, broken = deque(games), threading.Lock(), []

    def job(file: Any) -> None:
        processes: dict[Path, Any] = {}
        while left and not broken:
            game = left.popleft()
            python = NEPS if game.method == "neps" else PYTHON
            if python not in processes:
                processes[python] = _started(python)
            process = processes[python]
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
        for process in processes.values():
            process.stdin.close()
            process.wait()

    with out.open("a") as file:
        threads = [threading.Thread(target=job, args=(file,)) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(file=sys.stderr)
    if broken:
        sys.exit(f"a game could not be played: {' '.join(map(str, broken[0]))}")


def _started(python: Path) -> Any:
    return subprocess.Popen(
        ["nice", "-n", "15", python, HERE / "play.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | ONE_THREAD,
    )  # fmt: skip


def prepare() -> None:
    """The environment of the games, made once; what is dear to install is not."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", PYTHON.parents[1]], check=True)
    if not _has(PYTHON, "cocoex", "optuna", "sklearn", "msgspec", "click", "rich"):
        subprocess.run([PYTHON, "-m", "pip", "install", "-q", *NEEDS], check=True)


def has_torch() -> bool:
    """Whether Optuna's Gaussian process can be played."""
    return PYTHON.exists() and _has(PYTHON, "torch")


def _has(python: Path, *modules: str) -> bool:
    code = f"import importlib.util as u; raise SystemExit(not all(map(u.find_spec, {modules!r})))"
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
