"""The argument for a sink, as a property: any processes, any trials in any order, any call that fails or is the last.

The global best ran in exactly one process, where it was also that process's best; so it is among the files, whatever
else happened. Between any two calls a reader finds complete pairs, and nothing that was acknowledged is missing.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sink.disk import Disk, Killed

from dibs.sink import Sink, _marks, _spool

FATES = ["fine", "fine", "fine", "error", "half", "lost", "killed", "interrupted", "late"]


class Step(NamedTuple):
    """One trial: where it runs, what it says, and what happens at which of its calls."""

    process: int
    score: float
    artifact: str
    fate: str
    at: int


STEPS = st.lists(
    st.builds(
        Step,
        process=st.integers(1, 4),
        score=st.sampled_from([0.0, 1.0, 2.0, 3.0, math.nan, math.inf]),
        artifact=st.sampled_from(["none", "one", "one", "unpicklable"]),
        fate=st.sampled_from(FATES),
        at=st.integers(1, 12),
    ),
    max_size=12,
)


class Unpicklable:
    def __reduce__(self) -> Any:
        raise RuntimeError("not this one")


class World:
    """The processes' folder, their trials, and what a reader must find at any moment."""

    def __init__(self, folder: Path, maximize: bool, disk: Disk) -> None:
        self.sink = Sink(folder, maximize)
        self.sign = 1 if maximize else -1
        self.disk = disk
        self.trials: list[Step] = []
        self.told: list[float] = []  # scores that are there, or better ones
        self.carried: list[float] = []  # the same, with an artefact, where nothing went wrong
        self.faulty = False
        self.shown: float | None = None  # what a reader has seen once never goes away, acknowledged or not
        self.shown_artifact: float | None = None

    def run(self, step: Step, process: int) -> None:
        """One trial in one process, with a look before every one of its calls."""
        n = len(self.trials)
        self.trials.append(step)
        self.disk.begin()

        def before(name: str, count: int) -> None:
            self.look()
            if count == step.at:
                if step.fate == "killed":
                    self.disk.kill()
                if step.fate == "interrupted":
                    raise KeyboardInterrupt
                if step.fate == "error":
                    raise OSError(errno.ENOSPC, "No space left on device")

        self.disk.before = before
        self.disk.half = step.at if step.fate == "half" else -1
        self.disk.lost = step.at if step.fate == "lost" else -1
        self.disk.late = step.at if step.fate == "late" else -1
        self.faulty |= step.fate != "fine"
        artifact = {"none": None, "one": ("of", n), "unpicklable": Unpicklable()}[step.artifact]
        try:
            answer = self.sink.record(step.score, artifact, {"n": n}, n=n)
        except KeyboardInterrupt:
            assert step.fate in ("interrupted", "late")
        except Killed:
            _marks._marks.pop((self.sink.folder, process), None)  # whoever gets the pid next knows nothing
        else:
            assert not (answer and not math.isfinite(step.score))
            if answer or (step.fate == "fine" and math.isfinite(step.score)):  # it is there, or was not needed
                self.told.append(step.score)
            if step.fate == "fine" and step.artifact == "one" and math.isfinite(step.score):
                self.carried.append(step.score)
        self.disk.begin()
        self.look()

    def worst_to_best(self, scores: list[float]) -> float:
        return max(scores, key=lambda score: score * self.sign)

    def look(self) -> None:
        """Everything a reader is promised, whenever it reads."""
        counted, before = self.disk.count, self.disk.before
        found = self.sink.best()
        self.disk.count, self.disk.before = counted, before
        if found is None:
            assert not self.told
            assert self.shown is None
            return
        ran = self.trials[found.params["n"]]
        assert found.skipped == 0
        assert found.score == ran.score
        assert found.scalars == found.params
        if self.told:
            assert found.score * self.sign >= self.worst_to_best(self.told) * self.sign
        assert not self.sink.is_better(self.shown, found.score)
        assert not self.sink.is_better(self.shown_artifact, found.artifact_score)
        self.shown, self.shown_artifact = found.score, found.artifact_score
        if found.artifact_score is None:
            assert not self.carried
            assert found.artifact is None
            return
        assert found.artifact == ("of", found.artifact_params["n"])
        assert found.artifact_scalars == found.artifact_params
        assert found.artifact_score == self.trials[found.artifact_params["n"]].score
        assert found.artifact_is_winner == (found.artifact_params == found.params)
        if self.carried:
            assert found.artifact_score * self.sign >= self.worst_to_best(self.carried) * self.sign

    def end(self) -> None:
        """Where nothing went wrong: exactly the best, and the best with an artefact."""
        scores = [step.score for step in self.trials if math.isfinite(step.score)]
        found = self.sink.best()
        if self.faulty or not scores:
            return
        assert found is not None
        assert found.score == self.worst_to_best(scores)
        carrying = [s.score for s in self.trials if math.isfinite(s.score) and s.artifact == "one"]
        assert found.artifact_score == (self.worst_to_best(carrying) if carrying else None)
        first = {step.process: n for n, step in reversed(list(enumerate(self.trials))) if step.score == found.score}
        assert found.params["n"] in first.values() or self.trials[found.params["n"]].artifact == "one"


@contextmanager
def world(maximize: bool) -> Iterator[tuple[World, pytest.MonkeyPatch]]:
    """A folder, and this process as whichever it has to be."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        disk = Disk()
        patch.setattr(_spool, "os", disk)
        yield World(Path(folder), maximize, disk), patch
        for key in [key for key in _marks._marks if key[0] == folder]:
            del _marks._marks[key]


@given(steps=STEPS, maximize=st.booleans())
def test_any_schedule(steps: list[Step], maximize: bool) -> None:
    with world(maximize) as (all_of_it, patch):
        for step in steps:
            pid = 10_000_000 + step.process
            patch.setattr(os, "getpid", lambda pid=pid: pid)
            all_of_it.run(step, pid)
        all_of_it.end()


@pytest.mark.parametrize("fate", FATES[2:])
def test_each_call_of_each_kind_of_trial(fate: str) -> None:
    """The better trial after the good one, wherever it ends; then trials in between, which must not cover the better."""
    for at in range(1, 15):
        for artifact in ("none", "one", "unpicklable"):
            with world(maximize=True) as (all_of_it, patch):
                patch.setattr(os, "getpid", lambda: 10_000_001)
                for step in (
                    Step(1, 1.0, "one", "fine", 0),
                    Step(1, 3.0, artifact, fate, at),
                    Step(1, 2.5, "none", "fine", 0),
                    Step(1, 2.0, "one", "fine", 0),
                    Step(1, 1.0, "one", "fine", 0),
                ):
                    all_of_it.run(step, 10_000_001)
                all_of_it.end()
