"""Worker processes of one run, seen from the parent: start, listen, replace the dead, pass signals on, end.

Fresh (spawned) processes in process groups of their own, so that the terminal's Ctrl-C reaches the parent alone.
The parent runs no trial, and says of one only that it killed its worker for a limit: were the parent killed at any
instruction, the children would notice (their control pipe ends), record what they have as interrupted, and leave.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

from dibs.errors import DibsError, StoreError, UsageError

from ._child import DEVICES_LOST, NAME, Last, Post, Unusable, main
from ._claimer import Claimer, Idle
from ._devices import Devices, Lease
from ._events import Claimed, Closed, Ended, Event, OnEvent, Ready, Said, Stopping, Waiting, WorkerDied
from ._loop import UNGUARDED
from ._session import DRAIN, INTERRUPT, STOPPING, SUCCEEDED, Session
from ._share import quiet_start
from ._watchdog import OVER_LIMIT
from ._work import Tally, Terms
from ._worker import Child, Seat, cause_of, end_group, verdict_on

if TYPE_CHECKING:
    from ._runnable import Runnable

__all__ = ["Pool"]

log = logging.getLogger("dibs")
_TICK_S = 0.2
_COUNT_EVERY_S = 2.0
_DEATHS = 5  # in a row without a done trial between them: then no more replacements
_LINGER_S = 30.0  # between a worker's last word and its end: threads and processes it left may hold it
_MARGIN_S = 15.0  # beyond the grace, for recording and unwinding; then SIGKILL
_OVERDUE_S = 10.0  # beyond a limit, for the worker's own thread; then SIGKILL
_FILL_EVERY_S = 1.0  # so often a seat that waits for devices is tried again
_GUARD = (
    "workers > 1 starts fresh processes, which import the program again: put the call of run() under "
    "`if __name__ == '__main__':`"
)


@dataclass
class Pool:
    """``run()`` returns what the workers did; ``tally.error`` is what kept some of them from going on."""

    study: Runnable
    payload: bytes
    terms: Terms
    count: int
    size: int  # how many trials there will be, for those who watch
    on_event: OnEvent | None
    devices: Devices | None = None
    children: list[Child] = field(default_factory=list)
    vacant: list[Seat] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    started: int = 0
    deaths: int = 0  # in a row
    ever_ready: bool = False
    succeeded: bool = False
    gave_up: list[tuple[Seat, Last]] = field(default_factory=list)
    error: BaseException | None = None
    fill_at: float = 0.0
    waits: bool = False  # for devices, and has said so
    fails: int = 0  # for good
    halted: bool = False

    def __post_init__(self) -> None:
        self.session = Session(self.study.store.machine.clock, grace_s=None)
        self.claimer: Claimer = self.study.claimer(self.terms.trials, self.terms.rescue_after_s)

    def run(self) -> Tally:
        """Work until no worker is left."""
        with self.session:
            try:
                self._fill([Seat(index) for index in range(self.count)])
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
        while self.children or self.vacant:
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
                elif self.terms.limits.watched and child.condemned is None:
                    self._mind(child)
            if self.vacant and clock.monotonic() >= self.fill_at:
                with suppress(StoreError) if self.children else nullcontext():
                    self._fill_again()
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
                    self._tell(self.study.counted(self.size))
                count_at = clock.monotonic() + max(_COUNT_EVERY_S, 20 * (clock.monotonic() - began))

    def _result(self) -> Tally:
        self.tally.error = self.error
        if self.gave_up and not self.succeeded:
            seat, lost = self.gave_up[0]
            raise DibsError(
                f"no trial succeeded: the first {seat.failures} trials of each worker all failed; the last one:\n\n"
                f"{lost.trace.rstrip()}"
            )
        return self.tally

    # seats

    def _fill(self, seats: list[Seat]) -> None:
        """A worker for each of them; those for whom there are no devices wait."""
        if self.session.draining or self.halted:
            return
        self.vacant += seats
        while self.vacant:
            try:
                lease = self.devices.lease() if self.devices is not None else None
            except StoreError:
                if not self.children:
                    raise
                lease = None  # an outage ends no worker
            if self.devices is not None and lease is None:
                self.fill_at = self.session.clock.monotonic() + _FILL_EVERY_S
                if not self.waits and not self.children:
                    self.waits = True
                    self._tell(Waiting(len(self.vacant), 0, f"every device is held: {self.devices.holders()}"))
                return
            self._start(self.vacant.pop(0), lease)

    def _fill_again(self) -> None:
        """Try for devices again, unless there is nothing left to run."""
        late = self.terms.until is not None and self.session.clock.monotonic() >= self.terms.until
        idle = Idle("time") if late else self.claimer.look()
        if idle is None or (self.terms.wait and idle.why == "held"):
            self._fill([])
            return
        self.vacant.clear()
        if not self.children:
            self.tally.why = idle.why

    # one child

    def _start(self, seat: Seat, lease: Lease | None) -> None:
        number = self.started
        self.started += 1
        context = multiprocessing.get_context("spawn")
        events, their_events = context.Pipe(duplex=False)
        their_control, control = context.Pipe(duplex=False)
        terms = replace(self.terms, capture=True)  # nobody reads what many processes print at once
        process = context.Process(
            target=main,
            args=(
                Post(number, seat.failures, lease), self.payload, terms, their_events, their_control,
                log.getEffectiveLevel(),
            ),
            name=f"{NAME}{number}",
        )  # fmt: skip
        try:
            with quiet_start(self.count, seat.index, terms.limits.cpus, lease.environ if lease is not None else {}):
                process.start()
        except OSError as wrong:
            self._let_go(lease)
            for pipe in (events, control):
                pipe.close()
            if not self.children:
                raise DibsError(f"no worker process could be started: {wrong.strerror or wrong}") from wrong
            self._tell(Said(logging.WARNING, f"no worker process could be started: {wrong.strerror or wrong}", number))
            return
        finally:
            for pipe in (their_events, their_control):
                pipe.close()
        self.children.append(Child(number, seat, process, events, control, lease))

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
                    child.command(SUCCEEDED)
            case Claimed():
                child.began(message, self.session.clock.monotonic())
            case Closed():
                child.ended(message)
                self._uncount(message)
                if message.state == "done":
                    self._success()
                elif message.state == "failed" and not message.again:
                    self._failure()
        self._tell(message)

    def _uncount(self, closed: Closed) -> None:
        """Those who count the ends they are told of must not have it in what was last read, too."""
        view = self.study.view
        seen, trial = view.seens(closed.n).get(closed.attempt), view.trial(closed.n)
        if self.on_event is not None and seen is not None and seen.closed and trial is not None:
            now = self.study.counted(self.size)
            states = {state: count - (state == trial.state) for state, count in now.states.items()}
            self._tell(now._replace(states=states))

    def _success(self) -> None:
        self.deaths = 0
        if not self.succeeded:
            self.succeeded = True
            for child in self.children:
                child.command(SUCCEEDED)
            seats = [replace(seat, failures=0) for seat, _ in self.gave_up]
            self._fill(seats)  # they were unlucky, not broken

    def _failure(self) -> None:
        self.fails += 1
        halt = self.terms.halt
        if halt is None or self.halted or self.fails < halt.fails:
            return
        self.halted, self.tally.why = True, "halted"
        self.vacant.clear()
        why = f"{self.fails} failed: nothing new is begun" + (", and what runs is interrupted" if halt.now else "")
        self._tell(Said(logging.WARNING, why, 0))
        for child in self.children:
            child.command(INTERRUPT if halt.now else DRAIN)

    def _buried(self, child: Child) -> None:
        """The process has ended: was that its own will?"""
        self.children.remove(child)
        code = child.process.exitcode
        for pipe in (child.events, child.control):
            pipe.close()
        self._let_go(child.lease)
        last = child.last
        struck = last is None and self.terms.limits.watched and (child.condemned is not None or code == OVER_LIMIT)
        if struck:
            end_group(child.process.pid, signal.SIGKILL)
            closed = verdict_on(child, self.claimer, self.terms, self.session.clock.monotonic())
            if closed is not None:
                self._uncount(closed)
                self._tell(closed)
        self.tally.ran += max(child.ran, last.ran if last else 0)
        self.tally.failed += max(child.failed, last.failed if last else 0)
        if code == UNGUARDED:
            raise UsageError(_GUARD)
        if child.unusable is not None:
            raise UsageError(child.unusable)
        if last is not None and (code == 0 or code == -signal.SIGKILL):
            self._tell(Ended(child.number, last.ran, last.failed, last.why))
            self._through(child.seat, last)
            return
        if self.session.draining or self.halted:
            return
        if struck:
            self._after_limit(child)
            return
        end_group(child.process.pid)
        if code == DEVICES_LOST:
            self._fill([child.seat])
            return
        if not self.ever_ready and code >= 0:  # of itself: the next one would do the same
            raise DibsError(
                f"a worker process ended before it could begin: {cause_of(code)}; what it said stands above"
            )
        self.deaths += 1
        again = self.deaths < _DEATHS
        self._tell(WorkerDied(child.number, child.process.pid, cause_of(code), again))
        if again:
            self._fill([child.seat])
        elif not self.children and self.error is None:
            self.error = DibsError(
                f"{self.deaths} worker processes died in a row without a finished trial between them; the last one: "
                f"{cause_of(code)}"
            )

    def _through(self, seat: Seat, last: Last) -> None:
        if last.error is not None:
            self.error = self.error or last.error
        elif last.gave_up:
            seat.failures += last.failed
            self._give_up(seat, last)
        elif self.tally.why not in ("time", "halted"):
            self.tally.why = last.why

    def _give_up(self, seat: Seat, last: Last) -> None:
        self.gave_up.append((seat, last))
        if self.succeeded:
            self._fill([replace(seat, failures=0)])

    def _let_go(self, lease: Lease | None) -> None:
        if lease is not None and self.devices is not None:
            self.devices.back(lease)

    # limits

    def _mind(self, child: Child) -> None:
        """Kill a worker that is over a limit and cannot end itself: its main thread never lets go of the GIL."""
        child.condemned = child.overdue(self.terms.limits, self.session.clock.monotonic(), _OVERDUE_S)
        if child.condemned is not None:
            child.process.kill()

    def _after_limit(self, child: Child) -> None:
        """Another worker in its place: this is no sign of a broken machine, but failures count as failures."""
        seat, most = child.seat, self.terms.max_failures
        seat.failures = seat.failures + max(1, child.failed) if child.ran == child.failed else 0
        enough = not self.succeeded and most is not None and seat.failures >= most
        if child.condemned is not None:
            cause = f"{child.condemned}, and it did not end by itself: killed"
            self._tell(WorkerDied(child.number, child.process.pid, cause, not enough))
        else:
            self._tell(Ended(child.number, child.ran, child.failed, "limit"))
        if enough:
            self._give_up(seat, Last(child.ran, child.failed, "held", True, child.reason))
        else:
            self._fill([seat])

    # the end

    def _drain(self) -> None:
        self.vacant.clear()
        if not self.session.stopping:
            self._tell(Stopping(self.session.reason or "SIGINT", False))
        for child in self.children:
            self._listen(child)
            if child.ready:
                child.command(DRAIN)
            else:
                child.process.terminate()

    def _stop(self, *, first: bool) -> None:
        if first:
            self._tell(Stopping(self.session.reason or "stopped", True))
        for child in self.children:
            if self.session.code != 130:  # not Ctrl-C
                child.process.terminate()
            else:
                child.command(INTERRUPT)

    def _end(self) -> None:
        """No child is left when this returns."""
        for child in self.children:
            child.process.kill()
            end_group(child.process.pid)
        for child in self.children:
            child.process.join()
            self._let_go(child.lease)
        self.children.clear()

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
