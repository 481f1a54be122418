"""One worker process as its parent knows it: its seat, its pipes, the trial it runs, and how it ended."""

from __future__ import annotations

import logging
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from dibs.cell import Limits, resident
from dibs.errors import StoreError

from ._child import Last
from ._claimer import Claimer
from ._devices import Lease
from ._events import Claimed, Closed
from ._watchdog import MEMORY_EVERY_S
from ._work import Terms

__all__ = ["Child", "Seat", "cause_of", "end_group", "verdict_on"]

log = logging.getLogger("dibs")


@dataclass
class Seat:
    """A place for one worker at a time. ``failures``: trials that failed here, while nothing else came of any."""

    index: int
    failures: int = 0


@dataclass
class Child:
    """One worker process."""

    number: int
    seat: Seat
    process: Any
    events: Connection
    control: Connection
    lease: Lease | None = None
    ready: bool = False
    last: Last | None = None
    unusable: str | None = None
    ran: int = 0
    failed: int = 0
    deaf: bool = False  # nothing more will come from it
    over_at: float | None = None  # when its last word came
    trial: Claimed | None = None  # what it runs
    since: float = 0.0
    condemned: str | None = None  # the limit it was killed for
    reason: str = ""  # of its last failure
    _measured: float = 0.0
    _used: int | None = None
    _exceeded_at: float | None = None

    def began(self, trial: Claimed, now: float) -> None:
        """It runs that trial from now on."""
        self.trial, self.since = trial, now
        self._used = self._exceeded_at = None

    def ended(self, closed: Closed) -> None:
        """Its trial is closed."""
        self.trial = None
        self.ran += 1
        self.failed += closed.state == "failed"
        self.reason = closed.reason or self.reason

    def command(self, data: bytes) -> None:
        """Tell it something; it may be gone."""
        with suppress(OSError):
            os.write(self.control.fileno(), data)

    def overdue(self, limits: Limits, now: float, margin_s: float) -> str | None:
        """The limit its trial has been over for so long that its own thread, if it could run, had ended it."""
        if self.trial is None:
            return None
        if limits.memory_bytes is not None and now - self._measured >= MEMORY_EVERY_S:
            self._measured, self._used = now, resident(self.process.pid, limits.memory_bytes)
        reason = limits.exceeded(now - self.since, self._used)
        if reason is None:
            self._exceeded_at = None
            return None
        if self._exceeded_at is None:
            self._exceeded_at = now
        return reason if now - self._exceeded_at >= margin_s else None


def verdict_on(child: Child, claimer: Claimer, terms: Terms, now: float) -> Closed | None:
    """Close the trial of a worker that ended over a limit and could not record so: the next attempt is born failed.

    None if it did record so, or if somebody has the next attempt already (who will be over the limit as well).
    """
    trial, took_s, memory = child.trial, now - child.since, terms.limits.memory_bytes
    if trial is None:
        return None
    reason = child.condemned or terms.limits.exceeded(took_s, None if memory is None else memory + 1) or "over a limit"
    try:
        verdict = claimer.close_lost(trial.n, trial.attempt, reason, terms.retries)
    except StoreError as wrong:
        log.warning("trial %d is left running, until somebody rescues it: %s", trial.n, wrong)
        return None
    if verdict is None:
        return None
    record = verdict.record()
    closed = Closed(trial.n, verdict.attempt, "failed", None, took_s, record.reason, record.again, child.number)
    child.ended(closed)
    return closed


def end_group(pid: int, number: int = signal.SIGTERM) -> None:
    """What a killed worker had started has nobody left to work for."""
    with suppress(OSError):
        os.killpg(pid, number)


def cause_of(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"it exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    why = {"SIGKILL": " (killed by somebody, or out of memory)", "SIGSEGV": " (a crash in native code)"}
    return f"killed by {name}{why.get(name, '')}"
