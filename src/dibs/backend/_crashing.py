"""A wrapper that dies at the N-th verb: the instruction-by-instruction proof that any process may be killed.

``Killed`` is no Exception, so no ordinary handler stops it, and once dead every verb raises it again:
what a ``finally`` of the dead process still tries has no effect, as after a SIGKILL.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from dibs.backend._base import Backend
from dibs.backend._wrapper import WrapperBackend
from dibs.errors import UsageError

__all__ = ["CrashingBackend", "Killed"]

T = TypeVar("T")


class Killed(BaseException):
    """The process is dead. Only the test that killed it may catch this."""


class CrashingBackend(WrapperBackend):
    """Raises Killed at verb number ``crash_at`` (from 1; None: never) and at every one thereafter.

    ``when``: ``"before"`` the verb has done anything, or ``"after"`` it was performed and before its answer is seen.
    ``calls`` counts the verbs that were reached alive, the deadly one included; run once without a crash to learn N.
    """

    def __init__(
        self, inner: Backend, crash_at: int | None = None, when: Literal["before", "after"] = "before"
    ) -> None:
        super().__init__(inner)
        if when not in ("before", "after"):
            raise UsageError(f"when={when!r}: 'before' or 'after'")
        self.crash_at, self.when = crash_at, when
        self.calls = 0
        self.dead = False
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        with self._lock:
            if self.dead:
                raise Killed(f"dead before {verb} {key}")
            self.calls += 1
            deadly = self.calls == self.crash_at
            self.dead = deadly
        if deadly and self.when == "before":
            raise Killed(f"killed before {verb} {key}")
        answer = call()
        if deadly:
            raise Killed(f"killed after {verb} {key}")
        return answer
