"""Time as an argument: the only module that reads a clock or sleeps.

Durations come from ``monotonic`` and ages from the store's own stamps; ``wall`` is for people to
read (the ``..._at`` fields) and decides nothing, because machines' clocks disagree.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

__all__ = ["Clock", "SystemClock", "iso"]


class Clock(Protocol):
    """What dibs needs to know of time; a simulator brings its own."""

    def wall(self) -> float:
        """Seconds since the epoch by this machine's clock."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def iso(wall: float) -> str:
    """ISO 8601 in UTC with milliseconds: ``2026-11-29T12:00:00.123Z``."""
    millis = int(wall * 1000)
    return f"{_second(millis // 1000)}.{millis % 1000:03d}Z"


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
