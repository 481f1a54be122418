"""Worker processes of one run, seen from the parent: start, listen, replace the dead, pass signals on, end.

Fresh (spawned) processes in process groups of their own, so that the terminal's Ctrl-C reaches the parent alone.
The parent claims nothing and decides nothing about trials: were it killed at any instruction, the children
would notice (their control pipe ends), record what they have as interrupted, and leave.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from dibs.errors import DibsError, StoreError, UsageError

from ._child import NAME, Last, Unusable, main
from ._events import Closed, Ended, Event, OnEvent, Ready, Said, Stopping, WorkerDied
from ._loop import UNGUARDED
from ._session import DRAIN, INTERRUPT, STOPPING, SUCCEEDED, Session
from ._share import quiet_start
from ._work import Objective, Tally, Terms, counted

if TYPE_CHECKING:
    from ._study import Study

__all__ = ["Pool", "packed"]

log = logging.getLogger("dibs")
_TICK_S = 0.2
_COUNT_EVERY_S = 2.0
_DEATHS = 5  # in a row without a done trial between them: then no more replacements
_LINGER_S = 30.0  # between a worker's last word and its end: threads and processes it left may hold it
_MARGIN_S = 15.0  # beyond the grace, for recording and unwinding; then SIGKILL
_GUARD = (
    "workers > 1 starts fresh processes, which import the program again: put the call of run() under "
    "`if __name__ == '__main__':`"
)


def packed(study: Study, objective: Objective) -> bytes:
    """Study and objective for a fresh process. Raises UsageError if it could not import the objective."""
    if study.store.backend.traits.name == "memory":
        raise UsageError("workers > 1 needs a store that other processes reach: this one is in this process's memory")
    if multiprocessing.current_process().daemon:
        raise UsageError(
            "workers > 1 starts processes, which a daemon process of multiprocessing may not: use workers=1"
        )
    try:
        data = pickle.dumps((study, objective))
    except Exception as wrong:  # whatever an object's own way of being pickled may raise
        raise UsageError(
            f"workers > 1 needs an objective that a fresh process can import: define it at the top of a module, "
            f"not as a lambda or inside a function ({wrong})"
        ) from None
    main_module = sys.modules.get("__main__")
    spec, file = getattr(main_module, "__spec__", None), getattr(main_module, "__file__", None)
    if b"__main__" in data and spec is None and (file is None or not os.path.isfile(file)):  # noqa: PTH113
        raise UsageError(
            "workers > 1 needs an objective that a fresh process can import, and this session has no file: put the "
            "objective into a module and import it"
        )
    return data


@dataclass
class Child:
    """One worker process, as its parent knows it."""

    number: int
    process: Any
    events: Connection
    control: Connection
    ready: bool = False
    last: Last | None = None
    unusable: str | None = None
    ran: int = 0
    failed: int = 0
    deaf: bool = False  # nothing more will come from it
    over_at: float | None = None  # when its last word came


@dataclass
class Pool:
    """``run()`` returns what the workers did; ``tally.error`` is what kept some of them from going on."""

    study: Study
    payload: bytes
    terms: Terms
    count: int
    size: int  # how many trials there will be, for those who watch
    on_event: OnEvent | None
    children: list[Child] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    started: int = 0
    deaths: int = 0  # in a row
    ever_ready: bool = False
    succeeded: bool = False
    gave_up: list[Last] = field(default_factory=list)
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.session = Session(self.study.store.machine.clock, grace_s=None)

    def run(self) -> Tally:
        """Work until no worker is left."""
        with self.session:
            try:
                for _ in range(self.count):
                    self._start()
                self._tend()
            finally:
                self._end()
            self.session.check()
        return self._result()

    def _tend(self) -> None:
        session, clock = self.session, self.session.clock
        urgency = 0
        kill_at: float | None = None
        count_at = clock.monotonic()
        while self.children:
            # not on their sentinels: a process that a dead worker has forked would keep its sentinel silent
            heard = connection.wait([child.events for child in self.children if not child.deaf], _TICK_S)
            for child in tuple(self.children):
                if child.events in heard:
                    self._listen(child)
                if child.process.exitcode is not None:
                    self._listen(child)
                    self._buried(child)
                elif child.over_at is not None and clock.monotonic() > child.over_at + _LINGER_S:
                    child.process.kill()
            if session.urgency > urgency:
                if not urgency:
                    self._drain()
                if session.stopping:
                    kill_at = kill_at or clock.monotonic() + self.terms.grace_s + _MARGIN_S
                    self._stop(first=urgency < STOPPING)
                urgency = session.urgency
            if kill_at is not None and clock.monotonic() >= kill_at:
                return  # `finally` kills
            if self.on_event is not None and clock.monotonic() >= count_at:
                began = clock.monotonic()
                with suppress(StoreError):
                    self.study.view.refresh()
                    self._tell(counted(self.study, self.size))
                count_at = clock.monotonic() + max(_COUNT_EVERY_S, 20 * (clock.monotonic() - began))

    def _result(self) -> Tally:
        self.tally.error = self.error
        if self.gave_up and not self.succeeded:
            lost = self.gave_up[0]
            raise DibsError(
                f"no trial succeeded: the first {lost.failed} trials of each worker all failed; the last one:\n\n{lost.trace.rstrip()}"
            )
        return self.tally

    # one child

    def _start(self) -> None:
        if self.session.draining:
            return
        number = self.started
        self.started += 1
        context = multiprocessing.get_context("spawn")
        events, their_events = context.Pipe(duplex=False)
        their_control, control = context.Pipe(duplex=False)
        terms = replace(self.terms, capture=True)  # nobody reads what many processes print at once
        process = context.Process(
            target=main,
            args=(number, self.payload, terms, their_events, their_control, log.getEffectiveLevel()),
            name=f"{NAME}{number}",
        )
        try:
            with quiet_start(self.count, number, None, {}):
                process.start()
        except OSError as wrong:
            for pipe in (events, control):
                pipe.close()
            if not self.children:
                raise DibsError(f"no worker process could be started: {wrong.strerror or wrong}") from wrong
            self._tell(Said(logging.WARNING, f"no worker process could be started: {wrong.strerror or wrong}", number))
            return
        finally:
            for pipe in (their_events, their_control):
                pipe.close()
        self.children.append(Child(number, process, events, control))

    def _listen(self, child: Child) -> None:
        try:
            while child.events.poll(0):
                self._heard(child, child.events.recv())
        except (EOFError, OSError):
            child.deaf = True
            child.process.join(_TICK_S / 4)  # it is most likely ending

    def _heard(self, child: Child, message: Any) -> None:
        match message:
            case Last():
                child.last, child.over_at = message, self.study.store.machine.clock.monotonic()
                return
            case Unusable():
                child.unusable = message.text
                return
            case Stopping():
                return  # it stops because this process said so, and has said so
            case Ready():
                child.ready = self.ever_ready = True
                if self.succeeded:
                    self._command(child, SUCCEEDED)
            case Closed():
                child.ran += 1
                child.failed += message.state == "failed"
                self._uncount(message)
                if message.state == "done":
                    self._success()
        self._tell(message)

    def _uncount(self, closed: Closed) -> None:
        """Those who count the ends they are told of must not have it in what was last read, too."""
        view = self.study.view
        seen, trial = view.seens(closed.n).get(closed.attempt), view.trial(closed.n)
        if self.on_event is not None and seen is not None and seen.closed and trial is not None:
            now = counted(self.study, self.size)
            states = {state: count - (state == trial.state) for state, count in now.states.items()}
            self._tell(replace(now, states=states))

    def _success(self) -> None:
        self.deaths = 0
        if not self.succeeded:
            self.succeeded = True
            for child in self.children:
                self._command(child, SUCCEEDED)
            for _ in self.gave_up:  # they were unlucky, not broken
                self._start()

    def _buried(self, child: Child) -> None:
        """The process has ended: was that its own will?"""
        self.children.remove(child)
        code = child.process.exitcode
        for pipe in (child.events, child.control):
            pipe.close()
        last = child.last
        self.tally.ran += max(child.ran, last.ran if last else 0)
        self.tally.failed += max(child.failed, last.failed if last else 0)
        if code == UNGUARDED:
            raise UsageError(_GUARD)
        if child.unusable is not None:
            raise UsageError(child.unusable)
        if last is not None and (code == 0 or code == -signal.SIGKILL):
            self._tell(Ended(child.number, last.ran, last.failed, last.why))
            self._through(last)
            return
        if self.session.draining:
            return
        _end_group(child.process.pid)
        if not self.ever_ready and code >= 0:  # of itself: the next one would do the same
            raise DibsError(f"a worker process ended before it could begin: {_cause(code)}; what it said stands above")
        self.deaths += 1
        again = self.deaths < _DEATHS
        self._tell(WorkerDied(child.number, child.process.pid, _cause(code), again))
        if again:
            self._start()
        elif not self.children and self.error is None:
            self.error = DibsError(
                f"{self.deaths} worker processes died in a row without a finished trial between them; the last one: "
                f"{_cause(code)}"
            )

    def _through(self, last: Last) -> None:
        if last.error is not None:
            self.error = self.error or last.error
        elif last.gave_up:
            self.gave_up.append(last)
            if self.succeeded:
                self._start()
        elif self.tally.why != "time":
            self.tally.why = last.why

    # the end

    def _drain(self) -> None:
        if not self.session.stopping:
            self._tell(Stopping(self.session.reason or "SIGINT", False))
        for child in self.children:
            self._listen(child)
            if child.ready:
                self._command(child, DRAIN)
            else:
                child.process.terminate()

    def _stop(self, *, first: bool) -> None:
        if first:
            self._tell(Stopping(self.session.reason or "stopped", True))
        for child in self.children:
            if self.session.code == 143:
                child.process.terminate()
            else:
                self._command(child, INTERRUPT)

    def _end(self) -> None:
        """No child is left when this returns."""
        for child in self.children:
            child.process.kill()
            _end_group(child.process.pid)
        for child in self.children:
            child.process.join()
        self.children.clear()

    def _command(self, child: Child, data: bytes) -> None:
        with suppress(OSError):
            os.write(child.control.fileno(), data)

    def _tell(self, event: Event) -> None:
        if self.on_event is not None:
            try:
                self.on_event(event)
            except Exception:  # a display's trouble is not the run's
                log.debug("an event could not be shown", exc_info=True)
        elif isinstance(event, Said):
            log.log(event.level, "worker %d: %s", event.worker, event.text)
        elif isinstance(event, WorkerDied):
            log.warning("worker %d (process %d) died: %s", event.worker, event.pid, event.cause)
        elif isinstance(event, Stopping) and not event.interrupting:
            log.warning("%s: finishing the running trials, no new ones; again interrupts them", event.reason)


def _end_group(pid: int) -> None:
    """What a killed worker had started has nobody left to work for."""
    with suppress(OSError):
        os.killpg(pid, signal.SIGTERM)


def _cause(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"it exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    why = {"SIGKILL": " (killed by somebody, or out of memory)", "SIGSEGV": " (a crash in native code)"}
    return f"killed by {name}{why.get(name, '')}"
