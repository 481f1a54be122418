"""A log on a full disk: what is printed is lost and said to be, and no trial fails for it."""

from __future__ import annotations

import io
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.study.processes import open_study, program, record, run

from dibs import Study, Trial


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return open_study(tmp_path)


def fill() -> None:
    """From now on the descriptors of the log answer as a full disk does."""
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    os.dup2(full, 2)
    os.close(full)


def log_of(study: Study, n: int) -> str:
    root = study.store.backend.root
    assert root is not None
    return (root / f"study/s/work/{n:08d}-0/log.txt").read_text()


def captured(study: Study, objective: Any, trials: int = 1) -> None:
    study.run(objective, trials, capture=True, progress=False, max_failures=None)


def test_prints_are_lost_and_counted(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: Trial) -> float:
        print("kept")
        fill()
        print("lost", flush=True)
        print("too", file=sys.stderr)
        return 1.0

    with caplog.at_level(logging.WARNING, "dibs"):
        captured(study, objective)
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.score) == ("done", 1.0)
    assert "9 bytes of what was printed are not in the log" in caplog.text
    assert "No space left on device" in caplog.text
    assert log_of(study, 0) == "kept\n"


def test_what_it_raised_stays_that(study: Study) -> None:
    def objective(trial: Trial) -> float:
        fill()
        if trial.n:
            sys.stderr.close()
        raise ValueError("its own")

    captured(study, objective, 2)
    for n in range(2):
        found = record(study, n)
        assert found is not None
        assert (found.state, found.reason) == ("failed", "ValueError: its own")


def test_what_follows_is_as_if_nothing_had_been(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: Trial) -> float:
        if trial.n == 0:
            fill()
            print("lost")
            sys.stdout.close()
        print("kept") if trial.n else None
        return 1.0

    with caplog.at_level(logging.WARNING, "dibs"):
        captured(study, objective, 2)
    assert log_of(study, 1) == "kept\n"
    assert caplog.text.count("not in the log") == 1


def test_a_worker_process_does_the_same(tmp_path: Path) -> None:
    body = """
def objective(trial):
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    os.dup2(full, 2)
    print("lost")
    print("too", file=sys.stderr)
    if trial.n == 1:
        raise ValueError("its own")
    return 1.0

if __name__ == "__main__":
    study().run(objective, 2, workers=2, max_failures=None)
"""
    code, _, err = run(program(tmp_path, body))
    assert code == 0, err
    assert "9 bytes of what was printed are not in the log" in err
    first, second = (record(open_study(tmp_path), n) for n in range(2))
    assert first is not None
    assert second is not None
    assert (first.state, second.state, second.reason) == ("done", "failed", "ValueError: its own")


def detaches(trial: Trial) -> None:
    sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8")


def takes_the_buffer(trial: Trial) -> None:
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")


def sets_it_otherwise(trial: Trial) -> None:
    sys.stdout.reconfigure(encoding="ascii", errors="strict", line_buffering=False)  # type: ignore[union-attr]


def closes_the_stream(trial: Trial) -> None:
    sys.stdout.close()
    sys.stderr.detach()


