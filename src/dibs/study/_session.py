"""A process at work on trials: a thread that beats for its open attempts, and what signals mean.

SIGTERM: reports answer True for ``grace_s``; then whatever is open is recorded interrupted and the process
exits 143. The thread learns of signals through a wake-up pipe, so it can do that even while the main thread
is deep in C code. First Ctrl-C: no new trials; second: interrupted. Handlers live only inside a loop.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from dibs._clock import Clock

__all__ = ["Session"]

log = logging.getLogger("dibs")
_FIRST = b"dibs: finishing the running trial, no new ones; Ctrl-C again interrupts it\n"
_CODES = {signal.SIGTERM: 143, signal.SIGINT: 130}


class Beating(Protocol):
    """What a session does with an open trial."""

    @property
    def n(self) -> int: ...
    @property
    def beat_s(self) -> float: ...
    @property
    def closed(self) -> bool: ...
    def beat(self) -> None: ...
    def interrupt(self, reason: str) -> None: ...


class Session:
    """Entered around a loop over trials. ``lifeline``: a file descriptor that ends when the parent process does."""

    def __init__(self, clock: Clock, *, grace_s: float = 30.0, beats: bool = True, lifeline: int | None = None) -> None:
        self.clock, self.grace_s = clock, grace_s
        self.draining = False  # no new trials
        self.stopping = False  # the open ones should end soon
        self.reason: str | None = None
        self._beats, self._lifeline = beats, lifeline
        self._code = 0
        self._deadline: float | None = None
        self._trials: set[Any] = set()
        self._due: dict[Any, float] = {}
        self._lock = threading.Lock()
        self._awake = threading.Event()  # something to look at: idle loops wait on it
        self._old: dict[int, Any] = {}
        self._old_fd = -1
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        if threading.current_thread() is threading.main_thread():
            for number in _CODES:
                self._old[number] = signal.signal(number, self._on_signal)
            self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        if self._beats:
            self._thread = threading.Thread(target=self._run, name="dibs-beats", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:  # a forked child leaves its parent's handlers and thread alone
            return
        for number, handler in self._old.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        if self._old:
            signal.set_wakeup_fd(self._old_fd)
        if self._thread is not None:
            os.write(self._write, b"\0")
            self._thread.join()
        os.close(self._read)
        os.close(self._write)

    # trials

    def open(self, trial: Beating) -> None:
        """Beat for this trial from now on."""
        with self._lock:
            self._trials.add(trial)
            self._due[trial] = self.clock.monotonic() + trial.beat_s
        if self._thread is not None:
            self._poke()

    def close(self, trial: Beating) -> None:
        """No more beats for it."""
        with self._lock:
            self._trials.discard(trial)
            self._due.pop(trial, None)

    def wait(self, seconds: float) -> None:
        """Sleep, or less if a signal comes."""
        if self._thread is None:
            self.clock.sleep(seconds)
        else:
            self._awake.wait(seconds)

    def check(self) -> None:
        """Between trials: leave as the signal asked (SystemExit 143, KeyboardInterrupt), if one came."""
        if self.draining:
            if self._code == 143:
                raise SystemExit(143)
            raise KeyboardInterrupt

    # signals

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """In the main thread, between two bytecodes; the thread may have seen the signal already."""
        self._note(number)
        if number == signal.SIGINT and self.stopping and self._code == 130:
            raise KeyboardInterrupt

    def _note(self, number: int) -> None:
        if number == signal.SIGTERM:
            self._stop(143, "SIGTERM")
        elif number == signal.SIGINT:
            if self.draining:
                self._stop(130, "SIGINT")
            else:
                self.draining, self._code = True, 130
                if self._trials:
                    os.write(2, _FIRST)  # print may be what was interrupted
        self._awake.set()

    def _stop(self, code: int, reason: str) -> None:
        if not self.stopping:
            self._code, self.reason = code, reason
            self._deadline = self.clock.monotonic() + self.grace_s
            self.draining = self.stopping = True
        self._poke()

    def stop(self, reason: str) -> None:
        """Ask the open trials to end soon, as SIGTERM does."""
        self._stop(143, reason)
        self._awake.set()

    def _poke(self) -> None:
        try:
            os.write(self._write, b"\1")
        except BlockingIOError:
            pass  # full of news already

    # the thread

    def _run(self) -> None:
        sources = [self._read] + ([self._lifeline] if self._lifeline is not None else [])
        interrupts = 0
        while True:
            ready, _, _ = select.select(sources, [], [], self._pause_s())
            if self._lifeline in ready and not os.read(self._lifeline or 0, 64):
                sources.remove(self._lifeline)
                self._stop(143, "the parent process ended")
                self._awake.set()
            if self._read in ready:
                news = os.read(self._read, 256)
                if 0 in news:
                    return
                interrupts += news.count(signal.SIGINT)  # the handler counts for itself, if it gets to run
                if signal.SIGTERM in news:
                    self._note(signal.SIGTERM)
                if interrupts > 1:
                    self._stop(130, "SIGINT")
            self._beat()
            if self._deadline is not None and self.clock.monotonic() >= self._deadline:
                self._give_up()

    def _pause_s(self) -> float:
        with self._lock:
            times = [*self._due.values(), *([self._deadline] if self._deadline is not None else [])]
        return max(0.0, min(times) - self.clock.monotonic()) if times else 3600.0

    def _beat(self) -> None:
        now = self.clock.monotonic()
        with self._lock:
            due = [trial for trial, at in self._due.items() if at <= now]
            for trial in due:
                self._due[trial] = now + trial.beat_s
        for trial in due:
            trial.beat()

    def _give_up(self) -> None:
        """The grace is over and the main thread has not come back: record and leave."""
        with self._lock:
            trials = list(self._trials)
        for trial in trials:
            try:
                trial.interrupt(self.reason or "stopped")
            except Exception as wrong:  # whatever it is, the others still have to be recorded
                log.warning("trial %d is left running: %s", trial.n, wrong)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        os._exit(self._code)
