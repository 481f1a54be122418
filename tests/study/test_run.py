"""``Study.run`` in this process: what the objective may return or raise, retries, limits, capture, the summary."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.study.processes import open_study, record, state

from dibs import Study, Trial
from dibs.errors import StoreError, UsageError
from dibs.study._events import Claimed, Closed, Counted, Event, Reported, Stopping, Waiting
from dibs.study._run import Holder


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return open_study(tmp_path)


def quiet(study: Study, objective: Callable[[Trial], Any], trials: int, **kwargs: Any) -> Any:
    return study.run(objective, trials, progress=False, **{"max_failures": None, **kwargs})


def ending(study: Study, n: int = 0, attempt: int = 0) -> tuple[str, float | None, str | None]:
    found = record(study, n, attempt)
    assert found is not None
    return found.state, found.score, found.reason


# ---- what an objective returns


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.array(0.5), np.float64(0.5)])
def test_a_returned_number_is_the_score(study: Study, value: Any) -> None:
    quiet(study, lambda trial: value, 1)
    assert ending(study) == ("done", 0.5, None)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("0.25", "a score must be a number, not str ('0.25')"),
        (float("nan"), "a score must be finite, not nan"),
        (float("-inf"), "a score must be finite, not -inf"),
        ({"loss": 1.0}, "a score must be a number, not dict ({'loss': 1.0})"),
        (True, "a score must be a number, not bool (True)"),
        (
            (1.0, 2.0),
            'a score must be a number, not tuple ((1.0, 2.0)): several at once are for trial.done in a study of several goals, such as goal=["min", "max"]',
        ),
        (None, "the objective returned None and had reported nothing"),
    ],
    ids=["text", "nan", "inf", "dict", "bool", "tuple", "None"],
)
def test_anything_else_is_a_failure_with_the_reason(study: Study, value: Any, reason: str) -> None:
    summary = quiet(study, lambda trial: value, 1)
    assert ending(study) == ("failed", None, reason)
    assert (summary.ran, summary.failed, summary.unfinished, summary.why) == (1, 1, False, "settled")


def test_none_after_reports_is_the_last_one_reported(study: Study) -> None:
    def objective(trial: Trial) -> None:
        for score in (0.1, 0.9):
            trial.report(score)

    quiet(study, objective, 1)
    assert ending(study) == ("done", 0.9, None)


def test_a_returned_score_counts_before_the_reported_ones(study: Study) -> None:
    def objective(trial: Trial) -> float:
        trial.report(0.1)
        return 0.4

    quiet(study, objective, 1)
    assert ending(study) == ("done", 0.4, None)


def test_an_objective_may_close_its_trial_itself(study: Study) -> None:
    def objective(trial: Trial) -> str:
        with trial:
            trial.done(0.3)
        return "ignored"

    assert quiet(study, objective, 2).states == {"done": 2}


# ---- what it raises


class Panic(BaseException):
    """What native libraries raise that want nobody to catch it."""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no"), "ValueError: no"),
        (SystemExit(3), "SystemExit: 3"),
        (SystemExit(0), "SystemExit: 0"),
        (Panic("native"), "tests.study.test_run.Panic: native"),
        (asyncio.CancelledError(), "asyncio.exceptions.CancelledError"),
        (MemoryError(), "MemoryError"),
        (StopIteration(), "StopIteration"),
        (UsageError("mine"), "dibs.errors.UsageError: mine"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_raised_is_a_failure_and_the_worker_goes_on(study: Study, error: BaseException, reason: str) -> None:
    def objective(trial: Trial) -> float:
        if trial.n == 0:
            raise error
        return 1.0

    summary = quiet(study, objective, 3)
    assert ending(study) == ("failed", None, reason)
    assert summary.states == {"failed": 1, "done": 2}
    found = record(study, 0)
    assert found is not None
    assert found.blob is not None
    assert "Traceback (most recent call last)" in json.loads(study.store.get(found.blob))["traceback"]


def test_keyboard_interrupt_is_an_interruption_and_is_raised(study: Study) -> None:
    def objective(trial: Trial) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quiet(study, objective, 3)
    assert [r.state for r in study.results()] == ["interrupted"]


def test_a_store_error_is_nobodys_failure(study: Study) -> None:
    def objective(trial: Trial) -> float:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        quiet(study, objective, 3)
    assert [r.state for r in study.results()] == ["interrupted"]


# ---- retries and limits


def test_retries_are_counted_in_failed_attempts(study: Study) -> None:
    def objective(trial: Trial) -> float:
        if trial.n == 0 or (trial.n == 1 and trial.attempt < 2):
            raise ValueError(f"attempt {trial.attempt}")
        return 1.0

    summary = quiet(study, objective, 3, retries=2)
    assert [(r.n, r.attempt, r.state) for r in study.results()] == [(0, 2, "failed"), (1, 2, "done"), (2, 0, "done")]
    again = [found.again for attempt in range(3) if (found := record(study, 0, attempt))]
    assert again == [True, True, False]
    assert (summary.ran, summary.failed, summary.states) == (7, 5, {"failed": 1, "done": 2})


def test_an_interruption_uses_up_no_retry(study: Study) -> None:
    for _ in study.trials(1):
        break
    summary = quiet(study, lambda trial: 1 / 0, 1, retries=1)
    assert [state(study, 0, k) for k in range(3)] == ["interrupted", "failed", "failed"]
    assert summary.ran == 2


def test_it_stops_when_nothing_but_failures_comes(study: Study) -> None:
    def objective(trial: Trial) -> float:
        raise ZeroDivisionError(trial.n)

    with pytest.raises(ZeroDivisionError, match="2"):
        study.run(objective, 50, progress=False)
    assert [r.state for r in study.results()] == ["failed"] * 3
    with pytest.raises(UsageError, match=r"the first 2 trials all failed; the last one: a score must be a number"):
        study.run(lambda trial: "text", 50, max_failures=2, progress=False)
    assert len(study.results()) == 5


def test_an_objective_that_exits_does_not_end_its_caller(study: Study) -> None:
    def objective(trial: Trial) -> float:
        raise SystemExit(3)

    with pytest.raises(UsageError, match=r"the first 3 trials all failed; the last one: SystemExit: 3$") as given_up:
        study.run(objective, 50, progress=False)
    assert isinstance(given_up.value.__cause__, SystemExit)


@pytest.mark.parametrize("good", [0, 1, 2])
def test_one_success_among_the_first_is_enough(study: Study, good: int) -> None:
    def objective(trial: Trial) -> float:
        if trial.n != good:
            raise ValueError
        return 1.0

    summary = study.run(objective, 10, progress=False)
    assert summary.states == {"done": 1, "failed": 9}


def test_never(study: Study) -> None:
    assert quiet(study, lambda trial: 1 / 0, 6, max_failures=None).states == {"failed": 6}


def test_time_is_over(study: Study) -> None:
    def objective(trial: Trial) -> float:
        clock.now += 60
        return 1.0

    clock = study.store.machine.clock = Clock()
    summary = quiet(study, objective, 10, time_s=150)
    assert (summary.ran, summary.states, summary.unfinished, summary.why) == (3, {"done": 3}, True, "time")
    assert quiet(study, objective, 10).why == "settled"


class Clock:
    """The machine's, on which the test moves the hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def wall(self) -> float:
        return 1_800_000_000.0 + self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