def closes_the_descriptor(trial: Trial) -> None:
    os.close(1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        print("nobody's")


@pytest.mark.parametrize(
    "deed", [detaches, takes_the_buffer, sets_it_otherwise, closes_the_stream, closes_the_descriptor]
)
def test_what_one_trial_does_to_its_streams_is_not_the_next_ones(study: Study, deed: Any) -> None:
    def objective(trial: Trial) -> float:
        print(f"{trial.n} ü")
        print(trial.n, sys.stdout.mode, sys.stdout.name, file=sys.stderr)
        deed(trial)
        return 1.0

    out, err = sys.stdout, sys.stderr
    captured(study, objective, 2)
    assert [log_of(study, n) for n in range(2)] == [f"{n} ü\n{n} w <stdout>\n" for n in range(2)]
    assert (sys.stdout, sys.stderr) == (out, err)


def test_streams_in_a_worker_are_whole_between_its_trials(tmp_path: Path) -> None:
    body = """
from dibs.search import Sampler
kept = sys.stdout  # from before the worker made it its own

def objective(trial):
    print("one")
    print("twö", file=kept)
    print("three")
    sys.stdout.close()
    return 1.0

class Loud(Sampler):
    name = "loud"

    def ask(self, space, trial, history):
        print("asked")
        return {"x": 0.5, "y": 0.5}

if __name__ == "__main__":
    study(sampler=Loud()).run(objective, 3, limits=dibs.study.Limits(time_s=60))
"""
    code, out, err = run(program(tmp_path, body), PYTHONIOENCODING="ascii", PYTHONUNBUFFERED="")
    assert code == 0, err
    assert [log_of(open_study(tmp_path, sampler=None), n) for n in range(3)] == ["one\ntwö\nthree\n"] * 3
    assert out == ""


def alone(tmp_path: Path, body: str) -> tuple[str, str]:
    """What a program with captures of its own wrote, with two logs beside it."""
    head = "import os, resource, subprocess, sys, threading\nfrom dibs.study._capture import captured\n"
    head += "from dibs.errors import StoreError\nfrom pathlib import Path\nHERE = Path(__file__).parent\n"
    code, out, err = run(program(tmp_path, body, head=head), PYTHONUNBUFFERED="")
    assert code == 0, err
    return out, err


def test_who_kept_a_stream_from_before_writes_in_order(tmp_path: Path) -> None:
    body = """
kept = sys.stdout
with captured(HERE / "log"):
    print("one")
    print("two", file=kept)
    print("three")
assert not kept.line_buffering
print("end")
"""
    assert alone(tmp_path, body)[0] == "end\n"
    assert (tmp_path / "log").read_text() == "one\ntwo\nthree\n"


def test_what_a_full_log_did_not_take_turns_up_nowhere_else(tmp_path: Path) -> None:
    body = """
kept = sys.stdout
with captured(HERE / "log"):
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    kept.write("lost")
print("end")
"""
    assert alone(tmp_path, body)[0] == "end\n"


def test_captures_of_several_threads_end_in_any_order(tmp_path: Path) -> None:
    body = """
began, both, ended = (threading.Event() for _ in range(3))

def first():
    with captured(HERE / "first"):
        began.set()
        both.wait()
        print("first")
    ended.set()

def second():
    began.wait()
    with captured(HERE / "second"):
        both.set()
        ended.wait()
        print("second")

threads = [threading.Thread(target=each) for each in (first, second)]
[each.start() for each in threads]
[each.join() for each in threads]
print("end", flush=True)
os.write(1, b"by the descriptor\\n")
"""
    assert alone(tmp_path, body)[0] == "end\nby the descriptor\n"
    assert (tmp_path / "second").read_text() == "first\nsecond\n", "the latest has what both print"


def test_one_within_another_counts_what_it_lost_by_itself(tmp_path: Path) -> None:
    body = """
with captured(HERE / "outer"):
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    print("lost")
    with captured(HERE / "inner"):
        print("inner")
"""
    assert alone(tmp_path, body)[1] == (
        f"5 bytes of what was printed are not in the log {tmp_path / 'outer'}: No space left on device\n"
    )
    assert (tmp_path / "inner").read_text() == "inner\n"


@pytest.mark.parametrize("fd", [0, 1, 2])
def test_a_descriptor_that_was_closed_is_closed_again(tmp_path: Path, fd: int) -> None:
    body = f"""
os.close({fd})
with captured(HERE / "log"):
    subprocess.run("echo out; echo err >&2", shell=True, check=True)
try:
    os.fstat({fd})
except OSError:
    (HERE / "told").touch()
"""
    alone(tmp_path, body)
    assert (tmp_path / "told").exists()
    assert (tmp_path / "log").read_text() == "out\nerr\n"


def test_where_no_descriptor_is_left_the_programs_own_stay(tmp_path: Path) -> None:
    body = """
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
for left in range(1, 4):
    os.close(taken.pop())
    try:
        with captured(HERE / "log"):
            pass
    except StoreError as wrong:
        print("Too many open files" in str(wrong))
    print(left)
"""
    out, err = alone(tmp_path, body)
    assert (out, err) == ("True\n1\nTrue\n2\n3\n", "")


def test_a_pipe_that_does_not_block_is_waited_for(tmp_path: Path) -> None:
    body = """
from dibs.study import _stand_in
ours, theirs = os.pipe()
os.set_blocking(theirs, False)
os.dup2(theirs, 1)
os.close(theirs)
got = []

def read():
    while data := os.read(ours, 1 << 16):
        got.append(data)

reader = threading.Thread(target=read)
_stand_in.tolerant()
reader.start()
print("x" * 999_999)
os.close(1)
reader.join()
assert sum(map(len, got)) == 1_000_000
"""
    assert alone(tmp_path, body) == ("", "")
