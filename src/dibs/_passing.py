"""Whose exception it is: a step's own, for which it is answered, or that of somebody who interrupts it.

Limits on time are handlers of a signal that raise, in the middle of whatever runs: pickling, a write, a repr. Their class says
nothing (TimeoutError is an OSError), so the traceback is asked: a handler is the one function that is called with its caller's frame.
Some forget that frame at once (``del frame``), so what is installed as a handler is one, too.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from inspect import CO_VARARGS
from types import CodeType, FrameType
from typing import Any

__all__ = ["interrupts", "is_foreign"]


def interrupts(error: BaseException) -> bool:
    """Whether a signal handler raised it, while something else was at work."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    if any(_is_handler(frame) for frame in frames):
        return True
    inner = [frame.f_code for frame in frames[1:]]  # who asks is the first, and interrupts nobody
    return bool(inner) and any(code in inner for code in _installed())


def is_foreign(error: Exception) -> bool:
    """Whether a step that runs nobody's code but ours cannot have raised it itself.

    Exceptions that another thread puts into this one have no frame of their own; but they have a class of their own, and
    what our steps raise is Python's.
    """
    return interrupts(error) or type(error).__module__ != "builtins"


def _is_handler(frame: FrameType) -> bool:
    code, caller = frame.f_code, frame.f_back
    if caller is None:
        return False
    given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & CO_VARARGS:
        more = frame.f_locals.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        given += more if isinstance(more, tuple) else ()
    return any(each is caller for each in given)


def _installed() -> Iterator[CodeType]:
    """What runs first when a signal comes, of those that somebody handles."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        if not callable(handler):
            continue
        while hasattr(handler, "func"):  # functools.partial
            handler = handler.func
        for function in (handler, getattr(handler, "__func__", None), getattr(handler.__call__, "__func__", None)):
            code = getattr(function, "__code__", None)
            if isinstance(code, CodeType):
                yield code
