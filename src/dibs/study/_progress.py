"""What a person sees of a run: one living line on a terminal, plain lines elsewhere. Stdlib only.

Fed with events from any thread. It writes to a copy of the error stream's descriptor, because the stream
itself may be on its way into a trial's log.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from threading import Lock
from typing import TextIO

from dibs._clock import Clock, SystemClock
from dibs.search import Goals

from ._events import Claimed, Closed, Counted, Ended, Event, Ready, Reported, Said, Stopping, Waiting, WorkerDied

__all__ = ["Progress"]

_REDRAW_S = 0.1
_LINE_EVERY_S = 0.5


class Progress:
    """``Progress(total, goal, stream).event(e)`` for every event, ``close()`` at the end.

    ``stream``: where to write, by default the process's error stream as it is now. ``named``: what a trial is called.
    """

    def __init__(
        self,
        total: int,
        goal: Goals | None,
        stream: TextIO | None = None,
        *,
        clock: Clock | None = None,
        named: Callable[[int], str] = "trial {}".format,
    ) -> None:
        self.total, self.goal = total, goal
        self._clock, self._named = clock or SystemClock(), named
        self._own: TextIO | None = None
        self._out = stream if stream is not None else self._copy_of_stderr()
        self._live = self._out.isatty()
        self._lock = Lock()
        self._states: dict[str, int] = {}
        self._all = total  # trials there are, at least
        self._best: float | None = None
        self._front: int | None = None
        self._running: dict[tuple[int, int], int] = {}  # -> the worker
        self._workers: set[int] = set()
        self._closed_here = 0
        self._waiting = 0
        self._stopping = ""
        self._began_at: float | None = None  # the first trial; when processes start does not count
        self._closed_at = 0.0
        self._drawn_at = self._lined_at = -1e9
        self._held_back: str | None = None
        self._skipped = 0
        self._on_line = False

    def event(self, e: Event) -> None:
        """Take an event in and show what it changes. Thread-safe; never raises for a stream that is gone."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._take(e)
            if self._live:
                self._draw()

    def close(self) -> None:
        """Leave the last state standing."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._live:
                self._draw(force=True)
                if self._on_line:
                    self._out.write("\n")
            elif self._held_back is not None:
                self._line(self._held_back)
            self._out.flush()
        if self._own is not None:
            with contextlib.suppress(OSError):
                self._own.close()

    # events

    def _take(self, e: Event) -> None:
        match e:
            case Ready():
                self._workers.add(e.worker)
            case Claimed():
                self._running[e.n, e.attempt], self._waiting = e.worker, 0
                self._began_at = self._clock.monotonic() if self._began_at is None else self._began_at
            case Closed():
                self._take_closed(e)
            case Counted():
                self._states, self._best, self.total, self._front = dict(e.states), e.best, e.total, e.front
                self._all = max(e.total, sum(e.states.values()))
            case Waiting():
                self._waiting = e.held
                if e.why or not self._live:
                    self._line(e.why or f"waiting for {e.held} trial{'s' * (e.held != 1)} that others run")
            case Ended():
                self._left(e.worker)
            case WorkerDied():
                self._left(e.worker)
                after = "a new one takes its place" if e.replaced else "it is not replaced"
                self._line(f"worker {e.worker} (process {e.pid}) died: {e.cause}; {after}")
            case Stopping():
                self._stopping = "interrupting" if e.interrupting else "finishing what runs, no new trials"
                again = "" if e.interrupting else "; Ctrl-C again interrupts"
                self._line(f"{'Ctrl-C' if e.reason == 'SIGINT' else e.reason}: {self._stopping}{again}")
            case Said():
                self._line(e.text)
            case Reported():
                pass

    def _left(self, worker: int) -> None:
        self._workers.discard(worker)
        self._running = {at: whose for at, whose in self._running.items() if whose != worker}

    def _take_closed(self, e: Closed) -> None:
        self._running.pop((e.n, e.attempt), None)
        self._closed_here += 1
        self._closed_at = self._clock.monotonic()
        state = "to be retried" if e.again else e.state
        self._states[state] = self._states.get(state, 0) + 1
        self._forget_earlier()
        if e.state == "done" and e.score is not None and e.feasible:
            worse = self._best is not None and (e.score >= self._best if self.goal != "max" else e.score <= self._best)
            self._best = self._best if worse else e.score
        text = self._named(e.n) + (f" attempt {e.attempt}" if e.attempt else "") + f" {e.state}"
        if e.score is not None:
            text += f" {e.score:.6g}"
        if e.scores:
            text += " " + ", ".join(f"{score:.6g}" for score in e.scores)
        if not e.feasible:
            text += ", a constraint broken"
        text += f" ({_duration(e.took_s)})"
        if e.reason:
            text += f": {' '.join(e.reason.split())[:200]}"
        if e.state != "done":
            self._line(text)
        elif not self._live:
            self._sometimes(f"{text}  [{self._sums()}]")

    def _forget_earlier(self) -> None:
        """A trial that was tried again was counted before: what is more than all trials there are was."""
        excess = sum(count for state, count in self._states.items() if state != "running") - self._all
        for state in _FOLLOWED:
            gone = min(max(excess, 0), self._states.get(state, 0))
            excess -= gone
            self._states[state] = self._states.get(state, 0) - gone
            if not self._states[state]:
                del self._states[state]

    # drawing

    def _sums(self) -> str:
        done = self._states.get("done", 0)
        parts = [f"{done}/{self.total} done"]
        if self._running:
            parts.append(f"{len(self._running)} running")
        parts += [
            f"{count} {state}" for state, count in sorted(self._states.items()) if state not in ("done", "running")
        ]
        if self._best is not None:
            parts.append(f"best {self._best:.6g}")
        if self._front:
            parts.append(f"front {self._front}")
        if self._closed_here and self._began_at is not None and self._closed_at > self._began_at:
            parts.append(self._pace(self._closed_here / (self._closed_at - self._began_at)))
        if len(self._workers) > 1:
            parts.append(f"{len(self._workers)} workers")
        if self._stopping:
            parts.append(self._stopping)
        elif self._waiting:
            parts.append(f"waiting for {self._waiting}")
        return ", ".join(parts)

    def _pace(self, rate: float) -> str:
        """Trials per second here, and how long the rest takes at that pace, counted down between two ends."""
        left = max(0, self.total - sum(count for state, count in self._states.items() if state in _SETTLED))
        fast = f"{rate:.0f}/s" if rate >= 99.5 else f"{rate:.2g}/s"
        pace = fast if rate >= 1 else f"{_duration(1 / rate)} each"
        if not left:
            return pace
        return f"{pace}, {_duration(max(0.0, left / rate - (self._clock.monotonic() - self._closed_at)))} left"

    def _draw(self, *, force: bool = False) -> None:
        now = self._clock.monotonic()
        if not force and now - self._drawn_at < _REDRAW_S:
            return
        self._drawn_at = now
        width = shutil.get_terminal_size().columns
        self._out.write(f"\r\x1b[K{self._sums()[: width - 1]}")
        self._out.flush()
        self._on_line = True

    def _line(self, text: str) -> None:
        if self._on_line:
            self._out.write("\r\x1b[K")
            self._on_line = False
        self._out.write(text + "\n")
        self._out.flush()
        self._drawn_at = -1e9

    def _sometimes(self, text: str) -> None:
        """A plain line, but not more than a few a second: the last one is kept for the end."""
        now = self._clock.monotonic()
        if now - self._lined_at < _LINE_EVERY_S:
            self._held_back = text
            return
        self._lined_at, self._held_back = now, None
        self._line(text)

    def _copy_of_stderr(self) -> TextIO:
        try:
            fd = os.dup(sys.stderr.fileno())
        except (OSError, ValueError, AttributeError):
            return sys.stderr
        encoding = sys.stderr.encoding
        self._own = open(fd, "w", encoding=encoding, errors="backslashreplace")  # noqa: SIM115, PTH123 - a descriptor
        return self._own


_FOLLOWED = ("to be retried", "interrupted", "failed")  # what another attempt may come after
_SETTLED = ("done", "pruned", "failed")


def _duration(seconds: float) -> str:
    """12 ms, 3.4 s, 5 min, 2.1 h."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
