"""Run one program to its end: its log, its words while it runs, its limits, and how it ended.

Nothing of it is left when ``run`` returns, however that comes about: a warden stands between this process and the program,
and dies with neither of them alone. Whoever runs it is asked at every step and every fifth of a second whether to stop.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import select
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dibs._clock import Clock, SystemClock
from dibs.errors import StoreError, UsageError

from ._causes import Cause, Evidence, classify, detail_of
from ._evidence import kills, room, scheduler_of, tail_of
from ._isolation import Isolation
from ._limits import UNLIMITED, Limits
from ._output import Output
from ._told import Told
from ._usage import marked, resident

if TYPE_CHECKING:
    from subprocess import Popen

__all__ = ["Ending", "Job", "Watcher", "run"]

log = logging.getLogger("dibs")
_TICK_S = 0.2
_MEMORY_EVERY_S = 1.0
_LINGER_S = 1.0  # what the program leaves behind may end by itself, such as the reader of its last pipe
_LOST_S = 10.0  # a killed process that does not go hangs in the kernel
_CHUNK = 64 << 10
_MARK = "DIBS_CELL"
_LOOK_S = 0.01  # before looking again who is left


@dataclass(frozen=True)
class Job:
    """One program, ready to run. ``cwd``: where it starts; ``own``: the folders it may write beneath, with isolation.
    ``result``: the file that may hold its score. ``grace_s``: between asking it to end and killing it."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path
    own: Sequence[Path]
    log: Path
    result: Path
    limits: Limits = UNLIMITED
    grace_s: float = 30.0
    isolation: Isolation | None = None
    clock: Clock = field(default_factory=SystemClock)


class Watcher(Protocol):
    """Who runs a program. Both answer True for: it should end now."""

    def progress(self, told: Told) -> bool: ...
    def stopping(self) -> bool: ...


@dataclass(frozen=True)
class Ending:
    """How it ended. ``told``: the last statement of a score, None without one. ``asked``: it was asked to end, by who
    runs it, before it did."""

    cause: Cause
    detail: str
    told: Told | None
    asked: bool
    evidence: Evidence
    took_s: float


def run(job: Job, watcher: Watcher) -> Ending:
    """Run it. Raises UsageError where there are no processes of this kind, StoreError if the log cannot be written,
    and whatever interrupts it, once the program has been asked to end and is gone."""
    if sys.platform == "win32":
        raise UsageError("programs are run on Linux and macOS: here there are no process groups to end them by")
    return _Run(job, watcher).run()


