"""Real processes: workers, signals, kills, two runs of one study, a full disk, and what goes to which stream."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from tests.study.processes import heed

from dibs import Choice, Float, Space, Study

Spawn = Callable[..., Any]
PLACE = ("--store", "s", "--study", "spam")

# a trial says it has begun, and ends when the test lets it: no sleeps, pipes with names
GATED = """
import dibs
from pathlib import Path
goal = "min"
space = dibs.Space(x=dibs.Float(0, 1))
here = Path(__file__).parent
def objective(trial):
    print("begun", trial.n, flush=True)
    if trial.n == 0 and trial.attempt == 0:
        (here / "begun").open("w").close()
        (here / "go").open().close()
    trial.report(trial.point["x"])
"""


OWN_WORDS = """
def objective(trial):
    if trial.n == 3:
        raise ValueError("\\x1b[31m")
    print("own words", flush=True)
    return trial.point["x"]
"""


@pytest.fixture
def gated(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "go")
    path = tmp_path / "gated.py"
    path.write_text(GATED)
    return path


def begun(gated: Path) -> None:
    """Wait until the first trial runs."""
    (gated.parent / "begun").open().close()


def go(gated: Path) -> IO[str]:
    """Let the first trial end."""
    return (gated.parent / "go").open("w")


def test_two_workers_and_every_stream_in_its_place(spawn: Spawn, search: Path, tmp_path: Path) -> None:
    search.write_text(search.read_text() + OWN_WORDS)
    child = spawn("run", str(search), *PLACE, "--trials", "6", "--workers", "2", "--json")
    out, err = child.communicate()
    assert child.returncode == 1, err
    told = json.loads(out)
    assert (told["counts"]["done"], told["counts"]["failed"], told["ran"]) == (5, 1, 6)
    assert "own words" not in err
    logs = [path.read_text() for path in (tmp_path / "s").rglob("log.txt")]
    assert sorted(logs)[1:] == ["own words\n"] * 5
    assert "ValueError: \x1b[31m" in sorted(logs)[0]
    assert "5/6 done" in err
    assert "\x1b" not in err
    assert "Traceback" not in err


def test_one_worker_keeps_stdout_for_the_answer(spawn: Spawn, search: Path) -> None:
    search.write_text(search.read_text() + OWN_WORDS + "\nprint('while loading')\n")
    child = spawn("run", str(search), *PLACE, "--trials", "1", "--json", "--quiet")
    out, err = child.communicate()
    assert json.loads(out)["ran"] == 1
    assert err == "while loading\n"


def test_a_sampler_of_ones_own_reaches_every_worker_and_the_file_is_loaded_once_in_each(
    spawn: Spawn, search: Path
) -> None:
    file = search.with_name("own-sampler.py")
    file.write_text(
        search.read_text()
        + "print('loading')\nclass Mine(dibs.Random):\n    name = 'mine'\n    version = 1\nsampler = Mine()\n"
    )
    child = spawn("run", str(file), *PLACE, "--trials", "4", "--workers", "2", "--quiet", "--json")
    out, err = child.communicate()
    assert child.returncode == 0, err
    assert json.loads(out)["counts"]["done"] == 4
    assert (err.count("loading"), err.replace("loading", "").strip()) == (3, "")  # in whatever order their pieces come


def test_killed_and_taken_up_at_once_on_the_same_host(spawn: Spawn, gated: Path) -> None:
    if not Path("/proc/self/ns/pid").exists():
        pytest.skip("without /proc nobody is certainly dead")
    words = ("run", str(gated), *PLACE, "--trials", "2", "--quiet")
    child = spawn(*words)
    begun(gated)
    child.kill()
    child.wait()
    status = spawn("status", *PLACE)
    out, _ = status.communicate()
    assert "process gone" in out
    again = spawn(*words)
    out, err = again.communicate()
    assert again.returncode == 0, err
    assert [(row.n, row.attempt, row.state) for row in Study(gated.parent / "s", "spam").results()] == [
        (0, 1, "done"), (1, 0, "done"),
    ]  # fmt: skip
    assert "2 processes" in out


def test_a_second_run_leaves_what_the_first_holds_and_says_so(spawn: Spawn, gated: Path) -> None:
    first = spawn("run", str(gated), *PLACE, "--trials", "3", "--quiet", "--me", "north")
    begun(gated)
    second = spawn("run", str(gated), *PLACE, "--trials", "3", "--quiet", "--me", "south")
    out, err = second.communicate()
    assert second.returncode == 6, err
    assert "left unfinished: trial 0 is held by north since " in out.splitlines()[-1]
    assert "2 done, 1 running; 2 in this run" in out
    go(gated).close()
    out, err = first.communicate()
    assert first.returncode == 0, err
    assert "3 done; 1 in this run" in out
    assert "2 processes" in out


def test_a_second_run_that_waits_ends_when_all_are_settled(spawn: Spawn, gated: Path) -> None:
    first = spawn("run", str(gated), *PLACE, "--trials", "2", "--quiet")
    begun(gated)
    second = spawn("run", str(gated), *PLACE, "--trials", "2", "--wait", "--json")
    for line in second.stderr:
        if "waiting for 1 trial" in line:
            break
    go(gated).close()
    out, err = second.communicate()
    assert second.returncode == 0, err
    assert json.loads(out)["counts"]["done"] == 2
    assert first.wait() == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_is_143_and_the_trial_is_interrupted(spawn: Spawn, gated: Path, workers: str) -> None:
    child = spawn("run", str(gated), *PLACE, "--trials", "1", "--grace", "0.2s", "--workers", workers, "--quiet")
    begun(gated)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate()
    assert (child.returncode, out) == (143, ""), err
    assert [row.state for row in Study(gated.parent / "s", "spam").results()] == ["interrupted"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_terminal_that_goes_away_is_129_although_nobody_can_be_told(spawn: Spawn, gated: Path, workers: str) -> None:
    ours, theirs = os.openpty()

    def in_the_terminal() -> None:
        heed()
        os.setsid()
        os.close(os.open(os.ttyname(2), os.O_RDWR))  # the first one that a session opens is its terminal

    words = ("run", str(gated), *PLACE, "--trials", "3", "--workers", workers, "--grace", "1s")
    child = spawn(*words, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=in_the_terminal)
    os.close(theirs)
    begun(gated)
    os.close(ours)
    assert child.wait(60) == 129
    first, *others = Study(gated.parent / "s", "spam").results()
    assert (first.n, first.state) == (0, "interrupted")
    assert {result.state for result in others} <= {"interrupted", "done"}  # by the other worker, which nothing held up


def test_ctrl_c_once_finishes_the_trial_and_claims_no_more(spawn: Spawn, gated: Path) -> None:
    child = spawn("run", str(gated), *PLACE, "--trials", "3")
    begun(gated)
    child.send_signal(signal.SIGINT)
    for line in child.stderr:
        if "no new" in line:
            break
    go(gated).close()
    out, err = child.communicate()
    assert (child.returncode, out) == (130, ""), err
    assert "the same command goes on: dibs run " in err
    assert [row.state for row in Study(gated.parent / "s", "spam").results()] == ["done"]


def test_ctrl_c_twice_interrupts_and_the_same_command_goes_on(spawn: Spawn, gated: Path) -> None:
    words = ("run", str(gated), *PLACE, "--trials", "2")
    child = spawn(*words)
    begun(gated)
    child.send_signal(signal.SIGINT)
    for line in child.stderr:
        if "no new" in line:
            break
    child.send_signal(signal.SIGINT)
    _, err = child.communicate()
    assert child.returncode == 130, err
    study = Study(gated.parent / "s", "spam")
    assert [row.state for row in study.results()] == ["interrupted"]
    again = spawn(*words)
    _, err = again.communicate()
    assert again.returncode == 0, err
    assert [(row.attempt, row.state) for row in study.results()] == [(1, "done"), (0, "done")]


def test_a_full_disk_is_code_3_and_one_line_and_readers_go_on(spawn: Spawn, gated: Path) -> None:
    Study("s", "spam", Space(x=Float(0, 1)), goal="min")

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    for words in (("enqueue", "x=0.5", *PLACE), ("run", "gated.py", *PLACE, "--trials", "5")):
        child = spawn(*words, preexec_fn=full)
        out, err = child.communicate()
        assert (child.returncode, out) == (3, ""), err
        assert err.startswith("dibs: cannot write to the store")
        assert err.count("\n") == 1
    reader = spawn("status", *PLACE, preexec_fn=full)
    assert reader.wait() == 0, reader.stderr.read()


def mortal() -> None:
    """Root without the right to write anywhere: capabilities(7), prctl(2) PR_CAPBSET_DROP, effective from execve on."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def test_a_store_that_may_not_be_written_is_readable_and_says_no_to_the_rest(spawn: Spawn, search: Path) -> None:
    if os.geteuid() == 0 and not sys.platform.startswith("linux"):
        pytest.skip("root may write anywhere here")
    study = Study("s", "spam", Space(x=Float(0, 1), kind=Choice("a", (1, 2), True)), goal="min")
    for trial in study.trials(2):
        with trial:
            trial.done(1.0)
    folders = [path for path in [search.parent / "s", *(search.parent / "s").rglob("*")] if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        for words in (("status", *PLACE), ("show", "1", *PLACE)):
            reader = spawn(*words, preexec_fn=mortal)
            assert reader.wait() == 0, reader.stderr.read()
        for words in (("stop", *PLACE), ("run", str(search), *PLACE, "--trials", "3")):
            writer = spawn(*words, preexec_fn=mortal)
            out, err = writer.communicate()
            assert (writer.returncode, out) == (3, ""), err
            assert err.startswith("dibs: cannot write to the store")
            assert err.count("\n") == 1
    finally:
        for folder in folders:
            folder.chmod(0o755)
