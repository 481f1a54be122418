"""The torture's workers as their parent sees them: hired, replaced, and judged by how they ended.

Each is a fresh process in a session of its own. Whoever ends with a code that nothing done to it explains has
crashed. Everything that is done to them goes into torment.jsonl before it happens.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dibs._clock import SystemClock

from ._raw_check import read_lines
from ._torture_orders import Orders

__all__ = ["CLOCK", "Crew", "Worker", "faketime"]

CLOCK = SystemClock()
_TAIL = 1500  # characters of a crashed worker's log


def faketime() -> str | None:
    """The library of PyPI's libfaketime, None where it is not installed (a distribution's hangs Python's waits)."""
    spec = importlib.util.find_spec("libfaketime")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for path in Path(folder).rglob("libfaketime.so.1"):
            return str(path)
    return None


@dataclass
class Worker:
    """One worker process (with ``pool``, the parent of two more)."""

    orders: Orders
    process: subprocess.Popen[bytes]
    began: float
    log: Path
    done_to: set[str] = field(default_factory=set)
    stopped: dict[int, float] = field(default_factory=dict)  # pid -> when it goes on
    deadline: float | None = None  # after SIGTERM

    @property
    def me(self) -> str:
        return self.orders.me

    @property
    def pid(self) -> int:
        return self.process.pid

    def pids(self) -> list[int]:
        """The process and its children (proc(5)): those of a pool are workers, too."""
        return [self.pid, *([] if self.orders.mode != "pool" else children_of(self.pid))]

    def tail(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-_TAIL:]


class Crew:
    """All workers of one torture, and the list of what was done to whom."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[Worker] = []
        self.hired = 0
        self.dead: set[int] = set()  # killed, though perhaps still somebody's zombie
        self.full: list[tuple[float, float]] = []  # when the disk was full, until when
        for name in ("journal", "out", "scratch"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._torment = (folder / "torment.jsonl").open("a", encoding="utf-8")

    def note(self, what: str, **facts: Any) -> None:
        """Add a line to the list of what was done or seen."""
        self._torment.write(json.dumps({"what": what, "at": round(CLOCK.monotonic(), 3), **facts}) + "\n")
        self._torment.flush()

    def hire(self, orders: Orders, *, library: str | None = None) -> Worker:
        """Start a worker. ``library``: let libfaketime, rather than our own clock, be wrong by ``skew_s``."""
        self.hired += 1
        orders = replace(orders, me=f"w{self.hired}")
        environ = dict(os.environ)
        if library is not None and orders.skew_s:
            environ |= {
                "LD_PRELOAD": library, "FAKETIME": f"{orders.skew_s:+.0f}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
            }  # fmt: skip
            orders = replace(orders, skew_s=0.0)
        log = self.folder / "out" / f"{orders.me}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "dibs.testing._torture_worker", orders.text()],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environ, start_new_session=True,
            )  # fmt: skip
        worker = Worker(orders, process, CLOCK.monotonic(), log)
        self.workers.append(worker)
        return worker

    def journal(self, worker: Worker, pid: int) -> list[dict[str, Any]]:
        """What one process of the worker has told."""
        return read_lines(str(self.folder / "journal" / f"{worker.me}-{pid}.jsonl"))

    def claim(self, worker: Worker, pid: int) -> dict[str, Any] | None:
        """The attempt it has in its hands as far as it has told, or None."""
        lines = self.journal(worker, pid)
        if not lines or lines[-1]["what"] in ("told", "ended", "began"):
            return None
        return next((line for line in reversed(lines) if line["what"] == "claimed"), None)

    # what is done to them

    def send(self, worker: Worker, pid: int, number: signal.Signals, what: str) -> None:
        """A signal, noted for the whole family: what hits a parent is felt by its children."""
        for each in {pid, *(worker.pids() if pid == worker.pid else [])}:
            self.note(what, me=worker.me, pid=each)
        worker.done_to.add(what)
        if number == signal.SIGKILL:
            self.dead.add(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def wake(self, *, all_of_them: bool = False) -> list[tuple[Worker, int]]:
        """Let stopped processes go on whose time has come; returns which."""
        woken = []
        for worker in self.workers:
            for pid, until in list(worker.stopped.items()):
                if all_of_them or CLOCK.monotonic() >= until:
                    del worker.stopped[pid]
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
                    woken.append((worker, pid))
        return woken

    # how they end

    def reap(self) -> Iterator[Worker]:
        """Those that have ended since; a code that nothing explains is noted as a crash."""
        for worker in list(self.workers):
            code = worker.process.poll()
            if code is None:
                if worker.deadline is not None and CLOCK.monotonic() > worker.deadline:
                    self.end(worker, "it did not leave after SIGTERM")
                continue
            self.workers.remove(worker)
            for pid in worker.stopped:  # a stopped child would never hear that its parent is gone
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            if not self._explained(worker, code):
                self.note("crashed", me=worker.me, why=f"mode {worker.orders.mode}, exit code {code}\n{worker.tail()}")
            yield worker

    def end(self, worker: Worker, why: str) -> None:
        """It does not end by itself: say so and kill it."""
        stack = [f"{pid}: {_state_of(pid)}" for pid in worker.pids()]
        self.note("hung", me=worker.me, why=f"mode {worker.orders.mode}: {why} ({', '.join(stack)})\n{worker.tail()}")
        self.kill(worker)

    def kill(self, worker: Worker) -> None:
        """End it and its children for certain."""
        for pid in reversed(worker.pids()):
            self.note("killed", me=worker.me, pid=pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        worker.done_to.add("killed")
        worker.process.wait()

    def close(self) -> None:
        """Nobody is left behind."""
        self.wake(all_of_them=True)
        for worker in self.workers:
            self.kill(worker)
        self._torment.close()

    def _explained(self, worker: Worker, code: int) -> bool:
        hit = worker.done_to
        if code == 0 or (code == -signal.SIGKILL and "killed" in hit):
            return True
        if code in (143, -signal.SIGTERM) and "termed" in hit:
            return True
        if code == 3:
            return any(until >= worker.began for _, until in self.full)
        if code != 1 or worker.orders.mode != "pool" or "killed" not in hit:
            return False
        return any(why in worker.tail() for why in ("died in a row", "before it could begin: killed by SIGKILL"))


def children_of(pid: int) -> list[int]:
    """The processes whose parent that one is."""
    try:
        tasks = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in tasks.split()]


def _state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"
