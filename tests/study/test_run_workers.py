"""``Study.run`` with worker processes: what they need, what reaches whom, how they give up."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.study.processes import HEAD, SPACE, children_of, open_study, program, record, run

from dibs import Study, Trial
from dibs.backend import MemoryBackend
from dibs.errors import UsageError
from dibs.store import Store
from dibs.study._events import Closed, Counted
from dibs.study._pool import Pool
from dibs.study._work import Terms

GUARDED = """
if __name__ == "__main__":
    summary = study().run(objective, {trials}, workers=2{more})
    print(summary.ran, summary.failed, summary.why, dict(summary.states))
"""
GOOD = """
def objective(trial):
    return trial.point["x"]
"""


def main(trials: int, more: str = "") -> str:
    return GUARDED.format(trials=trials, more=more and ", " + more)


def points(study: Study) -> list[tuple[int, dict[str, Any]]]:
    return [(result.n, result.point) for result in study.results("done")]


# ---- what an objective has to be


def test_one_that_cannot_be_imported_is_refused_before_any_claim(tmp_path: Path) -> None:
    study = open_study(tmp_path)

    def nested(trial: Trial) -> float:
        return 1.0

    class Local:
        def __call__(self, trial: Trial) -> float:
            return 1.0

    for objective in (lambda trial: 1.0, nested, Local(), Local().__call__):
        with pytest.raises(UsageError, match="needs an objective that a fresh process can import"):
            study.run(objective, 5, workers=2)
    assert study.results() == []
    assert study.run(nested, 1, progress=False).ran == 1  # here it need not be


def test_a_store_in_memory_is_this_processs_alone() -> None:
    study = Study(Store.over(MemoryBackend()), "s", SPACE, goal="min")
    with pytest.raises(UsageError, match="in this process's memory"):
        study.run(print, 5, workers=2)


def test_a_daemon_process_may_not_start_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="a daemon process of multiprocessing may not"):
        open_study(tmp_path).run(print, 5, workers=2)


def test_without_the_guard_one_sentence_and_no_fork_bomb(tmp_path: Path) -> None:
    body = """
def objective(trial):
    return 1.0

try:
    study().run(objective, 5, workers=3)
finally:
    from tests.study.processes import children_of
    print("left:", [pid for pid in children_of(os.getpid()) if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()])
"""
    code, out, err = run(program(tmp_path, body), PYTHONPATH=str(Path(__file__).parents[2]))
    assert code == 1  # what Python makes of an exception; `dibs run` ends with its exit_code, 2
    assert UsageError.exit_code == 2
    assert out == "left: []\n"
    assert err.count("Traceback") == 1
    assert err.splitlines()[-1].startswith("dibs.errors.UsageError: workers > 1 starts fresh processes")
    assert "if __name__ == '__main__':" in err
    assert open_study(tmp_path).results() == []


def test_a_loop_without_the_guard_is_the_same_fault(tmp_path: Path) -> None:
    body = """
for trial in study().trials(1):
    with trial:
        trial.done(1.0)
"""
    code, _, err = run(program(tmp_path, body + GOOD + main(5)))
    assert code == 1
    assert err.splitlines()[-1].startswith("dibs.errors.UsageError: workers > 1 starts fresh processes")
    assert len(open_study(tmp_path).results()) == 1


def test_an_objective_inside_the_guard_is_refused(tmp_path: Path) -> None:
    body = """
if __name__ == "__main__":
    def objective(trial):
        return 1.0
    study().run(objective, 5, workers=2)
"""
    code, _, err = run(program(tmp_path, body))
    assert code == 1
    assert "a worker process cannot load the objective" in err.splitlines()[-1]
    assert "outside `if __name__ == '__main__':`" in err.splitlines()[-1]
    assert open_study(tmp_path).results() == []


def test_a_session_without_a_file_is_told_so(tmp_path: Path) -> None:
    program(tmp_path, "", name="head.py")
    body = "from head import *\ndef objective(trial): return 1.0\nstudy().run(objective, 5, workers=2)\n"
    code, _, err = run(
        program(
            tmp_path,
            f"exec(compile({body!r}, '<stdin>', 'exec'))",
            "p.py",
            head="import __main__; del __main__.__file__\n",
        )
    )
    assert code == 1
    assert "this session has no file" in err.splitlines()[-1]


def test_a_program_that_cannot_be_imported_again(tmp_path: Path) -> None:
    body = """
if __name__ != "__main__":
    raise ImportError("only as a program")
"""
    code, _, err = run(program(tmp_path, body + GOOD + main(5)))
    assert code == 1
    assert "ImportError: only as a program" in err
    assert "a worker process ended before it could begin: it exited with code 1" in err.splitlines()[-1]


# ---- what they do


def test_the_points_are_those_of_one_process(tmp_path: Path) -> None:
    one, many = tmp_path / "one", tmp_path / "many"
    one.mkdir(), many.mkdir()
    for folder, more in ((one, "workers=1"), (many, "workers=2")):
        body = GOOD + main(20).replace("workers=2", more)
        code, out, err = run(program(folder, body))
        assert (code, out) == (0, "20 0 settled {'done': 20}\n"), err
    assert points(open_study(one)) == points(open_study(many))
    assert len({str(point) for _, point in points(open_study(one))}) == 20


HOSTILE = """
import random
import numpy as np

