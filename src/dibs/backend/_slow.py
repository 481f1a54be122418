"""A wrapper that waits before every verb: a bucket's round trip, or a loaded server, without either."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dibs.backend._base import Backend
from dibs.backend._wrapper import WrapperBackend

__all__ = ["SlowBackend"]

T = TypeVar("T")


class SlowBackend(WrapperBackend):
    """``sleep(delay_s)`` before each verb; ``sleep`` is the caller's (a clock's, a simulator's, a list's append)."""

    def __init__(self, inner: Backend, delay_s: float, sleep: Callable[[float], object]) -> None:
        super().__init__(inner)
        self.delay_s = delay_s
        self._sleep = sleep

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        self._sleep(self.delay_s)
        return call()
