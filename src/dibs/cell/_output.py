"""What a program writes, on its way into its log: the lines of its stdout that say a score, and what is kept of a curve.

Nothing here waits for a disk that is full or holds what a program pours out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from dibs.errors import StoreError

from ._told import Lines, Thin, Told, told_by, told_by_file

__all__ = ["Output"]

_RESULT_BYTES = 1 << 20
_OPEN = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Output:
    """One program's. ``progress``: called with the steps that are kept; ``lost``: bytes that the log did not take."""

    def __init__(self, log: Path, progress: Callable[[Told], bool]) -> None:
        """Opens the log, which is there from now on. Raises StoreError."""
        try:
            self._log = os.open(log, _OPEN, 0o666)
        except OSError as wrong:
            raise StoreError(f"the log {log} cannot be written: {wrong.strerror or wrong}") from wrong
        self._progress = progress
        self._lines, self._thin = Lines(), Thin()
        self._late: Told | None = None  # the last step, where it was not passed on
        self.told: Told | None = None
        self.lost = 0

    def log(self, data: bytes) -> None:
        """Into the log."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._log, view) :]
        except OSError:  # a full disk: what cannot be kept must not stop the program
            self.lost += len(view)

    def stdout(self, data: bytes) -> bool:
        """Into the log and through the lines; whether somebody answered a step with True."""
        self.log(data)
        answers = [self._line(line) for line in self._lines.feed(data)]
        return any(answers)

    def close(self) -> None:
        """All has been written: the line without an end, and the step that was not passed on, count too."""
        for line in self._lines.close():
            self._line(line)
        if self._late is not None:
            self._progress(self._late)

    def release(self) -> None:
        """Let go of the log."""
        os.close(self._log)

    def result(self, file: Path) -> Told | None:
        """What the result file says, else the last line that said something."""
        try:
            fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            return self.told
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return Told(wrong=f"{file.name} is no file")
        with os.fdopen(fd, "rb") as opened:
            data = opened.read(_RESULT_BYTES)
        return told_by_file(data) if data.strip() else self.told

    def _line(self, line: bytes) -> bool:
        told = told_by(line)
        if told is None:
            return False
        self.told, self._late = told, None
        if told.step is None or told.score is None or told.wrong:
            return False
        if not self._thin.keeps():
            self._late = told
            return False
        return self._progress(told)
