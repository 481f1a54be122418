"""Files loaded in processes of their own, so that a hostile one costs an error and neither the caller nor the machine."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dibs._clock import Clock

from ._kinds import BEGUN

__all__ = ["Loaded", "load_all"]

_COMMAND = (sys.executable, "-P", "-c", "from dibs.sweep._loadchild import main; main()")
_LEAST_MEMORY, _TIMES_SIZE = 2 << 30, 8
_MOST_ANSWER = 1 << 20
_START_S = 180.0  # until the library that loads it is there
_FEW, _SMALL = 16, 64 << 20


@dataclass(frozen=True)
class Loaded:
    """``state``: loaded, not finite, does not load, not loaded; ``what``: what it holds, or why."""

    state: str
    what: str


def load_all(
    files: Sequence[tuple[Path, str]],
    clock: Clock,
    *,
    jobs: int = 2,
    time_s: float = 300.0,
    memory: int | None = None,
    step: Callable[[int, int], None] | None = None,
) -> list[Loaded]:
    """Load each (path, kind or ``module:function``), in order of the answers. ``time_s``: of each; ``memory``: bytes each may
    take, None: 2 GiB and eight times its size."""
    found = []
    small = len(files) < _FEW and sum(path.stat().st_size for path, _ in files if path.exists()) < _SMALL
    jobs = 1 if small else max(1, jobs)  # a second process costs a start that loads nothing
    with _children(jobs, clock) as free, ThreadPoolExecutor(jobs, thread_name_prefix="dibs-load") as pool:

        def one(file: tuple[Path, str]) -> Loaded:
            child = free.get()
            try:
                return child.ask(*file, time_s, memory)
            finally:
                free.put(child)

        for loaded in pool.map(one, files):
            found.append(loaded)
            if step is not None:
                step(len(found), len(files))
    return found


@contextlib.contextmanager
def _children(jobs: int, clock: Clock) -> Iterator[queue.SimpleQueue[_Child]]:
    children = [_Child(clock) for _ in range(jobs)]
    free: queue.SimpleQueue[_Child] = queue.SimpleQueue()
    for child in children:
        free.put(child)
    try:
        yield free
    finally:
        for child in children:
            child.end()


class _Child:
    """A process that loads, started when it is asked first, and anew after each end."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.process: subprocess.Popen[bytes] | None = None
        self.rest = b""  # what it has said beyond the line that was asked for

    def ask(self, path: Path, how: str, time_s: float, memory: int | None) -> Loaded:
        """Have the file loaded; whatever becomes of the process, an answer."""
        size = path.stat().st_size if path.exists() else 0
        request = {
            "path": str(path), "how": how, "memory": memory or _LEAST_MEMORY + _TIMES_SIZE * size, "within": os.getcwd(),  # noqa: PTH109
        }  # fmt: skip
        process = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = self._line(process, self.clock.monotonic() + _START_S)
            if line is None:
                self.end()
                return Loaded("does not load", f"what loads it was not there after {_START_S:g} s")
            if BEGUN.encode() in line:
                line = self._line(process, self.clock.monotonic() + time_s)
        except BrokenPipeError:
            line = b""
        if line is None:
            self.end()
            return Loaded("does not load", f"it takes longer than {time_s:g} s: --timeout gives it more")
        try:
            told = json.loads(line)
            return Loaded(str(told["state"]), str(told["what"]))
        except (ValueError, KeyError, TypeError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)  # it has closed its end: what ended it is known in a moment
            code = self.end()
            how_ended = f"signal {-code}" if code < 0 else f"exit status {code}"
            return Loaded("does not load", f"loading it ended the process that did ({how_ended})")

    def end(self) -> int:
        """Kill it and whatever it started; returns how it ended."""
        process, self.process, self.rest = self.process, None, b""
        if process is None:
            return 0
        code = process.poll()
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        ended = process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        return ended if code is None else code

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self.end()
            self.process = subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self.process

    def _line(self, process: subprocess.Popen[bytes], deadline: float) -> bytes | None:
        """One line of its answers; b"" if it ended, None if the time is over."""
        assert process.stdout is not None
        fd = process.stdout.fileno()
        while b"\n" not in self.rest:
            left_s = deadline - self.clock.monotonic()
            if left_s <= 0 or not select.select([fd], [], [], left_s)[0]:
                return None
            chunk = os.read(fd, 1 << 16)
            self.rest += chunk
            if not chunk or len(self.rest) > _MOST_ANSWER:
                return b""
        line, _, self.rest = self.rest.partition(b"\n")
        return line
