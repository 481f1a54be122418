"""Signals against real processes: the grace, code deep in C, Ctrl-C, a parent that is killed, workers that are."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from tests.study.processes import (
    HEAD,
    alive,
    children_of,
    end,
    eventually,
    open_study,
    program,
    record,
    run,
    start,
    state,
)

# objectives that have begun once their trial's curve (or file) shows it
IN_C = """
def objective(trial):
    import hashlib
    trial.report(1.0)
    (HERE / "begun").touch()
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2_000_000_000)  # minutes, without the GIL
    return 1.0
"""
LOOKS = """
def objective(trial):
    (HERE / "begun").touch()
    step = 0
    while not trial.report(1.0, step=step):
        step += 1
        time.sleep(0.01)
    (HERE / "looked").touch()
    return 0.5
"""
IGNORES = """
def objective(trial):
    (HERE / "begun").touch()
    try:
        while True:
            time.sleep(0.01)
    finally:
        (HERE / "unwound").touch()
"""
SWALLOWS = """
def objective(trial):
    (HERE / "begun").touch()
    while True:
        try:
            time.sleep(60)
        except BaseException:
            (HERE / "swallowed").touch()
"""
UNAWARE = """
def objective(trial):
    (HERE / f"begun-{trial.n}").touch()
    while not trial._session.stopping:  # looked at from outside: the objective itself is never told
        time.sleep(0.01)
    return 0.25
"""
DRAINS = UNAWARE.replace("stopping", "draining")
MAIN = """
if __name__ == "__main__":
    study().run(objective, 5, workers=int(sys.argv[1]), grace_s=float(sys.argv[2]), progress=False)
    print("went on")
"""
LOOP = """
for trial in study().trials(5):
    with trial:
        objective(trial)
"""
BOTH = pytest.mark.parametrize("workers", ["1", "2"])


def begun(folder: Path) -> bool:
    return (folder / "begun").exists()


@BOTH
@pytest.mark.parametrize(
    ("objective", "trace"),
    [(IN_C, None), (LOOKS, "looked"), (IGNORES, "unwound"), (SWALLOWS, "swallowed")],
    ids=["in C", "looks", "ignores", "swallows"],
)
def test_sigterm_is_an_interruption_and_143(tmp_path: Path, objective: str, trace: str | None, workers: str) -> None:
    grace_s = "30" if trace == "looked" else "0.2"  # who looks needs none of it
    process = start(program(tmp_path, objective + MAIN), workers, grace_s)
    eventually(lambda: begun(tmp_path), process)
    process.send_signal(signal.SIGTERM)
    code, out, err = end(process)
    assert (code, out) == (143, ""), err
    study = open_study(tmp_path)
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.reason) == ("interrupted", "SIGTERM")
    assert {result.state for result in study.results()} == {"interrupted"}
    assert trace is None or (tmp_path / trace).exists()
    assert "Traceback" not in err


@BOTH
@pytest.mark.parametrize("objective", [IN_C, LOOKS, IGNORES], ids=["in C", "looks", "ignores"])
def test_a_terminal_that_goes_away_is_an_interruption_and_129(tmp_path: Path, objective: str, workers: str) -> None:
    process = start(program(tmp_path, objective + MAIN), workers, "30" if objective is LOOKS else "0.2")
    eventually(lambda: begun(tmp_path), process)
    process.send_signal(signal.SIGHUP)
    code, out, err = end(process)
    assert (code, out) == (129, ""), err
    found = record(open_study(tmp_path), 0)
    assert found is not None
    assert found.state == "interrupted"
    assert found.reason == ("SIGHUP" if workers == "1" else "SIGTERM")
    assert {result.state for result in open_study(tmp_path).results()} == {"interrupted"}
    assert "Traceback" not in err


HEARS = """
signal.signal(signal.SIGHUP, {handler})

def objective(trial):
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return 1.0

if __name__ == "__main__":
    study().run(objective, 1, progress=False)
"""


@pytest.mark.parametrize(
    "handler", ["signal.SIG_IGN", '(lambda *_: (HERE / "heard").touch())'], ids=["nohup", "daemon"]
)
def test_a_hang_up_that_is_somebody_elses_is_left_to_them(tmp_path: Path, handler: str) -> None:
    process = start(program(tmp_path, HEARS.format(handler=handler)))
    eventually(lambda: begun(tmp_path), process)
    process.send_signal(signal.SIGHUP)
    if "heard" in handler:
        eventually(lambda: (tmp_path / "heard").exists(), process)
    (tmp_path / "go").touch()
    code, _, err = end(process)
    assert code == 0, err
    assert state(open_study(tmp_path), 0) == "done"


def test_no_grace_at_all(tmp_path: Path) -> None:
    process = start(program(tmp_path, IN_C + MAIN), "1", "0")
    eventually(lambda: begun(tmp_path), process)
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 143
    assert state(open_study(tmp_path), 0) == "interrupted"


def test_a_mount_that_hangs_does_not_outlast_the_grace(tmp_path: Path) -> None:
    """Nothing can be recorded then, and the process ends all the same."""
    hanging = """
