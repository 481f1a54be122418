"""Whose exception it is: a step's own, for which it is answered, or that of somebody who interrupts it. Pure.

Limits on time are handlers of a signal that raise, in the middle of whatever runs: pickling, a write, a repr. Their class says
nothing (TimeoutError is an OSError), so the traceback is asked: a handler is the one function that is called with its caller's frame.
"""

from __future__ import annotations

from inspect import CO_VARARGS
from types import FrameType

__all__ = ["interrupts", "is_foreign"]


def interrupts(error: BaseException) -> bool:
    """Whether a signal handler raised it, while something else was at work."""
    trace = error.__traceback__
    while trace is not None:
        if _is_handler(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


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
