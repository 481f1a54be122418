"""The calls by which a spool changes its folder, with whatever can happen at one of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

CHANGES = ("open", "write", "close", "replace", "unlink")


class Killed(BaseException):
    """A process is gone: nothing of it is executed any more, no handler and no ``finally``."""


class Disk:
    """Stands in for ``os`` in ``dibs.sink._spool``; the files are real.

    ``before(name, count)`` is called before each change and ``after`` behind it, and may raise; ``half``: the write of that number writes half and
    then fails; ``lost``: the replace of that number is done and then fails; ``late``: after that call comes a Ctrl-C.
    """

    def __init__(self) -> None:
        self.count = 0
        self.before: Callable[[str, int], None] = lambda name, count: None
        self.after = self.before
        self.half = self.lost = self.late = -1
        self.dead = False
        self._fds: set[int] = set()

    def begin(self) -> None:
        """Another process, or another trial: calls are counted anew."""
        self.count, self.dead = 0, False
        self.half = self.lost = self.late = -1
        self.before = self.after = lambda name, count: None

    def kill(self) -> None:
        """What the kernel does: descriptors are closed, and nothing else."""
        self.dead = True
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        raise Killed

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return (lambda *args, **kwargs: self._call(name, real, args, kwargs)) if name in CHANGES else real

    def _call(self, name: str, real: Any, args: Any, kwargs: Any) -> Any:
        if self.dead:
            raise Killed
        self.count += 1
        self.before(name, self.count)
        if name == "write" and self.count == self.half:
            real(args[0], args[1][: len(args[1]) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        result = real(*args, **kwargs)
        if name == "open":
            self._fds.add(result)
        elif name == "close":
            self._fds.discard(args[0])
        elif name == "replace" and self.count == self.lost:
            raise OSError(errno.EIO, "the answer was lost")
        if self.count == self.late:
            raise KeyboardInterrupt
        self.after(name, self.count)
        return result
