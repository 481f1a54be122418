"""A wrapper that counts verbs and bytes: what a refresh, a claim or a report costs, as a number in a test."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from dibs.backend._base import Backend, Draft, Object
from dibs.backend._wrapper import WrapperBackend

__all__ = ["CountingBackend"]

T = TypeVar("T")


class CountingBackend(WrapperBackend):
    """``counts``: calls per verb; ``bytes``: bytes staged, read and streamed, per verb. Every thread's are in them."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.counts: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Start again from nothing."""
        with self._lock:
            self.counts.clear()
            self.bytes.clear()

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        with self._lock:
            self.counts[verb] += 1
        return call()

    def _carried(self, verb: str, size: int) -> None:
        with self._lock:
            self.bytes[verb] += size

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        draft = super().stage(data, durable=durable)
        self._carried("stage", draft.size)
        return draft

    def read(self, key: str) -> Object | None:
        held = super().read(key)
        self._carried("read", len(held.data) if held else 0)
        return held

    def stream(self, key: str, start: int = 0) -> Iterator[bytes] | None:
        chunks = super().stream(key, start)
        return None if chunks is None else self._counted(chunks)

    def _counted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._carried("stream", len(chunk))
            yield chunk
