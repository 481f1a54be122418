"""Real programs for the tests of cells: write one, run it in a folder of its own, see who is alive."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dibs.cell import Ending, Job, Told, run
from dibs.cell._landlock import abi

LIMIT_S = 60.0
landlocked = pytest.mark.skipif(not abi(), reason="this kernel has no Landlock")


class Watching:
    """A watcher that keeps what it is told. ``stop_at``: the step at which it answers True; ``stops``: asked each time."""

    def __init__(self, stop_at: int | None = None, stops: Callable[[], bool] = bool) -> None:
        self.steps: list[tuple[int | None, float | None]] = []
        self.stop_at, self.stops = stop_at, stops

    def progress(self, told: Told) -> bool:
        self.steps.append((told.step, told.score))
        return self.stop_at is not None and told.step is not None and told.step >= self.stop_at

    def stopping(self) -> bool:
        return self.stops()


def job(folder: Path, text: str, *words: str, program: str = "/bin/sh", **more: Any) -> Job:
    """A script, run by a shell (or by ``program``), ready in a folder of its own."""
    own = folder / "own"
    own.mkdir(parents=True, exist_ok=True)
    script = folder / "script"
    script.write_text(text)
    environ = {**os.environ, "DIBS_RESULT": str(own / "result.json"), **more.pop("environ", {})}
    given = {
        "cwd": own,
        "own": (own,),
        "log": folder / "log.txt",
        "result": own / "result.json",
        "grace_s": 5.0,
        **more,
    }
    return Job(argv=[program, str(script), *words], environ=environ, **given)


def ran(folder: Path, text: str, *words: str, watching: Watching | None = None, **more: Any) -> Ending:
    """The same, run."""
    return run(job(folder, text, *words, **more), watching or Watching())


def alive(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(what: Callable[[], Any]) -> Any:
    """What it answers once it answers something."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it did not come to pass")


def number_in(path: Path) -> int:
    """The number a program has written into a file by now, 0 before that."""
    try:
        text = path.read_text()
    except OSError:
        return 0
    return int(text) if text.endswith("\n") else 0
