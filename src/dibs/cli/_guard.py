"""Exceptions become exit codes and one line; what nobody foresaw becomes a traceback and code 70.

A user's mistake never shows a traceback, unless ``DIBS_DEBUG`` is set.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from dibs.errors import DibsError

from ._text import out

__all__ = ["BUG", "NO_ROOM", "PIPE", "guarded", "log_to", "set_level"]

BUG = 70  # EX_SOFTWARE of sysexits.h
NO_ROOM = 74  # EX_IOERR: stdout takes no more
PIPE = 141  # 128 + SIGPIPE: the reader of our output went away
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
log = logging.getLogger("dibs")


def guarded(call: Callable[[], Any]) -> int:
    """Do it and return the exit code: what it returned if that is a number, else 0, or the error's."""
    _open_streams()
    try:
        with _logging():
            code = call()
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.ClickException as wrong:
        _debug()
        out(f"dibs: {wrong.format_message()}{_hint(wrong)}", err=True)
        return wrong.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 130
    except DibsError as wrong:
        _debug()
        out(f"dibs: {wrong}", err=True)
        return wrong.exit_code
    except BrokenPipeError:
        _mute()
        return PIPE
    except Exception as wrong:
        if isinstance(wrong, OSError) and wrong.errno in _FULL:
            _mute()
            out(f"dibs: the answer cannot be written: {wrong.strerror}", err=True)
            return NO_ROOM
        out(traceback.format_exc(), err=True)
        out("dibs: this is a bug in dibs, not in what you typed: please report it with the lines above", err=True)
        return BUG


def _open_streams() -> None:
    """A closed stream (``>&-``) takes everything, and a terminal without UTF-8 still gets its answer."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for the process's life
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _mute() -> None:
    """What is left in stdout's buffer goes nowhere, so that the flush at exit is quiet too."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _debug() -> None:
    if os.environ.get("DIBS_DEBUG"):
        out(traceback.format_exc(), err=True)


def _hint(wrong: click.ClickException) -> str:
    ctx = getattr(wrong, "ctx", None)
    return f" (see {ctx.command_path} --help)" if ctx is not None else ""


class _Handler(logging.Handler):
    """Log lines on stderr, whatever stderr is at that moment, or to whoever draws there."""

    def __init__(self) -> None:
        super().__init__()
        self.drawing: Callable[[int, str], None] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        text = f"dibs: {self.format(record)}"
        try:
            if self.drawing is not None:
                self.drawing(record.levelno, text)
            else:
                out(text, err=True)
                sys.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody is listening any more


@contextmanager
def _logging() -> Iterator[None]:
    """The ``dibs`` logger on stderr while a command runs, from warnings up; put back afterwards."""
    handler, before = _Handler(), (log.level, log.propagate)
    log.addHandler(handler)
    log.setLevel(logging.WARNING)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]


def set_level(level: int, *, only_louder: bool = False) -> None:
    """What of the log the command that runs shows. ``only_louder``: leave a more talkative level as it is."""
    if not (only_louder and log.level < level):
        log.setLevel(level)


@contextmanager
def log_to(drawing: Callable[[int, str], None]) -> Iterator[None]:
    """Hand the log's lines to somebody who draws on stderr and knows where a line may go."""
    handlers = [handler for handler in log.handlers if isinstance(handler, _Handler)]
    for handler in handlers:
        handler.drawing = drawing
    try:
        yield
    finally:
        for handler in handlers:
            handler.drawing = None