from dibs.backend import FolderBackend
from dibs.study import _session

def hang(*_):
    (HERE / "begun").touch()
    time.sleep(1000)

def objective(trial):
    FolderBackend.touch = hang  # what beats do; it holds the attempt's lock
    _session._WRITE_S = 0.2
    while True:
        time.sleep(0.01)

if __name__ == "__main__":
    study(stale_s=1.0).run(objective, 5, grace_s=0.2, progress=False)
"""
    process = start(program(tmp_path, hanging))
    eventually(lambda: begun(tmp_path), process)
    process.send_signal(signal.SIGTERM)
    code, _, err = end(process)
    assert code == 143, err
    assert state(open_study(tmp_path), 0) == "running"


@BOTH
def test_a_result_that_comes_within_the_grace_counts(tmp_path: Path, workers: str) -> None:
    process = start(program(tmp_path, UNAWARE + MAIN), workers, "60")
    study = open_study(tmp_path)
    eventually(lambda: len(list(tmp_path.glob("begun-*"))) == int(workers), process)  # a claim is seen before that
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 143
    assert [result.state for result in study.results()] == ["done"] * int(workers)


def test_the_loop_form_ends_with_143_too(tmp_path: Path) -> None:
    process = start(program(tmp_path, LOOKS + LOOP))
    eventually(lambda: begun(tmp_path), process)
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 143
    assert state(open_study(tmp_path), 0) == "interrupted"


def test_beats_go_on_while_the_main_thread_is_in_c(tmp_path: Path) -> None:
    study = open_study(tmp_path, stale_s=1.0)
    process = start(program(tmp_path, IN_C + MAIN), "1", "0")
    eventually(lambda: begun(tmp_path), process)
    path = tmp_path / "store" / study.store.keys("s").attempt(0, 0)
    os.utime(path, (1.0, 1.0))
    eventually(lambda: path.stat().st_mtime > 1.0, process)
    process.kill()
    end(process)


@BOTH
def test_ctrl_c_once_finishes_what_runs(tmp_path: Path, workers: str) -> None:
    process = start(program(tmp_path, DRAINS + MAIN), workers, "30")
    study = open_study(tmp_path)
    eventually(lambda: len(list(tmp_path.glob("begun-*"))) == int(workers), process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the whole foreground group
    code, _, err = end(process)
    assert code == -signal.SIGINT, err  # KeyboardInterrupt: 130 for a shell
    assert err.count("finishing the running trial") == 1
    assert [result.state for result in study.results()] == ["done"] * int(workers)


@BOTH
@pytest.mark.parametrize("objective", [IGNORES, IN_C], ids=["python", "C"])
def test_ctrl_c_twice_interrupts(tmp_path: Path, workers: str, objective: str) -> None:
    process = start(program(tmp_path, objective + MAIN), workers, "0.2")
    study = open_study(tmp_path)
    eventually(lambda: begun(tmp_path), process)
    eventually(lambda: len(study.results("running")) == int(workers), process)
    os.killpg(process.pid, signal.SIGINT)
    eventually(lambda: not os.killpg(process.pid, signal.SIGINT) and process.poll() is not None)
    assert end(process)[0] in (-signal.SIGINT, 130)
    assert {(result.state, result.reason) for result in study.results()} == {("interrupted", "SIGINT")}


def test_an_interruption_during_a_fork_comes_right_after_it(tmp_path: Path) -> None:
    head = """
import os, signal, threading
armed = []
os.register_at_fork(before=lambda: armed and signal.pthread_kill(threading.main_thread().ident, armed.pop()))
"""
    body = """
def objective(trial):
    os.kill(os.getpid(), signal.SIGINT)
    armed.append(signal.SIGINT)
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(60)
    return 1.0

study().run(objective, 1, progress=False)
"""
    code, _, err = run(program(tmp_path, body, head=head + HEAD))
    assert code == -signal.SIGINT, err
    assert "Exception ignored" not in err
    assert [(result.state, result.reason) for result in open_study(tmp_path).results()] == [("interrupted", "SIGINT")]


def test_children_of_a_killed_parent_record_and_leave(tmp_path: Path) -> None:
    process = start(program(tmp_path, IN_C + MAIN), "2", "0.2")
    study = open_study(tmp_path)
    eventually(lambda: begun(tmp_path), process)
    eventually(lambda: len(study.results("running")) == 2, process)
    workers = {result.who.pid for result in study.results()}
    process.kill()
    eventually(lambda: not any(alive(pid) for pid in workers))
    end(process)
    assert {(r.state, r.reason) for r in study.results()} == {("interrupted", "the parent process ended")}


DIES = """
def objective(trial):
    if trial.attempt == 0 and trial.n == 1:
        {death}
    return trial.point["x"]
