"""A worker process of a run, from the inside: a process group of its own, a control pipe, events that never block."""

from __future__ import annotations

import logging
import os
import pickle
import select
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from dibs.errors import DibsError

from ._devices import Lease
from ._events import Event, Ready, Said
from ._session import Session
from ._stand_in import tolerant
from ._watchdog import Watchdog
from ._work import Tally, Terms, work

__all__ = ["DEVICES_LOST", "NAME", "Last", "Post", "Unusable", "main"]

NAME = "dibs-worker-"  # of the process; also how one that imports an unguarded program is known
DEVICES_LOST = 92  # exit code: somebody else has the devices it was started for, because its parent is dead
_ATOMIC_BYTES = select.PIPE_BUF - 4  # with its head: written whole or not at all
_TAIL = 900
log = logging.getLogger("dibs")


@dataclass(frozen=True)
class Post:
    """What is one worker's own. ``before``: failures of those whose place it takes, if they had nothing else."""

    number: int
    before: int = 0
    lease: Lease | None = None


@dataclass(frozen=True)
class Last:
    """A worker's last word. Never dropped."""

    ran: int
    failed: int
    why: str
    gave_up: bool = False
    trace: str = ""
    error: BaseException | None = None


@dataclass(frozen=True)
class Unusable:
    """A worker could not load what it should run."""

    text: str


class Sender:
    """The events' way to the parent: dropped when the pipe is full, never waited for."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._pid = pipe, os.getpid()
        os.set_blocking(pipe.fileno(), False)

    def __call__(self, event: Event) -> None:
        data = pickle.dumps(event)
        if len(data) > _ATOMIC_BYTES or os.getpid() != self._pid:
            return
        try:
            self._pipe.send_bytes(data)
        except OSError:  # full, or the parent is gone
            return

    def last(self, message: Any) -> None:
        """Send, and wait for room; nothing is held by now."""
        try:
            os.set_blocking(self._pipe.fileno(), True)
            self._pipe.send(message)
        except OSError:
            return


def _tail(text: str) -> str:
    """The end of a text, short enough for one atomic write even if it is not ASCII."""
    return text if len(text) <= _TAIL else "... " + text[-_TAIL:]


class _Forward(logging.Handler):
    """The parent speaks for its workers, so that no line ends up in a trial's log."""

    def __init__(self, send: Sender, worker: int) -> None:
        super().__init__()
        self._send, self._worker = send, worker

    def emit(self, record: logging.LogRecord) -> None:
        self._send(Said(record.levelno, _tail(record.getMessage()), self._worker))


def main(post: Post, payload: bytes, terms: Terms, events: Connection, control: Connection, level: int) -> None:
    """The process's whole life. Exit codes: 0, 130/143 as a signal asked, OVER_LIMIT, DEVICES_LOST."""
    _alone()
    with suppress(OSError):  # stdout is the parent's answer: what loading the objective prints is not in it
        os.dup2(2, 1)
    tolerant()
    send = Sender(events)
    log.addHandler(_Forward(send, post.number))
    log.setLevel(level)
    log.propagate = False
    try:
        holds = post.lease.take_over() if post.lease is not None else []
    except DibsError as wrong:
        send.last(Last(0, 0, "held", error=wrong))
        return
    if holds is None:
        sys.exit(DEVICES_LOST)
    try:
        study, objective = pickle.loads(payload)
    except Exception as wrong:
        send.last(
            Unusable(
                f"a worker process cannot load the objective ({type(wrong).__name__}: {wrong}): define it at the top "
                "of a module, outside `if __name__ == '__main__':`"
            )
        )
        return
    tally = Tally(before=post.before)
    error: BaseException | None = None
    code = 0
    try:
        session = Session(study.store.machine.clock, grace_s=terms.grace_s, control=control.fileno(), on_event=send)
        if terms.limits.watched:
            session.watching = Watchdog(terms.limits, session.clock, session.end_at_once)
        with session:
            for hold in holds:
                session.open(hold)
            send(Ready(post.number, os.getpid()))
            work(study, objective, terms, session, tally, worker=post.number, hope=lambda: session.hope)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as wanted:
        code = wanted.code if isinstance(wanted.code, int) else 1
    except Exception as wrong:
        error = _portable(wrong)
    send.last(Last(tally.ran, tally.failed, tally.why, tally.gave_up, _tail(tally.trace), error))
    sys.exit(code)


def _alone() -> None:
    """Away from the terminal's Ctrl-C; one that came while this process started was the parent's."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _portable(error: Exception) -> BaseException:
    """The error as the parent can raise it."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:
        again = None
    if isinstance(again, DibsError):
        return again
    return DibsError("a worker process failed:\n\n" + _tail("".join(traceback.format_exception(error))))