def objective(trial):
    random.seed(0)
    np.random.seed(0)
    os.environ["LC_ALL"] = "tlh"
    print("f\\u00fcr \\u2603", "\\udcff", random.random())
    return trial.point["x"]
"""


@pytest.mark.parametrize(
    "environ",
    [
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONHASHSEED": "2", "LC_ALL": "en_US.ISO-8859-1", "PYTHONIOENCODING": "latin-1"},
    ],
    ids=["C", "latin-1"],
)
def test_seeds_hashes_and_locales_change_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    code, out, err = run(program(tmp_path, HOSTILE + main(8)), **environ)
    assert (code, out) == (0, "8 0 settled {'done': 8}\n"), err
    here = tmp_path / "here"
    here.mkdir()
    plain = open_study(here)
    plain.run(lambda trial: trial.point["x"], 8, progress=False)
    study = open_study(tmp_path)
    assert points(study) == points(plain)
    assert len({found.nonce for n in range(8) if (found := record(study, n))}) == 8
    log = tmp_path / "store/study/s/work/00000003-0/log.txt"
    assert "f\u00fcr \u2603 \\udcff 0.844" in log.read_text(encoding="utf-8")


def test_forks_and_processes_in_the_objective(tmp_path: Path) -> None:
    body = """
import multiprocessing

def square(x):
    return x * x

def objective(trial):
    for method in ("fork", "spawn") if trial.n == 0 else ("fork",):
        with multiprocessing.get_context(method).Pool(2) as pool:  # ends its processes by SIGTERM
            assert pool.map(square, [1, 2, 3]) == [1, 4, 9]
    subprocess.run(["true"], check=True)
    pid = os.fork()
    if pid == 0:
        try:
            trial.done(0.0)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert trial.report(1.0) is False, trial.reason
    return trial.point["x"]
"""
    code, out, err = run(program(tmp_path, body + main(4)))
    assert (code, out) == (0, "4 0 settled {'done': 4}\n"), err
    study = open_study(tmp_path)
    assert all(result.score == result.point["x"] for result in study.results())


def test_a_child_that_is_ended_as_it_begins_is_no_signal_to_its_parent(tmp_path: Path) -> None:
    head = """
import os, signal
ends = []
os.register_at_fork(after_in_child=lambda: ends and os.kill(os.getpid(), ends[0]))  # before dibs has its turn
"""
    body = """
def objective(trial):
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    for number in (signal.SIGTERM, signal.SIGHUP):
        ends[:] = [number]
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == number
    ends.clear()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == blocked
    assert trial.report(1.0) is False, trial.reason
    return trial.point["x"]

if __name__ == "__main__":
    summary = study().run(objective, 3)
    print(summary.ran, summary.failed, summary.why, dict(summary.states))
"""
    code, out, err = run(program(tmp_path, body, head=head + HEAD))
    assert (code, out) == (0, "3 0 settled {'done': 3}\n"), err


def test_each_gets_its_share_of_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    body = """
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SEEN = [os.environ.get(name) for name in THREADS]  # when the program is imported: before anybody's numpy

def objective(trial):
    print("threads", *SEEN)
    return 1.0

if __name__ == "__main__":
    before = dict(os.environ)
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    from dibs.study import _share
    _share._cores = lambda: 12
    study().run(objective, 2, workers=2, progress=False)
    assert dict(os.environ) == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == masked
"""
    code, _, err = run(program(tmp_path, body), MKL_NUM_THREADS="5", **dict.fromkeys(["OMP_NUM_THREADS"], ""))
    assert code == 0, err
    for n in range(2):
        log = tmp_path / f"store/study/s/work/{n:08d}-0/log.txt"
        assert log.read_text() == "threads  6 5 6 6\n"  # what is set is the user's, were it empty


# ---- giving up


def test_only_failures_end_the_run_with_the_traceback(tmp_path: Path) -> None:
    body = """
def objective(trial):
    raise ValueError(f"no such data \\u2603 {trial.n}")
"""
    code, _, err = run(program(tmp_path, body + main(100)))
    assert code == 1
    assert "dibs.errors.DibsError: no trial succeeded: the first 3 trials of each worker all failed" in err
    assert "ValueError: no such data" in err.splitlines()[-1]
    states = [result.state for result in open_study(tmp_path).results()]
    assert set(states) == {"failed"}
    assert 3 <= len(states) <= 6


def test_a_success_anywhere_keeps_all_of_them_going(tmp_path: Path) -> None:
    body = """
