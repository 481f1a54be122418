"""What a person sees of a run: plain lines, rarely; one living line on a terminal; always the counts and the best."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest
from tests.parts import FakeClock

from dibs.study._events import (
    Claimed,
    Closed,
    Counted,
    Ended,
    Event,
    Ready,
    Reported,
    Said,
    Stopping,
    Waiting,
    WorkerDied,
)
from dibs.study._progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def closed(n: int, state: str = "done", score: float | None = 0.5, *, attempt: int = 0, again: bool = False) -> Closed:
    return Closed(n, attempt, state, score, 2.0, None if state == "done" else "ValueError: no\nsuch", again, 0)


def told(events: list[Event], stream: io.StringIO, goal: str = "min", pause_s: float = 1.0) -> str:
    clock = FakeClock()
    progress = Progress(10, goal, stream, clock=clock)
    for event in events:
        clock.now += pause_s
        progress.event(event)
    progress.close()
    return stream.getvalue()


def test_plain_lines() -> None:
    text = told(
        [Counted({"done": 2, "running": 1}, 0.7, 10), Claimed(3, 0, 0), closed(3), closed(4, "failed", None),
         closed(5, "interrupted", None, attempt=2), closed(6, "failed", None, again=True)],
        io.StringIO(),
    )  # fmt: skip
    assert text.splitlines() == [
        "trial 3 done 0.5 (2.0 s)  [3/10 done, best 0.5, 1/s, 7.0 s left]",
        "trial 4 failed (2.0 s): ValueError: no such",
        "trial 5 attempt 2 interrupted (2.0 s): ValueError: no such",
        "trial 6 failed (2.0 s): ValueError: no such",
    ]


def test_a_trial_that_was_tried_again_is_counted_once() -> None:
    first = Counted({"done": 8, "failed": 2}, 0.7, 10)
    text = told([first, closed(0, attempt=1), closed(1, attempt=1)], io.StringIO())
    assert "[9/10 done, 1 failed, best 0.5" in text
    assert "[10/10 done, best 0.5" in text
    first = Counted({"done": 8, "failed": 1}, 0.7, 10)
    assert "[10/10 done, best 0.5" in told([first, closed(0, attempt=1), closed(9)], io.StringIO())


def test_a_fast_pace_is_a_plain_number() -> None:
    line = told([Counted({}, None, 10), Claimed(3, 0, 0), closed(3)], io.StringIO(), pause_s=1 / 320)
    assert ", 320/s, " in line, line


def test_plain_lines_are_rare_and_the_last_one_is_there() -> None:
    lines = told([closed(n, score=n) for n in range(100)], io.StringIO(), pause_s=0.01).splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith("trial 99 done 99")
    failures = told([closed(n, "failed", None) for n in range(100)], io.StringIO(), pause_s=0.01).splitlines()
    assert len(failures) == 100  # never held back


@pytest.mark.parametrize(("goal", "best"), [("min", "1"), ("max", "3")])
def test_the_best_by_the_goal(goal: str, best: str) -> None:
    text = told([closed(0, score=2.0), closed(1, score=3.0), closed(2, score=1.0)], io.StringIO(), goal)
    assert f"best {best}]" in text.splitlines()[-1]


def test_a_living_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = told(
        [Ready(0, 1), Ready(1, 2), Claimed(0, 0, 0), Claimed(1, 0, 1), Reported(0, 0, 0, 0.5, 0), closed(0),
         closed(1, "failed", None), Said(30, "careful", 1), Waiting(2, 0), Ended(0, 1, 0, "held")],
        Terminal(),
    )  # fmt: skip
    frames = text.split("\r\x1b[K")
    assert frames[4] == "0/10 done, 2 running, 2 workers"
    assert frames[6].startswith("1/10 done, 1 running, best 0.5, ")
    assert "trial 1 failed (2.0 s): ValueError: no such\n" in frames
    assert "careful\n" in frames
    assert frames[-1].startswith("1/10 done, 1 failed, best 0.5, ")
    assert frames[-1].endswith(", waiting for 2\n")
    assert text.count("\n") == 3  # two lines that stay, and the last state


def test_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    text = told([Counted({"done": 2}, 0.123456789, 10), closed(3)], Terminal())
    assert all(len(frame) <= 20 for frame in text.split("\r\x1b[K"))


def test_deaths_and_stops_are_told() -> None:
    text = told(
        [WorkerDied(1, 77, "killed by SIGKILL", True), WorkerDied(2, 78, "it exited with code 3", False),
         Stopping("SIGINT", False), Stopping("SIGTERM", True), Waiting(1, 0), Waiting(2, 0)],
        io.StringIO(),
    )  # fmt: skip
    assert text.splitlines() == [
        "worker 1 (process 77) died: killed by SIGKILL; a new one takes its place",
        "worker 2 (process 78) died: it exited with code 3; it is not replaced",
        "Ctrl-C: finishing what runs, no new trials; Ctrl-C again interrupts",
        "SIGTERM: interrupting",
        "waiting for 1 trial that others run",
        "waiting for 2 trials that others run",
    ]


def test_a_stream_that_is_gone_breaks_nothing() -> None:
    stream = io.StringIO()
    progress = Progress(3, "min", stream)
    stream.close()
    progress.event(closed(0))
    progress.close()


def test_by_default_a_copy_of_the_error_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream itself may be on its way into a trial's log."""
    with (tmp_path / "terminal").open("w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        progress = Progress(3, "min")
        away = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
        back = os.dup(terminal.fileno())
        os.dup2(away, terminal.fileno())
        progress.event(closed(0))
        os.dup2(back, terminal.fileno())
        os.close(away)
        os.close(back)
        progress.close()
    assert (tmp_path / "terminal").read_text().startswith("trial 0 done")
    assert (tmp_path / "log").read_text() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    told_here = Progress(3, "min")
    told_here.event(closed(0))
    told_here.close()
    assert sys.stderr.getvalue().startswith("trial 0 done")  # type: ignore[attr-defined]


def test_from_many_threads() -> None:
    stream = Terminal()
    progress = Progress(1000, "min", stream)
    threads = [
        threading.Thread(target=lambda k=k: [progress.event(closed(k * 50 + n)) for n in range(50)]) for k in range(4)
    ]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    progress.close()
    assert "200/1000 done" in stream.getvalue().rsplit("\r\x1b[K", 1)[-1]
