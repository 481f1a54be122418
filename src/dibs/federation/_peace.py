"""Who averages and is told to end says so in its attempt first, so that the next one need not find out that it is dead."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["ending_in_peace"]

_averages: set[int] = set()  # the process for which the handler was set: not one that was forked from it meanwhile

_NAMES = ("SIGTERM", "SIGHUP")  # a scheduler's, and a terminal's that is gone; Windows has no SIGHUP


@contextmanager
def ending_in_peace() -> Iterator[None]:
    """Within it these signals raise SystemExit(128 + number) in the main thread; elsewhere they would end it without a word.

    Handlers that somebody has set stay, and so does ``nohup``. In another thread than the main one it does nothing.
    """
    ours: list[int] = []
    free = (signal.SIG_DFL,) if os.getpid() in _averages else (signal.SIG_DFL, _end)  # a parent's that averaged
    if threading.current_thread() is threading.main_thread():
        for name in _NAMES:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) in free:
                _averages.add(os.getpid())
                signal.signal(number, _end)
                ours.append(number)
    try:
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) is _end:
                signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    if os.getpid() not in _averages:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    raise SystemExit(128 + number)