"""


@pytest.mark.parametrize(
    ("death", "cause"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
        ("os._exit(3)", "it exited with code 3"),
        ("os.kill(os.getpid(), signal.SIGTERM); trial.stopping and sys.exit(0)", "143"),
    ],
    ids=["kill -9", "segfault", "os._exit", "SIGTERM"],
)
def test_a_worker_that_dies_is_replaced_and_its_trial_is_finished(tmp_path: Path, death: str, cause: str) -> None:
    body = """
    if __name__ == "__main__":
        from dibs.study._events import WorkerDied
        died = []
        summary = study().run(
            objective, 6, workers=2, on_event=lambda e: died.append(e) if isinstance(e, WorkerDied) else None)
        print(len(died), died[0].cause, died[0].replaced, summary.why)
    """
    objective = DIES.format(death=death)
    code, out, err = run(program(tmp_path, objective + "\n".join(line[4:] for line in body.splitlines())))
    assert code == 0, err
    assert out.startswith("1 ")
    assert cause in out
    assert out.rstrip().endswith("True settled")
    study = open_study(tmp_path)
    results = study.results()
    assert [(r.n, r.attempt, r.state) for r in results] == [(n, int(n == 1), "done") for n in range(6)]
    first, second = record(study, 1, 0), record(study, 1, 1)
    assert first is not None
    assert second is not None
    assert second.point == first.point
    assert second.seed == first.seed
    assert first.state == ("interrupted" if cause == "143" else "running")


def test_one_killed_before_it_began_is_replaced(tmp_path: Path) -> None:
    body = """
if __name__ != "__main__":
    try:
        (HERE / "first").touch(exist_ok=False)
    except FileExistsError:
        while not (HERE / "go").exists():
            time.sleep(0.01)
    else:
        os.kill(os.getpid(), signal.SIGKILL)

def objective(trial):
    return 1.0

if __name__ == "__main__":
    print(study().run(objective, 3, workers=2, on_event=lambda event: (HERE / "go").touch() if hasattr(event, "cause") else None).why)
"""
    code, out, err = run(program(tmp_path, body))
    assert (code, out) == (0, "settled\n"), err


def test_every_worker_is_replaced_where_all_of_them_die(tmp_path: Path) -> None:
    body = """
def objective(trial):
    if trial.attempt == 0 and trial.n < 3:
        os._exit(1)
    return 1.0

if __name__ == "__main__":
    print(study().run(objective, 3, workers=2, progress=False).why)
"""
    code, out, err = run(program(tmp_path, body))
    assert (code, out) == (0, "settled\n"), err
    assert [(r.attempt, r.state) for r in open_study(tmp_path).results()] == [(1, "done")] * 3


def test_workers_that_always_die_end_the_run(tmp_path: Path) -> None:
    body = """
def objective(trial):
    os._exit(9)

if __name__ == "__main__":
    study().run(objective, 50, workers=2)
"""
    code, _, err = run(program(tmp_path, body))
    assert code == 1
    assert re.search(r"[56] worker processes died in a row", err.splitlines()[-1])
    assert "it exited with code 9" in err


def test_what_a_killed_worker_had_started_is_ended_too(tmp_path: Path) -> None:
    body = """
def objective(trial):
    if trial.n == 0 and trial.attempt == 0:
        child = subprocess.Popen(["sleep", "1000"])
        (HERE / "pid").write_text(str(child.pid))
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0

if __name__ == "__main__":
    study().run(objective, 3, workers=2, progress=False)
"""
    code, _, err = run(program(tmp_path, body))
    assert code == 0, err
    sleeper = int((tmp_path / "pid").read_text())
    eventually(lambda: not alive(sleeper))


def test_a_forked_process_that_outlives_its_worker_hides_nothing(tmp_path: Path) -> None:
    """It keeps every pipe of the dead worker open; the death is noticed all the same."""
    body = """
def objective(trial):
    if trial.n == 0 and trial.attempt == 0:
        if os.fork() == 0:
            os.setsid()
            (HERE / "pid").write_text(str(os.getpid()))
            time.sleep(1000)
        while not (HERE / "pid").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0

if __name__ == "__main__":
    study().run(objective, 3, workers=2, progress=False)
"""
    code, _, err = run(program(tmp_path, body))
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert code == 0, err
    assert [r.state for r in open_study(tmp_path).results()] == ["done"] * 3


def test_a_worker_that_lingers_after_its_last_word_is_ended(tmp_path: Path) -> None:
    body = """
def objective(trial):
    import threading
    threading.Thread(target=time.sleep, args=(1000,)).start()  # not a daemon: Python would wait for it
    return 1.0

if __name__ == "__main__":
    from dibs.study import _pool
    _pool._LINGER_S = 0.2
    print(study().run(objective, 4, workers=2, progress=False).why)
"""
    code, out, err = run(program(tmp_path, body))
    assert (code, out) == (0, "settled\n"), err


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    process = start(program(tmp_path, SWALLOWS + MAIN), "2", "0.2")
    eventually(lambda: begun(tmp_path), process)
    below = eventually(lambda: children_of(process.pid), process)
    workers = {result.who.pid for result in open_study(tmp_path).results()}
    assert all(os.getpgid(pid) == pid for pid in workers)  # the terminal's Ctrl-C is the parent's alone
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 143
    eventually(lambda: not any(alive(pid) for pid in below))