# ---- how it ends


def test_a_settled_study_runs_nothing(study: Study) -> None:
    quiet(study, lambda trial: 1.0, 3)
    summary = quiet(study, lambda trial: 1 / 0, 3)
    assert (summary.ran, summary.why, summary.unfinished) == (0, "settled", False)
    assert quiet(study, lambda trial: 2.0, 5).ran == 2
    assert quiet(study, lambda trial: 2.0, 0).why == "settled"


def test_what_others_hold_is_named(study: Study) -> None:
    other = Study(study.store.url, "s", me="ann")
    loop = other.trials(3)
    theirs = next(loop)
    summary = quiet(study, lambda trial: trial.point["x"], 3)
    assert (summary.ran, summary.unfinished, summary.why) == (2, True, "held")
    assert summary.held == (Holder(0, 0, "ann", record(study, 0).started_at),)  # type: ignore[union-attr]
    assert summary.best is not None
    assert summary.best.n in (1, 2)
    assert (summary.machines, summary.processes) == (1, 1)
    theirs.done(1.0)
    assert quiet(study, lambda trial: 1.0, 3).why == "settled"


def test_waiting_for_others(study: Study) -> None:
    other = Study(study.store.url, "s", me="ann")
    loop = other.trials(2)
    theirs = next(loop)
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Waiting):
            theirs.done(0.5)

    summary = quiet(study, lambda trial: 1.0, 2, wait=True, on_event=on_event)
    assert [event for event in events if isinstance(event, Waiting)] == [Waiting(1, 0)]
    assert (summary.why, summary.states) == ("settled", {"done": 2})


