"""The limits of the running trial, minded by its own process: the keeper's thread looks, records and ends it all.

A process that is over a limit cannot be argued with, so it records the trial as failed, with the limit and where
the objective was, kills what it has started and ends with OVER_LIMIT; its parent starts another in its place.
Where the main thread never lets go of the GIL this thread cannot run: then the parent kills (``_pool``).
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from dibs._clock import Clock
from dibs.cell import Limits, family, resident

from . import _work
from ._session import bounded
from ._trial import Trial

__all__ = ["MEMORY_EVERY_S", "OVER_LIMIT", "Watchdog"]

log = logging.getLogger("dibs")
OVER_LIMIT = 91  # exit code of a worker process whose trial was over a limit; the trial is recorded as failed
MEMORY_EVERY_S = 1.0


class Watchdog:
    """``with watchdog.over(trial):`` around the objective; ``end`` ends the process."""

    def __init__(self, limits: Limits, clock: Clock, end: Callable[[int], NoReturn]) -> None:
        self._limits, self._clock, self._end = limits, clock, end
        self._lock = threading.Lock()  # held while it strikes, so that the objective's own end waits for the process's
        self._trial: Trial | None = None
        self._since = self._measured = 0.0

    @contextmanager
    def over(self, trial: Trial) -> Iterator[None]:
        """The objective runs in here."""
        with self._lock:
            self._since = self._measured = self._clock.monotonic()
            self._trial = trial
        try:
            yield
        finally:
            with self._lock:
                self._trial = None

    # the keeper's thread

    def pause_s(self) -> float:
        """Seconds until there is something to look at."""
        if self._trial is None:
            return 3600.0
        due = [self._since + self._limits.time_s] if self._limits.time_s is not None else []
        due += [self._measured + MEMORY_EVERY_S] if self._limits.memory_bytes is not None else []
        return max(0.0, min(due) - self._clock.monotonic()) if due else 3600.0

    def look(self) -> None:
        """Within the limits? If not, this does not return."""
        with self._lock:
            if self._trial is None:
                return
            now, used = self._clock.monotonic(), None
            limit = self._limits.memory_bytes
            if limit is not None and now - self._measured >= MEMORY_EVERY_S:
                self._measured, used = now, resident(os.getpid(), limit)
            reason = self._limits.exceeded(now - self._since, used)
            if reason is not None:
                self._strike(self._trial, reason)

    def _strike(self, trial: Trial, reason: str) -> NoReturn:
        place = _where()
        log.info("worker process %d ends and is replaced: %s is %s", os.getpid(), trial._called, reason)
        with suppress(OSError):
            os.write(2, f"dibs: {reason}; the trial is failed and its process ends\n{place}".encode())
        bounded(lambda: _fail(trial, reason, place))
        for member in family(os.getpid())[1:]:
            with suppress(OSError):
                os.kill(member, signal.SIGKILL)
        self._end(OVER_LIMIT)


def _fail(trial: Trial, reason: str, place: str) -> None:
    if trial.closed:  # by the objective itself, which has not come back since
        return
    try:
        trial.fail(reason, place)
    except Exception as wrong:  # its parent, who learns of the limit by the exit code, sees to the record
        log.warning("%s: that it was %s is not recorded by itself: %s", trial._called, reason, wrong)


def _where() -> str:
    """Where the objective is, as a traceback."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    stack = traceback.extract_stack(frame) if frame is not None else traceback.StackSummary()
    ours = max((at for at, entry in enumerate(stack) if entry.filename == _work.__file__), default=-1)
    return "".join(["It was here (most recent call last):\n", *traceback.format_list(stack[ours + 1 :])])
