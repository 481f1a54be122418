"""One per process while a loop over trials runs: the thread that beats, the signal handlers, the wake-up pipe.

The thread learns of signals through the wake-up pipe, so it can act even while the main thread is deep in C
code. Handlers live only while a session of the main thread does, and are put back. A forked child inherits none
of it: neither thread nor handlers, nor the pipe, through which its own signals would reach the parent.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import select
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

__all__ = ["keeper"]

log = logging.getLogger("dibs")
_HANGUP = getattr(signal, "SIGHUP", None)  # Windows has none
_SIGNALS = (signal.SIGTERM, signal.SIGINT, *(() if _HANGUP is None else (_HANGUP,)))
_QUIT = b"\0"  # no signal has this number
_NEWS = b"\xff"
LOOK_S = 1.0  # so often the thread looks by itself: waking it for every new trial would cost more than the trial
_JOIN_S = 5.0  # a thread that hangs in a dead mount is left behind, with its pipe


class Watched(Protocol):
    """What the keeper needs of a session."""

    in_main: bool
    control: int | None

    def signalled(self, number: int, count: int) -> None: ...
    def commanded(self, data: bytes) -> None: ...
    def pause_s(self) -> float: ...
    def work(self) -> None: ...
    def waits(self) -> int: ...
    def pending(self) -> BaseException | None: ...
    def leave_open_trials(self) -> None: ...


class Keeper:
    """``enter`` and ``leave`` sessions; everything else happens by itself."""

    def __init__(self) -> None:
        self._masks = threading.local()  # each thread's, while it forks
        self._clear()

    def _clear(self) -> None:
        self._sessions: list[Watched] = []
        self._lock = threading.Lock()  # never taken by a handler
        self._old: dict[int, Any] = {}
        self._theirs: frozenset[int] = frozenset()  # signals that were somebody else's when we came
        self._old_fd = -1
        self._thread: threading.Thread | None = None
        self._read = self._write = -1
        self._interrupts = self._heard = 0  # Ctrl-C as the handler counts them, and as the thread does
        self._late = 0  # a signal whose error waits until a fork is through

    def enter(self, session: Watched) -> None:
        """Beat and listen for this session from now on; handlers only if this is the main thread."""
        with self._lock:
            if self._thread is None:
                self._start()
            if not self._sessions:
                self._drain()
            if session.in_main and not self._old:
                self._install()
            self._sessions.append(session)
        self.poke()

    def _drain(self) -> None:
        """What was heard before anybody was here is nobody's: a signal of then must not end a loop of now."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 512):
                continue

    def leave(self, session: Watched) -> None:
        """The last one of the main thread puts the handlers back; the last one of all ends the thread."""
        with self._lock:
            if session not in self._sessions:
                return
            self._sessions.remove(session)
            here = threading.current_thread() is threading.main_thread()
            if here and not any(other.in_main for other in self._sessions):
                self._restore()
            stop = self._stop() if not self._sessions and not self._old else None
        if stop is not None:
            stop()  # without the lock, which the thread may want before it ends

    def has(self, session: Watched) -> bool:
        """Whether it is entered, and not left."""
        with self._lock:
            return session in self._sessions

    def poke(self) -> None:
        """Let the thread look again."""
        if self._write >= 0:
            try:
                os.write(self._write, _NEWS)
            except BlockingIOError:
                pass  # full of news already

    # the thread and its pipe

    def _start(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._thread = threading.Thread(target=self._run, args=(self._read,), name="dibs-beats", daemon=True)
        self._thread.start()

    def _stop(self) -> Callable[[], None] | None:
        """What is left to do once others may go on."""
        thread, self._thread = self._thread, None
        read, write, self._read, self._write = self._read, self._write, -1, -1
        if thread is None or thread is threading.current_thread():
            return None

        def stop() -> None:
            os.write(write, _QUIT)
            thread.join(_JOIN_S)
            if not thread.is_alive():
                os.close(read)
                os.close(write)

        return stop

    def _run(self, read: int) -> None:  # as it was when started: the last session may be gone before this runs
        deaf: set[int] = set()  # controls that have ended
        while True:
            sessions = tuple(self._sessions)
            controls = {s.control: s for s in sessions if s.control is not None and s.control not in deaf}
            pause_s = min((s.pause_s() for s in sessions), default=3600.0)
            pause_s = min(pause_s, LOOK_S) if sessions else pause_s
            poll = select.poll()  # select() takes no descriptor from 1024 on
            for fd in (read, *controls):
                poll.register(fd, select.POLLIN)
            ready = {fd for fd, _ in poll.poll(1000 * pause_s)}
            if read in ready:
                here = tuple(self._sessions)  # who comes after this was not meant
                news = self._news(read)
                if 0 in news:
                    return
                signals = bytes(byte for byte in news if byte != _NEWS[0])
                if signals and self._old_fd >= 0:
                    self._pass_on(signals)
                self._heard += signals.count(signal.SIGINT)
                for number in set(signals) & set(_SIGNALS) - self._theirs:
                    self._tell(number, self._heard, here)
            for fd in controls.keys() & ready:
                try:
                    data = os.read(fd, 64)
                except OSError:  # the objective has closed it, as programs do that close all they did not open
                    deaf.add(fd)
                    continue
                if not data:
                    deaf.add(fd)
                controls[fd].commanded(data)
            if self._late:
                number, self._late = self._late, 0
                self.kick(number)
            for session in tuple(self._sessions):
                try:
                    session.work()
                except Exception:  # one session's trouble must not end the others' beats
                    log.exception("a beat went wrong")

    def _news(self, read: int) -> bytes:
        try:
            return os.read(read, 512)
        except BlockingIOError:  # a session was entered meanwhile, and has drained what was ready
            return b""

    def _tell(self, number: int, count: int, sessions: tuple[Watched, ...]) -> None:
        for session in sessions:
            session.signalled(number, count)

    def _pass_on(self, signals: bytes) -> None:
        """Whoever listened before us (an event loop) still hears."""
        try:
            os.write(self._old_fd, signals)
        except OSError as wrong:
            log.debug("a signal could not be passed on: %s", wrong)

    # handlers

    def _install(self) -> None:
        self._interrupts = self._heard = 0
        self._theirs = frozenset(number for number in _SIGNALS if _is_anothers(number))
        for number in _SIGNALS:
            if number not in self._theirs:
                self._old[number] = signal.signal(number, self._on_signal)
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def _restore(self) -> None:
        for number, old in self._old.items():
            if signal.getsignal(number) == self._on_signal:  # else somebody has put up their own since
                signal.signal(number, old if old is not None else signal.SIG_DFL)
        if self._old:
            try:
                theirs = signal.set_wakeup_fd(self._old_fd)
            except (OSError, ValueError):  # they have closed it since
                theirs = signal.set_wakeup_fd(-1)
            if theirs not in (self._write, -1):
                signal.set_wakeup_fd(theirs)
        self._old, self._old_fd = {}, -1

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """In the main thread, between two bytecodes; the thread may have seen the signal already."""
        sessions = [session for session in self._sessions if session.in_main]
        if not sessions:  # the last one was left by another thread, which cannot put handlers back
            self._restore()
            signal.raise_signal(number)
            return
        if number == signal.SIGINT:
            self._interrupts += 1
        self._tell(number, self._interrupts, tuple(self._sessions))
        if getattr(self._masks, "old", None) is not None:  # what a hook of fork raises nobody gets
            self._late = sessions[-1].waits()
            self.poke()
            return
        error = sessions[-1].pending()
        if error is not None:
            raise error

    def kick(self, number: int) -> bool:
        """Have the main thread run the handler now, even if it sleeps; False if the handler is not ours."""
        ident = threading.main_thread().ident
        with self._lock:  # who puts the old handlers back holds it, too: they must not get this signal
            if ident is None or signal.getsignal(number) != self._on_signal:
                return False
            signal.pthread_kill(ident, number)
            return True

    # the ends of a process

    def forking(self) -> None:
        """A signal that the child gets before it has put the handlers back would go through the pipe to the parent."""
        self._masks.old = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS) if self._old else None

    def has_forked(self) -> None:
        """In the parent, and last in the child: signals come again."""
        old = getattr(self._masks, "old", None)
        if old is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)
            self._masks.old = None

    def forked(self) -> None:
        """In the child: the trials, the thread and the pipe are the parent's."""
        sessions, read, write = self._sessions, self._read, self._write
        try:
            self._restore()
            self._clear()
            for fd in (read, write):
                if fd >= 0:
                    with contextlib.suppress(OSError):  # closed by the program, as by one that closes all
                        os.close(fd)
            for session in sessions:
                session.control = None
        finally:
            self.has_forked()

    def at_exit(self) -> None:
        """The program ends with a loop still open: what it holds is interrupted."""
        for session in reversed(tuple(self._sessions)):
            session.leave_open_trials()
            self.leave(session)


def _is_anothers(number: int) -> bool:
    """Started in the background, Ctrl-C is for somebody else; under nohup, or in a daemon that reloads on it, so is SIGHUP."""
    old = signal.getsignal(number)
    return (number == signal.SIGINT and old is signal.SIG_IGN) or (number == _HANGUP and old is not signal.SIG_DFL)


keeper = Keeper()
atexit.register(keeper.at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=keeper.forking, after_in_parent=keeper.has_forked, after_in_child=keeper.forked)
