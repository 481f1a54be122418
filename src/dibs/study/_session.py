"""What beats and signals mean for one loop over trials: flags, open trials, and how it ends.

SIGTERM (or SIGHUP: a terminal or connection that is gone): reports answer True for ``grace_s``; then whatever is open is
recorded interrupted and the process exits 143 (129), by unwinding the main thread if it comes back, else at once. First Ctrl-C: no new trials; second:
KeyboardInterrupt in the objective, and only there: code of ours is shielded, so no claim is cut in two.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self

from dibs._clock import Clock
from dibs.backend import this_process
from dibs.errors import AlreadyClosed

from ._events import Event, OnEvent, Stopping
from ._keeper import LOOK_S, keeper

__all__ = ["AT_ONCE", "DRAIN", "DRAINING", "INTERRUPT", "STOPPING", "SUCCEEDED", "Session", "bounded"]

log = logging.getLogger("dibs")
# what a parent process writes to `control`, whose end is the parent's end
DRAIN, INTERRUPT, SUCCEEDED = b"d", b"i", b"s"
DRAINING, STOPPING, AT_ONCE = 1, 2, 3  # how urgent
_FIRST = b"dibs: finishing the running trial, no new ones; Ctrl-C again interrupts it\n"
_NUMBERS = {143: signal.SIGTERM, 130: signal.SIGINT}
if hasattr(signal, "SIGHUP"):  # Windows has none
    _NUMBERS[129] = signal.SIGHUP
_LAST_S = 5.0  # for unwinding after the grace: as long again as the grace, so much at most
_WRITE_S = 10.0  # for recording what is open, should the store hang


class Beating(Protocol):
    """What a session does with an open trial."""

    @property
    def _called(self) -> str: ...
    @property
    def beat_s(self) -> float: ...
    @property
    def closed(self) -> bool: ...
    def beat(self) -> None: ...
    def interrupt(self, reason: str) -> None: ...


class Watching(Protocol):
    """Who minds the running trial's limits, in the keeper's thread."""

    def over(self, trial: Any) -> AbstractContextManager[None]: ...
    def pause_s(self) -> float: ...
    def look(self) -> None: ...


class Session:
    """Entered around a loop over trials, in the thread that runs them.

    ``grace_s``: None waits for ever. ``control``: a file descriptor a parent process holds the other end of.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        grace_s: float | None = 30.0,
        control: int | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        self.clock, self.grace_s, self.control = clock, grace_s, control
        self.on_event = on_event
        self.urgency = 0
        self.draining = False  # no new trials
        self.stopping = False  # the open ones should end soon
        self.reason: str | None = None
        self.in_main = False
        self.code = 0
        self.hope = False  # others of this run have had a done trial
        self.watching: Watching | None = None
        self.lasts: list[Callable[[], None]] = []  # what others wait for, should the process have to end at once
        self._kick = False  # the main thread should leave the objective now
        self._count = 1  # Ctrl-C seen; only a further one kicks
        self._said = 0  # the urgency told
        self._deadline: float | None = None
        self._over = False
        self._beat: threading.Thread | None = None
        self._depth = 1  # > 0: our own code runs
        self._shield, self._window = _Depth(self, +1), _Depth(self, -1)
        self._trials: dict[Beating, float] = {}  # trial -> when its next beat is due
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._stderr = -1
        self._pid, self._ident = this_process(), threading.get_ident()

    def __enter__(self) -> Self:
        self._pid, self._ident = this_process(), threading.get_ident()
        self.in_main = threading.current_thread() is threading.main_thread()
        try:
            self._stderr = os.dup(2)  # the objective's own output may be on its way to a file
        except OSError:
            self._stderr = -1
        keeper.enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.ours:
            keeper.leave(self)
        if self._stderr >= 0:
            os.close(self._stderr)
            self._stderr = -1

    @property
    def ours(self) -> bool:
        """False in a process that was forked while the session was open."""
        return this_process() == self._pid

    # trials

    def open(self, trial: Beating) -> None:
        """Beat for this trial from now on."""
        with self._lock:
            self._trials[trial] = self.clock.monotonic() + trial.beat_s
        if trial.beat_s < 5 * LOOK_S:
            keeper.poke()

    def close(self, trial: Beating) -> None:
        """No more beats for it."""
        if trial in self._trials and self.ours:
            with self._lock:
                self._trials.pop(trial, None)

    def leave_open_trials(self) -> None:
        """The program ends without having left the loop."""
        self._record("left open")

    def tell(self, event: Event) -> None:
        """Pass an event on to whoever shows this run; their trouble is never a trial's."""
        if self.on_event is not None and self.ours:
            try:
                self.on_event(event)
            except Exception:
                log.debug("an event could not be shown", exc_info=True)

    # the main thread's side

    def wait(self, seconds: float) -> None:
        """Sleep, or less if a signal comes."""
        self._awake.wait(seconds)

    def check(self) -> None:
        """Between trials: leave as the signal asked (SystemExit 143 or 129, KeyboardInterrupt), if one came."""
        if self.draining:
            raise self._error()

    def pending(self) -> BaseException | None:
        """What the main thread should raise now, once; nothing while our own code runs."""
        if not self._kick or self._depth > 0:
            return None
        self._kick = False
        return self._error()

    def waits(self) -> int:
        """The signal that has the main thread raise that, while it has yet to; else 0."""
        return _NUMBERS[self.code] if self._kick else 0

    def theirs(self) -> _Depth:
        """``with session.theirs():`` the user's code runs in here and may be interrupted anywhere."""
        return self._window

    def watched(self, trial: Beating) -> AbstractContextManager[None]:
        """``with session.watched(trial):`` its limits count in here."""
        return self.watching.over(trial) if self.watching is not None else nullcontext()

    def shielded(self) -> _Depth:
        """``with session.shielded():`` our code runs in here; an interruption waits until it is through."""
        return self._shield

    # news, from the handler (in the main thread) or the keeper's thread, often from both: all of it idempotent

    def signalled(self, number: int, count: int) -> None:
        """A signal came; ``count``: how often Ctrl-C did."""
        if number != signal.SIGINT:
            self._urge(STOPPING, 128 + number, signal.Signals(number).name)
            return
        self._urge(min(count, AT_ONCE), 130, "SIGINT")
        if count > self._count:
            self._count, self._kick = count, True

    def commanded(self, data: bytes) -> None:
        """The parent process said something, or ended."""
        if not data:
            self.stop("the parent process ended")
        if SUCCEEDED in data:
            self.hope = True
        if DRAIN in data:
            self._urge(DRAINING, 130, "SIGINT")
        if INTERRUPT in data:
            self._urge(AT_ONCE if self.stopping else STOPPING, 130, "SIGINT")
            self._kick = True
            keeper.kick(signal.SIGINT)

    def stop(self, reason: str) -> None:
        """Ask the open trials to end soon, as SIGTERM does. Any thread."""
        self._urge(STOPPING, 143, reason)

    def _urge(self, urgency: int, code: int, reason: str) -> None:
        before = self.urgency
        if urgency <= before:
            return
        if before < STOPPING:
            self.code, self.reason = code, reason
        self.urgency, self.draining, self.stopping = urgency, True, urgency >= STOPPING
        if self.grace_s is not None and not self._over:
            if urgency == AT_ONCE:
                self._deadline = self.clock.monotonic()
            elif urgency == STOPPING:
                self._deadline = self.clock.monotonic() + self.grace_s
        if not before and urgency == DRAINING and self._trials and self.on_event is None and self._stderr >= 0:
            os.write(self._stderr, _FIRST)  # not print, which may be what was interrupted
        keeper.poke()

    def _error(self) -> BaseException:
        return KeyboardInterrupt() if self.code == 130 else SystemExit(self.code)

    # the keeper's thread

    def pause_s(self) -> float:
        """Seconds until there is something to do."""
        with self._lock:
            times = [*self._trials.values(), *([self._deadline] if self._deadline is not None else [])]
        pause_s = max(0.0, min(times) - self.clock.monotonic()) if times else 3600.0
        return pause_s if self.watching is None else min(pause_s, self.watching.pause_s())

    def work(self) -> None:
        """Beat, and see to the end of the grace and to the limits."""
        if self.draining:
            self._awake.set()  # here, because in a handler it could deadlock with the wait it interrupts
            if self._said < self.urgency:
                self._said = self.urgency
                self.tell(Stopping(self.reason or "Ctrl-C", self.stopping))
        now = self.clock.monotonic()
        with self._lock:
            due = [trial for trial, at in self._trials.items() if at <= now]
            for trial in due:
                self._trials[trial] = now + trial.beat_s
        if due and (self._beat is None or not self._beat.is_alive()):
            # not here: a mount that hangs must not keep this thread from minding the grace
            self._beat = threading.Thread(target=_beat_all, args=(due,), name="dibs-beat", daemon=True)
            self._beat.start()
        if self._deadline is not None and self.clock.monotonic() >= self._deadline:
            self._grace_is_over()
        if self.watching is not None:
            self.watching.look()

    def end_at_once(self, code: int) -> NoReturn:
        """The process ends, whatever its main thread does; what is open has been recorded."""
        bounded(_flush)
        for last in self.lasts:
            bounded(last)
        os._exit(code)

    def _grace_is_over(self) -> None:
        if not self._over:
            self._over = True
            self._deadline = self.clock.monotonic() + min(_LAST_S, self.grace_s or 0.0)
            bounded(lambda: self._record(self.reason or "stopped"))
            self._kick = True
            if self.in_main and keeper.kick(_NUMBERS[self.code]):
                return
        self._deadline = None
        if self.in_main and keeper.has(
            self
        ):  # a loop in another thread does not own the process, nor one that has ended
            self.end_at_once(self.code)

    def _record(self, reason: str) -> None:
        """Record what is open as interrupted, whoever holds the main thread."""
        with self._lock:
            trials = list(self._trials)
        for trial in trials:
            try:
                trial.interrupt(reason)
            except AlreadyClosed:
                continue  # it came to its end meanwhile, which is better
            except Exception as wrong:  # whatever it is, the others still have to be recorded
                log.warning("%s is left running: %s", trial._called, wrong)


class _Depth:
    """Moves a session's depth; leaving our code raises what waited meanwhile.

    Another thread (the keeper's, the objective's own) is never interrupted and does not count here.
    """

    __slots__ = ("_by", "_session")

    def __init__(self, session: Session, by: int) -> None:
        self._session, self._by = session, by

    def __enter__(self) -> None:
        if threading.get_ident() == self._session._ident:
            self._session._depth += self._by

    def __exit__(self, *_: object) -> None:
        session = self._session
        if threading.get_ident() == session._ident:
            session._depth -= self._by
            if session._kick and session.in_main:
                error = session.pending()
                if error is not None:
                    raise error


def _beat_all(trials: list[Beating]) -> None:
    for trial in trials:
        try:
            trial.beat()
        except Exception:  # one trial's trouble must not end the others' beats
            log.exception("a beat of %s went wrong", trial._called)


def bounded(action: Callable[[], None]) -> None:
    """Do it, but do not wait for ever: a lock may be held by a thread that hangs."""
    thread = threading.Thread(target=action, name="dibs-last", daemon=True)
    thread.start()
    thread.join(_WRITE_S)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
