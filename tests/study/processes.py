"""Real processes for the tests of runs and signals: write a program, start it, wait for what the store says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dibs import Float, Space, Study
from dibs.record import TrialRecord, decode_trial

T = TypeVar("T")
SPACE = Space(x=Float(0.0, 1.0), y=Float(0.0, 1.0))
LIMIT_S = 60.0

HEAD = """
import os, signal, subprocess, sys, time
from pathlib import Path
import dibs
from dibs import Float, Space
HERE = Path(__file__).parent
SPACE = Space(x=Float(0.0, 1.0), y=Float(0.0, 1.0))

def study(**kwargs):
    return dibs.Study(HERE / "store", "s", SPACE, goal="min", **{"seed": 7, "sampler": "sobol", **kwargs})
"""


def open_study(folder: Path, **kwargs: Any) -> Study:
    """The study that the programs in this folder work on."""
    return Study(folder / "store", "s", SPACE, goal="min", **{"seed": 7, "sampler": "sobol", **kwargs})


def program(folder: Path, body: str, name: str = "program.py", *, head: str = HEAD) -> Path:
    """A script in the folder, with the imports and the study that all of them need."""
    path = folder / name
    path.write_text(head + textwrap.dedent(body))
    return path


def start(path: Path, *arguments: str, **environ: str) -> subprocess.Popen[bytes]:
    """The script in a process group of its own; its output goes to files, which nobody who inherits them holds open."""
    with path.with_suffix(".out").open("wb") as out, path.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, str(path), *arguments],
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environ},
            start_new_session=True,
            preexec_fn=heed,
        )


def heed() -> None:
    """Signals count even if these tests were started in the background or under nohup, where they are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def end(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) once it has ended; killed if it does not."""
    late = False
    try:
        process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        late = True
        process.kill()
        process.wait()
    assert isinstance(process.args, list)
    path = Path(process.args[1])
    out, err = (path.with_suffix(suffix).read_text(errors="replace") for suffix in (".out", ".err"))
    assert not late, f"it did not end by itself\n{out}\n{err}"
    return process.returncode, out, err


def run(path: Path, *arguments: str, **environ: str) -> tuple[int, str, str]:
    """Start and wait."""
    return end(start(path, *arguments, **environ))


def eventually(what: Callable[[], T], process: subprocess.Popen[bytes] | None = None, limit_s: float = LIMIT_S) -> T:
    """The first true answer; an AssertionError when the time is over or the process has ended without one."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        answer = what()
        if answer:
            return answer
        if process is not None and process.poll() is not None:
            answer = what()
            if answer:
                return answer
            raise AssertionError(f"it ended with {process.returncode} before that\n{end(process)}")
        time.sleep(0.01)
    if process is not None:
        process.kill()
        raise AssertionError(f"it did not come to that\n{end(process)}")
    raise AssertionError("it did not come to that")


def record(study: Study, n: int, attempt: int = 0) -> TrialRecord | None:
    """The record of an attempt as it stands in the store."""
    key = study.store.keys(study.name).attempt(n, attempt)
    there = study.store.backend.read(key)
    return decode_trial(there.data, key) if there is not None else None


def state(study: Study, n: int, attempt: int = 0) -> str | None:
    """The state of an attempt as it stands in the store."""
    found = record(study, n, attempt)
    return found.state if found is not None else None


def children_of(pid: int) -> list[int]:
    """The processes whose parent that one is (proc(5))."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if int(text[text.rindex(")") + 2 :].split()[1]) == pid:
            found.append(int(path.parent.name))
    return found


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text[text.rindex(")") + 2] not in "ZX"
