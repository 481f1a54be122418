"""Limits per trial in real processes: what is over one, what becomes of it, and what is counted as what."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.parts import FakeClock
from tests.study.processes import alive, eventually, open_study, program, record, run, state

from dibs import Study, Trial
from dibs.cell._limits import is_limit, size_text, span_text
from dibs.cell._usage import family, resident
from dibs.errors import UsageError
from dibs.study import Limits
from dibs.study._share import cores_of
from dibs.study._watchdog import OVER_LIMIT, Watchdog

MIB = 1 << 20
MAIN = """
if __name__ == "__main__":
    from dibs.study import Limits, _pool
    _pool._OVERDUE_S = {overdue_s}  # beyond the limit, for a worker to end itself
    summary = study().run(objective, {trials}, workers={workers}, limits=Limits({limits}), progress=False, {more})
    print(summary.ran, summary.failed, summary.why)
"""


def ran(
    folder: Path,
    objective: str,
    trials: int,
    limits: str,
    *,
    workers: int = 1,
    more: str = "max_failures=None",
    overdue_s: float = 60,
) -> tuple[int, str, str]:
    main = MAIN.format(trials=trials, workers=workers, limits=limits, more=more, overdue_s=overdue_s)
    return run(program(folder, objective + main))


def endings(study: Study) -> list[tuple[int, str, str | None]]:
    return [(result.attempt, result.state, result.reason) for result in study.results()]


def log_of(folder: Path, n: int, attempt: int = 0) -> str:
    return (folder / f"store/study/s/work/{n:08d}-{attempt}/log.txt").read_text()


# ---- over the time


SLEEPS = """
def objective(trial):
    if trial.n == 1:
        print("going to sleep")
        time.sleep(10**6)  # in C, which lets go of the GIL
    return trial.point["x"]
"""


def test_one_that_takes_too_long_is_failed_with_the_limit_and_the_others_go_on(tmp_path: Path) -> None:
    code, out, err = ran(tmp_path, SLEEPS, 3, "time_s=0.5", more="retries=1")
    assert (code, out) == (0, "4 2 settled\n"), err
    study = open_study(tmp_path)
    reason = "over the time limit of 0.5s"
    assert endings(study) == [(0, "done", None), (1, "failed", reason), (0, "done", None)]
    first, second = record(study, 1, 0), record(study, 1, 1)
    assert first is not None
    assert second is not None
    assert (first.state, first.reason, first.again) == ("failed", reason, True)
    assert (second.state, second.again) == ("failed", False)
    assert second.took_s is not None
    assert second.took_s >= 0.5
    assert "time.sleep(10**6)" in study.store.get(str(second.blob)).decode()  # where it was
    said = log_of(tmp_path, 1)
    assert f"dibs: {reason}; the trial is failed and its process ends\n" in said
    assert "going to sleep\n" in said  # what was still in a buffer
    assert "died" not in err


HOLDS_THE_GIL = """
import re

def objective(trial):
    if trial.n == 0:
        re.match(r"(a?){60}a{60}", "a" * 60)  # for years, and no other thread gets a turn
    return trial.point["x"]
"""


def test_one_that_never_lets_go_of_the_gil_is_killed_and_failed_with_the_limit(tmp_path: Path) -> None:
    code, out, err = ran(tmp_path, HOLDS_THE_GIL, 2, "time_s=0.5", overdue_s=0.1)
    assert (code, out) == (0, "2 1 settled\n"), err
    study = open_study(tmp_path)
    assert endings(study) == [(1, "failed", "over the time limit of 0.5s"), (0, "done", None)]
    assert state(study, 0, 0) == "running"  # nobody but its owner writes it, and that is dead
    first, verdict = record(study, 0, 0), record(study, 0, 1)
    assert first is not None
    assert verdict is not None
    assert (verdict.point, verdict.seed, verdict.again) == (first.point, first.seed, False)


def test_with_retries_left_it_ends_as_poison_at_the_third(tmp_path: Path) -> None:
    more = "retries=9, max_failures=None"
    code, _, err = ran(tmp_path, HOLDS_THE_GIL, 1, "time_s=0.3", more=more, overdue_s=0.1)
    assert code == 0, err
    study = open_study(tmp_path)
    states = [(found.state, found.reason) for k in range(9) if (found := record(study, 0, k))]
    lost, told = ("running", None), ("failed", "over the time limit of 0.3s")
    assert states == [lost, told, lost, told, lost, ("failed", "poison")]


def test_an_objective_that_closed_its_trial_and_hangs_is_ended_and_stays_done(tmp_path: Path) -> None:
    objective = """
def objective(trial):
    trial.done(0.25)
    time.sleep(10**6)
"""
    code, out, err = ran(tmp_path, objective, 2, "time_s=0.3")
    assert (code, out) == (0, "2 0 settled\n"), err
    assert endings(open_study(tmp_path)) == [(0, "done", None)] * 2


# ---- over the memory


EATS = """
HUNGRY = "import time; food = bytearray({size}); food[::4096] = b'x' * len(food[::4096]); time.sleep(10**6)"

