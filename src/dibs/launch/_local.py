"""Workers on this machine: processes in sessions of their own, which outlive the command that started them."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dibs._clock import Clock
from dibs.errors import UsageError

from ._plan import Call, Ended, Here, Plan, Started
from ._profile import Profile
from ._request import Request
from ._script import argv_of, env_for, wants_of

__all__ = ["lacks", "plan", "start", "wait"]

_WELL = (0, 6)  # done, or left to others
_TAIL_BYTES, _SHOWN = 4096, 300
_left: list[subprocess.Popen[bytes]] = []  # they run on: nobody here waits for them


def lacks(request: Request, profile: Profile, acting: bool) -> list[str]:
    """A folder to start in, and variables that go by their names."""
    if not acting:
        return []
    missing = [] if Path(request.place).is_dir() else [f"there is no folder {request.place} here"]
    return missing + [f"{name} is not set here" for name in wants_of(request, profile) if name not in os.environ]


def plan(request: Request, profile: Profile, store: str, here: Here) -> Plan:
    """One call for each worker. ``dibs`` is found beside this interpreter, if it is not on the path."""
    calls = tuple(
        Call(
            argv_of(request, profile),
            {"DIBS_STORE": store, "DIBS_ME": f"{here.host}-{at}", **env_for(request, profile)},
            request.place,
            str(request.kept / f"local-{at}.log"),
        )
        for at in range(request.workers)
    )
    return Plan(
        "local", profile.name, request.name, store, request.workers, calls, look=(f"tail -f {_logs(request)}",),
        options={"bin": here.bin},
    )  # fmt: skip


def start(plan: Plan, wait: bool) -> Started:
    """Raises UsageError if there is no such program or a log cannot be written; then none is left running."""
    started: list[subprocess.Popen[bytes]] = []
    logged = [_size(call) for call in plan.calls]
    try:
        for call in plan.calls:
            started.append(_process(call, plan.options["bin"]))
    except OSError as wrong:
        for process in started:
            _signal(process, signal.SIGTERM)
        raise UsageError(f"no worker could be started: {wrong.strerror or wrong}: {wrong.filename}") from None
    except UsageError:
        assert not started, "what is checked of one call holds for all"
        raise
    if not wait:
        _left.extend(started)
    pids = tuple(str(process.pid) for process in started)
    return Started(plan, pids, f"kill {' '.join(pids)}", (started, logged))


def wait(started: Started, clock: Clock, say: Callable[[str], None]) -> list[Ended]:
    """Ctrl-C and SIGTERM are passed on to the workers, who know what to do; the wait goes on until they have ended."""
    processes: list[subprocess.Popen[bytes]]
    processes, logged = started.handle
    with _passing_on(processes):
        codes = [process.wait() for process in processes]
    return [
        Ended(str(at), code if code >= 0 else 128 - code, "" if code in _WELL else _last_words(call, before))
        for at, (code, call, before) in enumerate(zip(codes, started.plan.calls, logged, strict=True))
    ]


def _size(call: Call) -> int:
    assert call.log is not None
    with suppress(OSError):
        return Path(call.log).stat().st_size
    return 0


def _last_words(call: Call, before: int) -> str:
    """The last line this worker added to its log: what is wrong with a command mostly stands there; empty if there is none."""
    assert call.log is not None
    try:
        with Path(call.log).open("rb") as log:
            log.seek(max(before, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:_SHOWN]


def _process(call: Call, fallback: str) -> subprocess.Popen[bytes]:
    environ = {**os.environ, **call.environ}
    environ["PATH"] = f"{environ.get('PATH', os.defpath)}{os.pathsep}{fallback}"
    program = call.argv[0]
    assert call.cwd is not None
    found = shutil.which(str(Path(call.cwd, program)) if "/" in program else program, path=environ["PATH"])
    if found is None:
        raise UsageError(f"there is no program {program!r} to run: is it installed, and executable?")
    assert call.log is not None
    Path(call.log).parent.mkdir(parents=True, exist_ok=True)
    with Path(call.log).open("ab") as log:
        return subprocess.Popen(
            [found, *call.argv[1:]], cwd=call.cwd, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip


@atexit.register
def _let_go() -> None:
    """Who runs on is meant to: on its way out Python would warn of each that nobody waited for it."""
    for process in _left:
        if process.poll() is None:
            process.returncode = 0


def _logs(request: Request) -> str:
    return f"{shlex.quote(str(request.kept))}/local-*.log"


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, number)


@contextmanager
def _passing_on(processes: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Signals to this process reach the workers' groups instead; put back afterwards."""

    def pass_on(number: int, frame: Any) -> None:
        for process in processes:
            _signal(process, number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