def objective(trial):
    if trial.n != 0:
        raise ValueError
    while len(list(HERE.glob("store/study/s/work/*/log.txt"))) < 5:  # until the other one has failed, and given up
        time.sleep(0.01)
        if (HERE / "gave up").exists():
            break
    return 1.0
"""
    main_part = """
if __name__ == "__main__":
    from dibs.study._events import Ended
    def on_event(event):
        if isinstance(event, Ended):
            (HERE / "gave up").touch()
    summary = study().run(objective, 12, workers=2, on_event=on_event)
    print(summary.ran, summary.failed, summary.why)
"""
    code, out, err = run(program(tmp_path, body + main_part))
    assert (code, out) == (0, "12 11 settled\n"), err


def test_a_store_error_of_one_worker_is_told_when_the_others_finish(tmp_path: Path) -> None:
    body = """
def objective(trial):
    if trial.n == 0 and trial.attempt == 0:
        raise dibs.StoreError("no space left", key="some/key")
    return 1.0
"""
    code, out, err = run(program(tmp_path, body + main(6)))
    assert (code, out) == (0, "7 0 settled {'done': 6}\n"), err
    assert "the others finished without it: no space left" in err


def test_a_store_error_of_all_of_them_is_raised(tmp_path: Path) -> None:
    body = """
def objective(trial):
    raise dibs.StoreError("no space left", key="some/key")
"""
    code, _, err = run(program(tmp_path, body + main(6)))
    assert code == 1
    assert err.splitlines()[-1] == "dibs.errors.StoreError: no space left"
    assert {result.state for result in open_study(tmp_path).results()} == {"interrupted"}


def test_time_is_over_before_anything_begins(tmp_path: Path) -> None:
    code, out, err = run(program(tmp_path, GOOD + main(6, "time_s=1e-6")))
    assert (code, out) == (0, "0 0 time {}\n"), err


def test_nothing_left_to_do_starts_no_process(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    study.run(lambda trial: 1.0, 3, progress=False)
    before = set(children_of(os.getpid()))
    summary = study.run(print, 3, workers=4, progress=False)
    assert (summary.ran, summary.why) == (0, "settled")
    assert set(children_of(os.getpid())) == before


# ---- what reaches the parent


def test_what_it_tells(tmp_path: Path) -> None:
    body = """
def objective(trial):
    print("not on the terminal")
    trial.report(0.5)
    if trial.n == 2:
        import logging
        logging.getLogger("dibs").warning("said by the worker")
        raise ValueError("no")
    return 0.25

if __name__ == "__main__":
    from dibs.study import _events as E
    events = []
    study().run(objective, 4, workers=2, on_event=events.append)
    assert sorted(e.worker for e in events if isinstance(e, E.Ready)) == [0, 1]
    assert sorted(e.n for e in events if isinstance(e, E.Claimed)) == [0, 1, 2, 3]
    assert sorted((e.n, e.step, e.score) for e in events if isinstance(e, E.Reported)) == [(n, 0, 0.5) for n in range(4)]
    closed = sorted((e.n, e.state, e.score, e.reason) for e in events if isinstance(e, E.Closed))
    assert closed == [(n, *(("failed", None, "ValueError: no") if n == 2 else ("done", 0.25, None))) for n in range(4)]
    ended = [e for e in events if isinstance(e, E.Ended)]
    assert (sum(e.ran for e in ended), sum(e.failed for e in ended)) == (4, 1)
    assert [e.text for e in events if isinstance(e, E.Said)] == ["said by the worker"]
    assert isinstance(events[-1], E.Counted) and events[-1].states == {"done": 3, "failed": 1}
"""
    code, out, err = run(program(tmp_path, body))
    assert (code, out, err) == (0, "", "")


def test_plain_lines_where_there_is_no_terminal(tmp_path: Path) -> None:
    code, out, err = run(program(tmp_path, GOOD + main(3)))
    assert (code, out) == (0, "3 0 settled {'done': 3}\n"), err
    lines = err.splitlines()
    assert lines[0].startswith("trial ")
    assert "done" in lines[0]
    assert "\x1b" not in err
    assert "3/3 done" in lines[-1]


def test_quiet_on_request(tmp_path: Path) -> None:
    code, _, err = run(program(tmp_path, GOOD + main(3, "progress=False")))
    assert (code, err) == (0, "")


def test_a_signal_mask_of_the_users_stays(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        body = GOOD + main(1, "progress=False")
        assert run(program(tmp_path, body))[0] == 0
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_an_end_is_counted_once_whatever_was_read_before_it_was_told(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    told: list[Any] = []
    pool = Pool(study, b"", Terms(trials=3), 1, 3, told.append)
    for trial in study.trials(2):
        with trial:
            trial.done(0.5)
    study.view.refresh()
    pool._uncount(Closed(0, 0, "done", 0.5, 1.0, None, False, 0))
    assert told == [Counted({"done": 1}, 0.5, 3)]
    pool._uncount(Closed(2, 0, "done", 0.5, 1.0, None, False, 0))
    assert len(told) == 1