def objective(trial):
    if trial.n == 0:
        food = []
        while True:  # page by page
            food.append(bytearray(1 << 20))
            food[-1][::4096] = b"x" * 256
            time.sleep(0.001)
    if trial.n == 1:
        child = subprocess.Popen([sys.executable, "-c", HUNGRY.format(size=150 << 20)])
        (HERE / "pid").write_text(str(child.pid))
        child.wait()
    return trial.point["x"]
"""


def test_what_a_trial_and_its_processes_hold_is_limited(tmp_path: Path) -> None:
    code, out, err = ran(tmp_path, EATS, 3, "memory_bytes=140 << 20", workers=2)
    assert (code, out) == (0, "3 2 settled\n"), err
    found = endings(open_study(tmp_path))
    assert [(attempt, state) for attempt, state, _ in found] == [(0, "failed"), (0, "failed"), (0, "done")]
    for _, _, reason in found[:2]:
        used = re.fullmatch(r"over the memory limit of 140 MiB \(([\d.]+) MiB used\)", str(reason))
        assert used is not None, reason
        assert float(used[1]) > 140
    eater = int((tmp_path / "pid").read_text())
    eventually(lambda: not alive(eater))


def test_a_limit_below_what_python_itself_needs_ends_the_run_and_says_so(tmp_path: Path) -> None:
    objective = """
def objective(trial):
    time.sleep(10**6)
"""
    code, _, err = ran(tmp_path, objective, 50, "memory_bytes=1 << 20", more="max_failures=2")
    assert code == 1
    assert "no trial succeeded: the first 2 trials of each worker all failed" in err
    assert "over the memory limit of 1 MiB (" in err.splitlines()[-1]
    assert len(open_study(tmp_path).results()) == 2


# ---- what counts as what


def test_a_killed_worker_uses_up_no_retry(tmp_path: Path) -> None:
    objective = """
def objective(trial):
    if trial.attempt == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if trial.attempt == 1:
        raise ValueError("a failure")
    return 1.0
"""
    code, _, err = ran(tmp_path, objective, 1, "cpus=1", more="retries=1")
    assert code == 0, err
    study = open_study(tmp_path)
    assert [state(study, 0, k) for k in range(4)] == ["running", "failed", "done", None]


def test_a_trial_that_kills_every_process_is_poison_after_three_and_says_so(tmp_path: Path) -> None:
    objective = """
def objective(trial):
    if trial.n == 1 and not (HERE / "mended").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0
"""
    code, out, err = ran(tmp_path, objective, 4, "cpus=1", workers=2)
    assert (code, out.split()[-1]) == (0, "settled"), err
    assert "trial 1 ended 3 attempts without a result: closed as failed (poison); `dibs retry` frees it" in err
    study = open_study(tmp_path)
    assert endings(study) == [(0, "done", None), (3, "failed", "poison"), (0, "done", None), (0, "done", None)]
    assert [state(study, 1, k) for k in range(4)] == ["running"] * 3 + ["failed"]
    assert study.retry(1) == [1]
    fails = program(tmp_path, objective.replace("os.kill(os.getpid(), signal.SIGKILL)", "raise ValueError"), "q.py")
    fails.write_text(
        fails.read_text() + MAIN.format(trials=4, workers=1, limits="cpus=1", more="retries=1", overdue_s=60)
    )
    code, _, err = run(fails)
    assert code in (0, 1), err
    assert [state(study, 1, k) for k in (4, 5, 6)] == ["failed", "failed", None]  # the verdict was no attempt


# ---- a worker's share


def test_cores_are_distinct_as_far_as_they_reach() -> None:
    assert [cores_of(seat, 2, [0, 2, 4, 6, 8]) for seat in range(3)] == [[0, 2], [4, 6], [0, 8]]
    assert cores_of(5, 1, [3]) == [3]
    assert cores_of(0, 4, [0, 1]) == [0, 1]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this platform binds no process to cores")
def test_each_worker_is_bound_to_its_cores(tmp_path: Path) -> None:
    objective = """
EARLY = sorted(os.sched_getaffinity(0)), os.environ.get("OMP_NUM_THREADS"), os.environ.get("MKL_NUM_THREADS")

def objective(trial):
    (HERE / f"seen-{os.getpid()}").write_text(repr((sorted(os.sched_getaffinity(0)), EARLY)))
    for _ in range(3000):  # until both of them have begun
        if len(list(HERE.glob("seen-*"))) == 2:
            return 1.0
        time.sleep(0.01)
