"""A wrapper that asks again: what failed on its way and changes nothing (or nothing twice) is tried for a while.

The atomic verbs are left alone: what became of them is for the settling module to find out. Pauses grow and jitter, so
that a thousand workers that were told SlowDown do not come back together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from dibs._clock import Clock
from dibs.backend._base import Backend, Entry
from dibs.backend._wrapper import WrapperBackend
from dibs.errors import RecordError, StoreError

__all__ = ["RetryingBackend"]

T = TypeVar("T")
_ATOMIC = ("create", "replace")
_FIRST_S, _LONGEST_S = 0.05, 5.0


class RetryingBackend(WrapperBackend):
    """Repeats every verb but create and replace on a StoreError that may pass, for ``patience_s`` seconds.

    A stream that breaks goes on where it was; a listing that does is asked anew, and tells what it had not.
    """

    def __init__(self, inner: Backend, clock: Clock, entropy: Callable[[int], bytes], patience_s: float = 30.0) -> None:
        super().__init__(inner)
        self.clock, self.entropy, self.patience_s = clock, entropy, patience_s

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.inner, self.patience_s)

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        return call() if verb in _ATOMIC else self._insist(call, self._pauses())

    def stream(self, key: str, start: int = 0) -> Iterator[bytes] | None:
        chunks = super().stream(key, start)
        return None if chunks is None else self._streamed(key, start, chunks)

    def _streamed(self, key: str, start: int, chunks: Iterator[bytes] | None) -> Iterator[bytes]:
        pauses = self._pauses()
        while True:
            try:
                if chunks is None:
                    chunks = self.inner.stream(key, start)
                    if chunks is None:
                        raise StoreError(f"{key} went away while it was read", key=key)
                for chunk in chunks:
                    yield chunk
                    start += len(chunk)
                    pauses = self._pauses()  # it moves: patience is for standing still
                return
            except StoreError as wrong:
                pauses(wrong)
                chunks = None

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        pauses = self._pauses()
        told: set[str] = set()  # where a listing stands cannot be said by a key: not every server sorts as S3 does
        while True:
            try:
                for entry in self.inner.list(prefix, after, details=details):
                    if entry.key not in told:
                        told.add(entry.key)
                        yield entry
                        pauses = self._pauses()
                return
            except StoreError as wrong:
                pauses(wrong)

    def _insist(self, call: Callable[[], T], pauses: Callable[[StoreError], None]) -> T:
        while True:
            try:
                return call()
            except StoreError as wrong:
                pauses(wrong)

    def _pauses(self) -> Callable[[StoreError], None]:
        """Called with what went wrong: sleeps, or raises it if it will not pass or patience is over."""
        deadline: float | None = None
        pause_s = _FIRST_S

        def pause(wrong: StoreError) -> None:
            nonlocal deadline, pause_s
            if isinstance(wrong, RecordError) or not wrong.passing:
                raise wrong
            now = self.clock.monotonic()
            deadline = deadline if deadline is not None else now + self.patience_s
            if now >= deadline:
                raise wrong
            self.clock.sleep(pause_s * (0.5 + self.entropy(1)[0] / 256))
            pause_s = min(_LONGEST_S, 2 * pause_s)

        return pause


def _unpickle(inner: Backend, patience_s: float) -> RetryingBackend:
    import os

    from dibs._clock import SystemClock

    return RetryingBackend(inner, SystemClock(), os.urandom, patience_s)