class _Run:
    def __init__(self, job: Job, watcher: Watcher) -> None:
        self.job, self.watcher, self.clock = job, watcher, job.clock
        self.pid: int | None = None
        self.mark = os.urandom(8).hex()
        self.words: dict[str, Any] = {}  # the warden's
        self.said = b""
        self.asked = False
        self.limit, self.memory_limit = "", False
        self.kill_at: float | None = None
        self.give_up_at: float | None = None
        self.measure_at = 0.0
        self.lingering = False  # the program has ended, and what it left behind may do so
        self.over = False  # the warden has ended

    def run(self) -> Ending:
        began, before = self.clock.monotonic(), kills()
        self.out = Output(self.job.log, self.watcher.progress)
        try:
            if self._start():
                self._whole(began)
        finally:
            self.out.release()
        took_s = self.clock.monotonic() - began
        self.out.close()
        evidence = self._evidence(before)
        cause = classify(evidence)
        return Ending(cause, detail_of(cause, evidence), self.out.result(self.job.result), self.asked, evidence, took_s)

    def _whole(self, began: float) -> None:
        try:
            self._tend(began)
        except KeyboardInterrupt:
            self.asked = True
            self._ask_to_end()  # a second one does not come back here
            self._tend(began)
            raise
        finally:
            self._end()

    # the processes

    def _start(self) -> bool:
        """Start the warden; False if what it was to be given is more than any program can be."""
        import subprocess

        job, isolation = self.job, self.job.isolation
        events, theirs = os.pipe()
        words = {
            "fd": theirs, "writable": isolation and isolation.writable(job.own), "denied": isolation and isolation.denied,
        }  # fmt: skip
        warden = [sys.executable, "-I", "-S", str(Path(__file__).with_name("_warden.py")), json.dumps(words)]
        try:
            self.warden: Popen[bytes] = subprocess.Popen(
                [*map(os.fsencode, warden), *map(_bytes, job.argv)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(theirs,), cwd=job.cwd,
                env=_encoded({**job.environ, _MARK: self.mark}), start_new_session=True, bufsize=0,
            )  # fmt: skip
        except OSError as wrong:
            os.close(events)
            if wrong.errno == errno.E2BIG:  # its arguments and variables, which are the point's
                self.words["not_started"] = wrong.strerror
                return False
            raise StoreError(f"no process could be started in {job.cwd}: {wrong.strerror or wrong}") from wrong
        finally:
            os.close(theirs)
        assert self.warden.stdout is not None
        assert self.warden.stderr is not None
        self.events, self.output, self.errors = events, self.warden.stdout.fileno(), self.warden.stderr.fileno()
        for fd in (events, self.output, self.errors):
            os.set_blocking(fd, False)
        return True

    def _tend(self, began: float) -> None:
        """Until the warden has ended; then everything the program wrote has been read."""
        poll = select.poll()
        for fd in (self.events, self.output, self.errors):
            poll.register(fd, select.POLLIN)
        while not self.over:
            ready = [fd for fd, _ in poll.poll(1000 * _TICK_S)]
            for fd in sorted(ready, key=(self.output, self.errors, self.events).index):  # an error is its last word
                if not (self._hear() if fd == self.events else self._read(fd)):
                    poll.unregister(fd)
            now = self.clock.monotonic()
            if "ended" in self.words:
                if not self.lingering:
                    self.lingering, self.kill_at = True, now + _LINGER_S
            elif not self.asked and not self.limit:
                self._watch(now - began, now)
            if self.kill_at is not None and now >= self.kill_at:
                self._command(b"k")
                self.kill_at, self.give_up_at = float("inf"), self.give_up_at or now + _LOST_S
            if self.give_up_at is not None and now >= self.give_up_at:
                return  # `_end` leaves what does not go
        self._after_warden()
        late = self.clock.monotonic() + _LOST_S
        for fd in (self.output, self.errors):
            while self._read(fd) and self.clock.monotonic() < late:  # whoever escaped may write for ever
                continue

    def _watch(self, took_s: float, now: float) -> None:
        """Over a limit, or to be stopped?"""
        limits, used = self.job.limits, None
        if limits.memory_bytes is not None and now >= self.measure_at:
            self.measure_at = now + _MEMORY_EVERY_S
            used = resident(self.warden.pid, limits.memory_bytes, itself=False)
        self.limit = limits.exceeded(took_s, used) or ""
        if self.limit:
            self.memory_limit = limits.exceeded(0.0, used) is not None
            self._ask_to_end(0.0 if self.memory_limit else self.job.grace_s)  # memory would go on growing
        elif self.watcher.stopping():
            self.asked = True
            self._ask_to_end()

    def _ask_to_end(self, grace_s: float | None = None) -> None:
        self._command(b"t")
        self.kill_at = self.clock.monotonic() + (self.job.grace_s if grace_s is None else grace_s)

    def _command(self, word: bytes) -> None:
        assert self.warden.stdin is not None
        with suppress(OSError):
            self.warden.stdin.write(word)

    def _end(self) -> None:
        """Nothing is left, as far as the kernel lets go of it."""
        warden = self.warden
        if not self.over:
            self._command(b"k")
        assert warden.stdin is not None
        assert warden.stdout is not None
        assert warden.stderr is not None
        with suppress(OSError):
            warden.stdin.close()
        self._after_warden()
        warden.stdout.close()
        warden.stderr.close()
        os.close(self.events)

    def _after_warden(self) -> None:
        """If the warden itself was killed, and the program with it: what they had started is known by its mark."""
        from subprocess import TimeoutExpired

        try:
            if self.warden.wait(_LOST_S) == 0:
                return
        except TimeoutExpired:
            log.warning("process %d hangs in the kernel, with what it has started: it is left behind", self.warden.pid)
        if self.pid is not None and "ended" not in self.words:  # else the number may be somebody else's by now
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        late = self.clock.monotonic() + _LOST_S
        while self.clock.monotonic() < late:
            left, unclear = marked(f"{_MARK}={self.mark}".encode())
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not left and not unclear:  # who was killed has gone, and who was started meanwhile
                return
            self.clock.sleep(_LOOK_S)

    # what it says

    def _hear(self) -> bool:
        """The warden's words; False at their end."""
        try:
            data = os.read(self.events, _CHUNK)
        except BlockingIOError:
            return True
        *lines, self.said = (self.said + data).split(b"\n")
        for line in lines:
            self.words |= json.loads(line)
        self.pid = self.words.get("pid")
        self.over = not data
        return bool(data)

    def _read(self, fd: int) -> bool:
        """A piece of what it writes, into the log and, of stdout, through the lines; False where there is none."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return not self.over
        if self.over and not data:
            return False
        if fd != self.output:
            self.out.log(data)
        elif self.out.stdout(data) and not self.asked and "ended" not in self.words:
            self.asked = True
            self._ask_to_end()
        return bool(data)

    def _evidence(self, before: tuple[int, int]) -> Evidence:
        ended, after = self.words.get("ended"), kills()
        free, files = room(self.job.cwd)
        peak = self.words.get("peak_kib")
        return Evidence(
            code=ended if ended is not None and ended >= 0 else None,
            signal=-ended if ended is not None and ended < 0 else None,
            not_started=self.words.get("not_started", ""),
            limit=self.limit, memory_limit=self.memory_limit,
            cgroup_kills=after[0] - before[0], host_kills=after[1] - before[1],
            free_bytes=free, free_files=files, log_lost=self.out.lost, tail=tail_of(self.job.log),
            scheduler=scheduler_of(self.job.environ), left=self.words.get("left", 0),
            peak_bytes=peak * 1024 if peak is not None else None, cpu_s=self.words.get("cpu_s"),
        )  # fmt: skip


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _encoded(environ: Mapping[str, str]) -> dict[bytes, bytes]:
    return {_bytes(name): _bytes(value) for name, value in environ.items()}
