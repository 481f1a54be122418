"""``dibs launch`` on a real platform: a job in a folder of its own, with any command to run, and what became of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dibs import Study

LIMIT_S = 100
TRIALS = 12
STUDY = "launched"
#: one that stands still in the first attempt at trial 0 until it is asked to stop, and says so, if HOLD is set;
#: else, if TOGETHER is, the first trial of each worker waits until so many have one
SEARCH = """
import os
import time
from pathlib import Path

import dibs

goal = "min"
space = dibs.Space(x=dibs.Float(0, 1))
crew = Path("crew")


def objective(trial):
    crew.mkdir(exist_ok=True)
    (crew / os.environ["DIBS_ME"].replace("/", "-")).touch()
    if os.environ.get("HOLD") and (trial.n, trial.attempt) == (0, 0):
        Path("held").write_text(str(os.getpid()))
        while not trial.stopping:
            time.sleep(0.02)
        Path("let-go").touch()
    elif not os.environ.get("HOLD"):
        until = time.monotonic() + 60
        while len(list(crew.iterdir())) < int(os.environ.get("TOGETHER", "1")):
            assert time.monotonic() < until, "the others never came"
            time.sleep(0.02)
    return trial.point["x"]
"""
SEARCHING = ["dibs", "run", "search.py", "--study", STUDY, "--trials", str(TRIALS), "--sampler", "random", "--wait"]


@dataclass
class Launch:
    """A job in a folder: ``write`` it, ``start`` it, look at what became of its study."""

    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def write(self, profile: str, *, run: Any = SEARCHING, env: Mapping[str, str] | None = None, **said: Any) -> None:
        """``profile``: the text of the only candidate's; ``said``: more keys of the job, tables in JSON."""
        (self.folder / "profiles").mkdir(parents=True, exist_ok=True)
        (self.folder / "profiles" / "there.toml").write_text(profile)
        (self.folder / "search.py").write_text(SEARCH)
        job = {"run": run, "env": env or {}, "candidates": ["there"], "store": "store", **said}
        (self.folder / "job.json").write_text(json.dumps(job))

    def start(self, *words: str, wait: bool = True) -> subprocess.Popen[str]:
        """``dibs launch`` in a process of its own."""
        program = [
            sys.executable,
            "-m",
            "dibs",
            "launch",
            "job.json",
            "--json",
            "--wait" if wait else "--no-wait",
            *words,
        ]
        environ = {name: text for name, text in os.environ.items() if not name.startswith(("DIBS_", "SLURM_"))}
        return subprocess.Popen(
            program, cwd=self.folder, env={**environ, "HOME": str(self.folder), **self.environ}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """The same for a block of a test, which it does not outlast."""
        with self.start(*words) as started:
            try:
                yield started
            finally:
                started.kill()

    def told(self, *words: str, wait: bool = True) -> Any:
        """Start it, and its answer once it is over. AssertionError with all it said if it did not start anything."""
        return self.answer(self.start(*words, wait=wait))

    def answer(self, started: subprocess.Popen[str]) -> Any:
        try:
            out, err = started.communicate(timeout=LIMIT_S)
        finally:
            started.kill()
        assert out, f"{err}\n{self.logs()}"
        told = json.loads(out)
        assert started.returncode == told.get("exit_code", 0), err
        told["stderr"], told["logs"] = err, self.logs()
        return told

    def logs(self) -> str:
        """What the workers wrote."""
        files = sorted(self.folder.glob(".dibs/launch/*/*.log"))
        return "\n".join(f"{file.name}: {file.read_text(errors='replace')[-1500:]}" for file in files)

    def attempts(self) -> dict[int, int]:
        """Of each settled trial of the study: which attempt counted."""
        return {row.n: row.attempt for row in Study(self.store, STUDY).results() if row.state == "done"}

    def crew(self) -> set[str]:
        """Who had a trial."""
        return {path.name for path in (self.folder / "crew").iterdir()}