def test_a_stopped_study(study: Study) -> None:
    def objective(trial: Trial) -> float:
        study.stop()
        return 1.0

    summary = quiet(study, objective, 3)
    assert (summary.ran, summary.unfinished, summary.why) == (1, True, "stopped")
    study.resume()
    assert quiet(study, lambda trial: 1.0, 3).why == "settled"


def test_a_wish_without_room(study: Study) -> None:
    quiet(study, lambda trial: 1.0, 2)
    study.enqueue({"x": 0.5, "y": 0.5})
    summary = quiet(study, lambda trial: 1.0, 2)
    assert (summary.why, summary.unfinished, summary.ran) == ("queued", False, 0)
    quiet(study, lambda trial: trial.point["x"], 3)
    assert study.results()[2].point == {"x": 0.5, "y": 0.5}


def test_a_grid_ends_before_n(tmp_path: Path) -> None:
    from dibs import Choice, Space

    study = Study(tmp_path / "store", "g", Space(a=Choice(1, 2), b=Choice("x", "y")), goal="max", sampler="grid")
    summary = quiet(study, lambda trial: trial.point["a"], 10)
    assert (summary.ran, summary.why, summary.unfinished) == (4, "exhausted", False)
    assert summary.best is not None
    assert summary.best.score == 2


def test_a_signal_between_trials_raises(study: Study) -> None:
    def objective(trial: Trial) -> float:
        signal.raise_signal(signal.SIGTERM)
        return 1.0

    events: list[Event] = []
    with pytest.raises(SystemExit) as ended:
        quiet(study, objective, 3, on_event=events.append)
    assert ended.value.code == 143
    assert [r.state for r in study.results()] == ["done"]  # whole, and it had not been told
    assert Stopping("SIGTERM", True) in events


# ---- what is told


def test_events(study: Study) -> None:
    def objective(trial: Trial) -> float:
        trial.report(0.75)
        if trial.n == 1:
            raise ValueError("no")
        return 0.5

    events: list[Event] = []
    quiet(study, objective, 2, on_event=events.append)
    assert [type(event) for event in events if not isinstance(event, Counted)] == [
        Claimed, Reported, Closed, Claimed, Reported, Closed,
    ]  # fmt: skip
    closed = [event for event in events if isinstance(event, Closed)]
    assert [(c.n, c.attempt, c.state, c.score, c.reason, c.again) for c in closed] == [
        (0, 0, "done", 0.5, None, False),
        (1, 0, "failed", None, "ValueError: no", False),
    ]
    assert Reported(0, 0, 0, 0.75, 0) in events
    assert events[0] == Counted({}, None, 2)
    assert events[-1] == Counted({"done": 1, "failed": 1}, 0.5, 2)


def test_a_display_that_breaks_breaks_no_trial(study: Study) -> None:
    def on_event(event: Event) -> None:
        if not isinstance(event, Counted):
            raise BrokenPipeError

    assert quiet(study, lambda trial: trial.report(1.0), 2, on_event=on_event).states == {"failed": 2}
    assert ending(study)[2] == "a score must be a number, not bool (False)"


# ---- capture


