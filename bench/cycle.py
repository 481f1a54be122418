"""CPU time of one full cycle (ask, take, report) against the raw system calls it needs, and against a peer.

Every contestant is a process of its own that does k trials when told to and answers with the CPU time they took;
one round asks each in turn, so that whatever else the machine does hits all of them. What is reported is the
median over the rounds, the ratio to the raw loop of the same round, and the mean (which has the rare work in it).
"""

# Plain strings and os calls in the raw loop: a Path costs as much as the system call behind it.
# ruff: noqa: PTH102, PTH105, PTH108

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIZES = (100, 1_000, 10_000)
WINDOW = {100: 4, 1_000: 10, 10_000: 20}  # trials per window: few where they would soon be most of the study
ROUNDS = 25
BLOCK = 256
DIMENSIONS = [f"x{i}" for i in range(5)]


# ---- contestants: each makes a function that does one trial


def raw(root: Path, size: int) -> Callable[[int], None]:
    """What the protocol asks of the file system and nothing else: the floor under any implementation in Python.

    open, write, close a temporary; link; unlink: the claim. open, write, fsync, close a temporary; rename; fsync the
    folder: the report, durable as dibs makes it. The bytes are those of a real record.
    """
    folder, temps = root / "raw", root / "raw-tmp"
    folder.mkdir()
    temps.mkdir()
    running, done = bytes(body(0, "running")), bytes(body(0, "done"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    head = f"{temps}/{os.getpid()}-"
    made: set[str] = set()

    def trial(n: int) -> None:
        block = f"{folder}/{n // BLOCK:06d}"
        if block not in made:
            os.mkdir(block)
            made.add(block)
        name, temp = f"{block}/{n:08d}-0.json", f"{head}{n}"
        fd = os.open(temp, flags, 0o666)
        os.write(fd, running)
        os.close(fd)
        os.link(temp, name)
        os.unlink(temp)
        fd = os.open(temp, flags, 0o666)
        os.write(fd, done)
        os.fsync(fd)
        os.close(fd)
        os.replace(temp, name)
        fd = os.open(block, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    return trial


def functions(root: Path, size: int) -> Callable[[int], None]:
    """The function API as the design writes it: read the history, ask, take, report."""
    from dibs import Float, Random, Space, Store
    from dibs.study import finished, in_flight, report, take

    store, sampler = Store(root, unchecked=True), Random(seed=0)
    space = Space({name: Float(0.0, 1.0) for name in DIMENSIONS})

    def trial(n: int) -> None:
        history = finished(store, space, study="functions") + in_flight(store, space, study="functions")
        point = sampler.ask(space, n, history)
        assert point is not None
        taken = take(store, point, study="functions", trial=n, me="bench", goal="min")
        assert taken is not None
        report(store, taken.point, [0.5], study="functions", trial=n, me="bench", state="done", goal="min")

    return trial


def loop(root: Path, size: int) -> Callable[[int], None]:
    """The comfortable form: ``for trial in study.trials(N): with trial: trial.done(score)``."""
    from dibs import Store, Study

    trials = Study(Store(root, unchecked=True), "loop", me="bench").trials(10**6)

    def trial(n: int) -> None:
        with next(trials) as one:
            assert one.n == n
            one.done(0.5)

    return trial


CONTESTANTS = {"raw": raw, "functions": functions, "loop": loop}


# ---- a study of a size, made cheaply


def body(n: int, state: str) -> bytes:
    """The bytes of trial n's record, as a worker would have written them."""
    from dibs import Float, Random, Space
    from dibs.record import encode
    from dibs.store import Here

    space = Space({name: Float(0.0, 1.0) for name in DIMENSIONS})
    fields: dict[str, Any] = {
        "v": 1, "kind": "trial", "study": "loop", "n": n, "attempt": 0, "of": 10**6, "state": "running", "goal": "min",
        "seed": 123456789, "point": Random(seed=0).ask(space, n), "wish": None, "saw": None, "contract": None,
        "files": {}, "started_at": "2026-01-01T00:00:00.000Z", "beat_s": 60.0, "nonce": f"{n:032x}",
        "who": Here().who("bench"),
    }  # fmt: skip
    if state == "done":
        fields |= {
            "state": "done", "score": 0.5, "step": None, "took_s": 0.001, "reason": None, "again": False, "blob": None,
        }  # fmt: skip
    return encode(fields)


def fill(root: Path, size: int) -> None:
    """A store whose studies "loop" and "functions" have ``size`` trials, done, in rolls as workers leave them."""
    from dibs import Float, Space, Store, Study
    from dibs.study._view import view_of

    store = Store(root, unchecked=True)
    for name in ("loop", "functions"):
        Study(store, name, Space({name: Float(0.0, 1.0) for name in DIMENSIONS}), goal="min", sampler="random", seed=0)
        for n in range(size):
            path = root / store.keys(name).attempt(n, 0)
            if n % BLOCK == 0:
                path.parent.mkdir(parents=True)
            path.write_bytes(body(n, "done").replace(b'"study":"loop"', f'"study":"{name}"'.encode()))
        view = view_of(store, name)
        view.refresh()
        for _ in range(size // 64):
            view.publish("bench")


# ---- processes


@dataclass
class Contestant:
    """A process that does trials on demand and says what CPU time they took."""

    name: str
    process: subprocess.Popen[str]
    seconds: list[float] = field(default_factory=list)  # per trial, one per round

    def window(self, k: int) -> None:
        """Do k trials."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{k}\n")
        self.process.stdin.flush()
        self.seconds.append(float(self.process.stdout.readline()) / k)


@contextmanager
def contestant(name: str, command: list[str]) -> Iterator[Contestant]:
    """Start one and wait until it has opened its study and done a few trials unmeasured."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if line != "ready\n":
            raise RuntimeError(f"{name} did not start")
        yield Contestant(name, process)
    finally:
        process.kill()
        process.communicate()


def serve(trial: Callable[[int], None], n: int) -> None:
    """The process's side: a warm-up, then as many trials as each line of stdin says."""
    for _ in range(3):
        trial(n)
        n += 1
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.process_time()
        for _ in range(int(line)):
            trial(n)
            n += 1
        print(time.process_time() - began, flush=True)


# ---- the measurement


@dataclass(frozen=True)
class Row:
    """One contestant at one size in one place; milliseconds of CPU per trial."""

    place: str
    size: int
    name: str
    median_ms: float
    mean_ms: float
    ratio: float  # median over the rounds of what it took by what the raw loop took


def measure(place: str, folder: Path, peer: Peer | None, sizes: tuple[int, ...], rounds: int) -> list[Row]:
    """All contestants in one place, at every size."""
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=folder) as work, ExitStack() as running:
            root = Path(work) / "store"
            fill(root, size)
            start = [sys.executable, str(HERE / "cycle.py"), "--serve"]
            commands = {name: [*start, name, str(root), str(size)] for name in CONTESTANTS}
            if peer is not None:
                commands["optuna"] = peer.command(Path(work) / "journal.log", size)
            contestants = [running.enter_context(contestant(name, command)) for name, command in commands.items()]
            for turn in range(rounds):
                first = turn % len(contestants)  # nobody always follows the one that has just filled the disk's queue
                for one in contestants[first:] + contestants[:first]:
                    one.window(WINDOW.get(size, 10))
            floor = contestants[0].seconds
            for one in contestants:
                ratio = statistics.median(a / b for a, b in zip(one.seconds, floor, strict=True))
                median, mean = statistics.median(one.seconds), statistics.fmean(one.seconds)
                rows.append(Row(place, size, one.name, median * 1e3, mean * 1e3, ratio))
                print(f"{place:12} {size:6} {one.name:10} {median * 1e3:8.3f} ms  x{ratio:.1f}", file=sys.stderr)
    return rows


class Peer:
    """Optuna in a virtual environment of its own, with journals of each size made once."""

    def __init__(self, work: Path) -> None:
        self.python = HERE / ".venv" / "bin" / "python"
        if not self.python.exists():
            print("installing the peer into bench/.venv, once", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", HERE / ".venv"], check=True)
            subprocess.run([self.python, "-m", "pip", "install", "-q", "optuna>=5,<6"], check=True)
        self.work = work

    def _run(self, *arguments: Any) -> str:
        command = [str(self.python), str(HERE / "peer_optuna.py"), *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    @property
    def version(self) -> str:
        """What is measured."""
        return self._run("version").strip()

    def command(self, journal: Path, size: int) -> list[str]:
        """The command that serves a study of that size in a journal of its own."""
        kept = self.work / f"{size}.log"
        if not kept.exists():
            self._run("fill", kept, size)
        shutil.copy(kept, journal)
        return [str(self.python), str(HERE / "peer_optuna.py"), "serve", str(journal), str(size)]


def places(disk: Path) -> dict[str, Path]:
    """Where to measure: memory if there is any, and the disk under ``disk``, by the type of its file system."""
    from dibs.backend import mount_type

    memory = Path("/dev/shm")
    found = {"tmpfs": memory} if memory.is_dir() and mount_type(memory) == "tmpfs" else {}
    return found | {f"disk ({mount_type(disk)})": disk}


def main() -> None:
    """Serve one contestant, or print the rows of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", nargs=3, metavar=("NAME", "STORE", "TRIALS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.serve:
        parser.error("run it as: python -m bench")
    name, root, size = given.serve
    serve(CONTESTANTS[name](Path(root), int(size)), int(size))


if __name__ == "__main__":
    main()
