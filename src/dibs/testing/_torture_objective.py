"""What the torture's workers run: trials of a fraction of a second, and a journal of what each process was told.

The journal lies outside the store and every line is on the disk before the worker goes on, so that whoever is
killed has told what it knew. What a trial does (reports, files, failures) is a function of its seed and attempt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

from dibs import Choice, Float, Int, Space, Trial
from dibs._canon import to_json
from dibs._clock import SystemClock
from dibs.study import _quiet

__all__ = [
    "FAILURE", "SPACE", "STUDY", "Hurried", "Journal", "Objective", "bounds_of", "hurry", "journal_of", "plan_of", "score_of", "text_of",
]  # fmt: skip

STUDY = "torture"
SPACE = Space(
    x=Float(0.0, 1.0),
    rate=Float(1e-5, 1e-1, log=True),
    depth=Int(1, 8),
    kind=Choice(None, True, 1, 1.0, "1", ("a", 2)),
    extra=Float(0.0, 1.0, when={"kind": ["1"]}),
)
FAILURE = "this point fails on purpose"
_CLOCK = SystemClock()  # durations only: how long a trial takes, and how long this process did not run
_TICK_S = 0.2
_STARVED_S = 0.75  # beyond a tick: a process that comes to nothing for so long may well be taken for quiet


class Journal:
    """One process's lines, one JSON object each."""

    def __init__(self, folder: str, me: str) -> None:
        self.path = Path(folder) / f"{me}-{os.getpid()}.jsonl"
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._head = {"me": me, "pid": os.getpid()}

    def say(self, what: str, **facts: Any) -> None:
        """Add a line; it is on the disk when this returns."""
        line = {**self._head, "what": what, "at": round(_CLOCK.monotonic(), 3), **facts}
        os.write(self._fd, json.dumps(line).encode() + b"\n")
        os.fsync(self._fd)

    def watch_time(self) -> None:
        """From now on note when this process came to nothing for a while: stopped, or starved by a busy machine."""
        Thread(target=self._tick, daemon=True, name="torture-ticks").start()

    def _tick(self) -> None:
        before = _CLOCK.monotonic()
        while True:
            _CLOCK.sleep(_TICK_S)
            os.utime(self.path, None)  # a disk that answers nobody starves us, too
            now = _CLOCK.monotonic()
            if now - before > _TICK_S + _STARVED_S:
                self.say("starved", seconds=round(now - before, 3))
            before = now


@lru_cache(maxsize=1)
def _journal(folder: str, me: str, pid: int) -> Journal:
    journal = Journal(folder, me)
    journal.watch_time()
    return journal


def journal_of(folder: str, me: str) -> Journal:
    """This process's journal; a forked or spawned child has one of its own."""
    return _journal(folder, me, os.getpid())


def score_of(n: int, attempt: int) -> float:
    """The score an attempt comes to: tells which one it was."""
    return n + attempt / 1000


def bounds_of(n: int, attempt: int) -> dict[str, float]:
    """The constraints an attempt reports, half of them broken: tell which one it was, too."""
    return {"even": n % 2 - 0.5, "attempt": float(-attempt)}


@dataclass(frozen=True)
class Plan:
    """What one attempt does."""

    steps: int
    step_s: float
    fails: bool
    nan: bool
    saves: bool
    says_done: bool  # in the objective, instead of leaving it to whoever runs it


def plan_of(seed: int, attempt: int, shortest_s: float, longest_s: float) -> Plan:
    """A function of the trial's seed and the attempt: a failure may succeed when it is tried again."""
    chance = Random(f"{seed} {attempt}")
    steps = chance.randint(1, 4)
    return Plan(
        steps=steps,
        step_s=chance.uniform(shortest_s, longest_s) / steps,
        fails=chance.random() < 0.06,
        nan=chance.random() < 0.03,
        saves=chance.random() < 0.3,
        says_done=chance.random() < 0.5,
    )


@dataclass(frozen=True)
class Objective:
    """``objective(trial)``: the score, None after a report that answered True, or an exception on purpose."""

    journals: str
    me: str
    scratch: str
    shortest_s: float
    longest_s: float

    def __call__(self, trial: Trial) -> float | None:
        journal = journal_of(self.journals, self.me)
        journal.say(
            "claimed", n=trial.n, a=trial.attempt, nonce=trial._attempt.nonce, point=text_of(trial.point),
            seed=trial.seed,
        )  # fmt: skip
        plan = plan_of(trial.seed, trial.attempt, self.shortest_s, self.longest_s)
        self._resume(trial, journal)
        for step in range(plan.steps):
            _CLOCK.sleep(plan.step_s)
            if step == 0 and plan.saves:
                self._save(trial, journal)
            if plan.fails:
                raise RuntimeError(FAILURE)
            last = step == plan.steps - 1
            told = trial.report(score_of(trial.n, trial.attempt) if last else 1000.0 - step, step=step)
            if told and not plan.says_done:  # whoever ends it itself listens to nobody
                journal.say("stopping", n=trial.n, a=trial.attempt, why=trial.reason)
                return None
        if plan.nan:
            return float("nan")
        if plan.says_done:
            score, bounds = score_of(trial.n, trial.attempt), bounds_of(trial.n, trial.attempt)
            trial.done(score, constraints=bounds)
            journal.say("told", n=trial.n, a=trial.attempt, state=trial.state, score=score, constraints=bounds)
        return score_of(trial.n, trial.attempt)

    def _save(self, trial: Trial, journal: Journal) -> None:
        path = Path(self.scratch) / f"{self.me}-{os.getpid()}"
        path.write_text(f"trial {trial.n} attempt {trial.attempt}\n" * 20)
        digest = trial.save("state", path)
        journal.say("saved", n=trial.n, a=trial.attempt, name="state", digest=digest)

    def _resume(self, trial: Trial, journal: Journal) -> None:
        if trial.attempt == 0:
            return
        path = trial.load("state")
        if path is not None and not path.read_text().startswith(f"trial {trial.n} "):
            journal.say("wrong", n=trial.n, a=trial.attempt, why=f"load() gave another trial's file: {path}")


def hurry() -> None:
    """In a bucket half a minute lies between beats, which are paid for: here that is a second, as in a folder.

    Else no trial of the torture would live to its first beat, whoever is stopped would never be missed, and a torn
    record, whose stamp nobody can set back in a bucket, would be waited for for minutes.
    """
    _quiet.BUCKET_BEAT_S = _quiet.FOLDER_BEAT_S
    _quiet.DEFAULT_BEAT_S = _quiet.FOLDER_BEAT_S[0]


class Hurried(Objective):
    """The process it is sent to hurries, too."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _hurried, (self.journals, self.me, self.scratch, self.shortest_s, self.longest_s)


def _hurried(*told: Any) -> Hurried:
    hurry()
    return Hurried(*told)


def text_of(point: Mapping[str, Any]) -> dict[str, Any]:
    """A point as the JSON that a record holds."""
    return {name: to_json(value) for name, value in point.items()}