def test_everything_it_writes_goes_to_the_log(study: Study, capfd: pytest.CaptureFixture[str]) -> None:
    def objective(trial: Trial) -> float:
        assert trial.log.exists()
        print("printed")
        print("warned", file=sys.stderr)
        os.write(1, b"written\n")
        subprocess.run([sys.executable, "-c", "print('from a process')"], check=True)
        os.system("echo from a shell >&2")
        if trial.n == 1:
            raise ValueError("at last")
        return 1.0

    logs: list[Path] = []

    def keep(trial: Trial) -> float:
        logs.append(trial.log)
        return objective(trial)

    quiet(study, keep, 2, capture=True)
    print("after", flush=True)
    assert capfd.readouterr() == ("after\n", "")
    first, second = (path.read_text() for path in logs)
    assert sorted(first.splitlines()) == ["from a process", "from a shell", "printed", "warned", "written"]
    assert second.rstrip().endswith("ValueError: at last")
    assert "Traceback (most recent call last)" in second


def test_megabytes_are_fine(study: Study) -> None:
    def objective(trial: Trial) -> float:
        for _ in range(64):
            print("x" * 65535)
        size.append(0)
        path.append(trial.log)
        return 1.0

    size: list[int] = []
    path: list[Path] = []
    quiet(study, objective, 1, capture=True)
    assert path[0].stat().st_size == 64 * 65536


def test_descriptors_are_put_back_after_every_end(study: Study) -> None:
    before = [os.fstat(fd).st_ino for fd in (1, 2)]
    count = len(list(Path("/proc/self/fd").iterdir()))

    def objective(trial: Trial) -> float:
        assert [os.fstat(fd).st_ino for fd in (1, 2)] == [trial.log.stat().st_ino] * 2
        if trial.n == 0:
            raise ValueError
        if trial.n == 1:
            raise SystemExit
        if trial.n == 2:
            raise KeyboardInterrupt
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        quiet(study, objective, 4, capture=True)
    assert [os.fstat(fd).st_ino for fd in (1, 2)] == before
    assert len(list(Path("/proc/self/fd").iterdir())) == count


def test_a_log_that_cannot_be_written_is_the_stores_trouble(study: Study, tmp_path: Path) -> None:
    (tmp_path / "store/study/s/work").mkdir()
    (tmp_path / "store/study/s/work/00000000-0").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be made"):
        quiet(study, lambda trial: 1.0, 1, capture=True)
    assert ending(study)[0] == "interrupted"


@pytest.mark.parametrize("what", ["a link", "a pipe"])
def test_what_is_planted_in_place_of_a_log_is_not_written_through(study: Study, tmp_path: Path, what: str) -> None:
    log = tmp_path / "store/study/s/work/00000000-0/log.txt"
    log.parent.mkdir(parents=True)
    if what == "a link":
        log.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(log)
    with pytest.raises(StoreError, match="the log"):
        quiet(study, lambda trial: print("secret") or 1.0, 1, capture=True)
    assert not (tmp_path / "elsewhere").exists()
    assert ending(study)[0] == "interrupted"


# ---- wrong calls


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": 5}, "the objective must be a function"),
        ({"workers": 0}, "workers must be an integer of at least 1"),
        ({"workers": 1.5}, "workers must be"),
        ({"retries": -1}, "retries must be"),
        ({"retries": True}, "retries must be"),
        ({"max_failures": 0}, "max_failures must be an integer of at least 1"),
        ({"time_s": 0}, "time_s must be a positive"),
        ({"time_s": float("nan")}, "time_s must be a positive"),
        ({"grace_s": -1}, "grace_s must be"),
        ({"grace_s": float("nan")}, "grace_s must be"),
        ({"trials": -1}, "number of trials"),
        ({"rescue_after_s": 0}, "rescue_after_s"),
    ],
    ids=str,
)
def test_a_call_that_cannot_be_meant(study: Study, change: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"objective": lambda trial: 1.0, "trials": 1, "progress": False, **change}
    with pytest.raises(UsageError, match=message):
        study.run(call.pop("objective"), call.pop("trials"), call.pop("workers", 1), **call)
    assert study.results() == []


def test_ranks_are_refused(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(UsageError, match="WORLD_SIZE=4"):
        quiet(study, lambda trial: 1.0, 1)
    independent = Study(study.store, "s", ranks="independent")
    assert quiet(independent, lambda trial: 1.0, 1).why == "settled"