"""
    before = sorted(os.sched_getaffinity(0))
    main = MAIN.format(trials=2, workers=2, limits="cpus=1", more="", overdue_s=60)
    code, out, err = run(program(tmp_path, objective + main), MKL_NUM_THREADS="3")
    assert (code, out) == (0, "2 0 settled\n"), err
    seen = sorted(path.read_text() for path in tmp_path.glob("seen-*"))
    expected = [cores_of(seat, 1, before) for seat in range(2)]
    assert seen == sorted(repr((cores, (cores, "1", "3"))) for cores in expected)


# ---- what they are


@pytest.mark.parametrize(
    "wrong",
    [
        {"time_s": 0}, {"time_s": -1}, {"time_s": math.inf}, {"time_s": math.nan}, {"time_s": True}, {"time_s": "1h"},
        {"memory_bytes": 0}, {"memory_bytes": 1.5}, {"memory_bytes": "4G"}, {"cpus": 0}, {"cpus": True}, {"gpus": -1},
    ],
    ids=str,
)  # fmt: skip
def test_a_limit_is_a_positive_number(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Limits(**wrong)


def test_run_takes_nothing_else(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    with pytest.raises(UsageError, match=r"limits must be dibs.study.Limits\(...\), not 3"):
        study.run(print, 1, limits=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_running must be an integer of at least 1, not 0"):
        study.run(print, 1, max_running=0)
    with pytest.raises(UsageError, match="a limit needs an objective that a fresh process can import"):
        study.run(lambda trial: 1.0, 1, limits=Limits(time_s=60))
    assert study.results() == []
    assert not Limits()
    assert not Limits(cpus=1).watched


@pytest.mark.parametrize(
    ("took_s", "used", "reason"),
    [
        (59.9, 1 << 30, None),
        (60, None, "over the time limit of 1m"),
        (10, (1 << 30) + 1, "over the memory limit of 1 GiB (1 GiB used)"),
        (10, 1288490189, "over the memory limit of 1 GiB (1.2 GiB used)"),
        (10, None, None),
    ],
)
def test_what_is_over(took_s: float, used: int | None, reason: str | None) -> None:
    assert Limits(time_s=60, memory_bytes=1 << 30).exceeded(took_s, used) == reason
    assert is_limit(reason) == (reason is not None)
    assert Limits().exceeded(took_s, used) is None


def test_an_exception_that_speaks_of_limits_is_none() -> None:
    assert not is_limit("ValueError: over the time limit of 1m")
    assert not is_limit("over the rainbow")
    assert not is_limit(None)


def test_texts() -> None:
    sizes = [0, 1023, 1024, 1536, 4 << 30, 5476083302, 1 << 45, 1 << 60]
    assert [size_text(size) for size in sizes] == [
        "0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "4 GiB", "5.1 GiB", "32 TiB", "1048576 TiB",
    ]  # fmt: skip
    spans = [0.5, 1, 90, 1800, 5400, 3600.5, 86400]
    assert [span_text(span) for span in spans] == ["0.5s", "1s", "1m30s", "30m", "1h30m", "1h0.5s", "1d"]


def test_what_a_process_and_its_children_hold() -> None:
    code = (  # the grandchild holds what it will hold when it has said so
        "import subprocess, sys; it = subprocess.Popen(['sh', '-c', 'echo; read never'], stdin=subprocess.PIPE, "
        "stdout=subprocess.PIPE); it.stdout.readline(); print(it.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        grandchild = int(it.stdout.readline())
        try:
            assert family(it.pid) == [it.pid, grandchild]
            assert family(os.getpid())[-2:] == [it.pid, grandchild]
            whole, exact = resident(it.pid, beyond=1 << 60), resident(it.pid)
            assert whole is not None
            assert exact is not None
            assert MIB < exact < whole < 1000 * MIB  # what they share counts once
            assert resident(grandchild) == resident(grandchild, beyond=1 << 60) != None  # noqa: E711
        finally:
            os.kill(grandchild, 9)
            assert it.stdin is not None
            it.stdin.close()
    assert resident(2**22 + 1) is None  # there is no such process


class Closing:
    """A trial that only knows how it was closed."""

    def __init__(self) -> None:
        self._called, self.closed, self.ends = "trial 0", False, list[str]()

    def fail(self, reason: str, trace: str) -> None:
        self.ends.append(reason)


def test_the_watchdog_minds_the_objective_alone() -> None:
    def end(code: int) -> NoReturn:
        raise SystemExit(code)

    clock, trial = FakeClock(), Closing()
    watchdog = Watchdog(Limits(time_s=10, memory_bytes=1 << 50), clock, end)
    as_trial: Trial = trial  # type: ignore[assignment]
    assert watchdog.pause_s() == 3600
    clock.now += 100
    watchdog.look()
    with watchdog.over(as_trial):
        assert watchdog.pause_s() == 1  # memory is looked at every second
        clock.now += 9.5
        assert watchdog.pause_s() == 0
        watchdog.look()
        assert watchdog.pause_s() == 0.5
    clock.now += 100
    watchdog.look()
    assert trial.ends == []
    with watchdog.over(as_trial):
        clock.now += 10
        with pytest.raises(SystemExit, match=str(OVER_LIMIT)):
            watchdog.look()
    assert trial.ends == ["over the time limit of 10s"]
