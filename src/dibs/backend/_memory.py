"""A store in this process's memory that plays a folder or a bucket; for tests and simulators.

As a folder it has temporaries: rename consumes one, link leaves it, and a try without it changes nothing.
As a bucket it has etags: a replace needs the right one, and a try that lands after ``discard`` still counts.
"""

from __future__ import annotations

import builtins
import itertools
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from dibs._clock import SystemClock
from dibs.backend._base import Backend, Draft, Entry, Object, Outcome, Traits
from dibs.backend._names import TEMPS, check_key, check_prefix
from dibs.errors import StoreError, UsageError

__all__ = ["MemoryBackend"]

_CHUNK = 1 << 20


class MemoryBackend(Backend):
    """Bytes under keys in one process, by the same contract as the real ones.

    ``conditional_replace``: play a bucket (put-if-absent, If-Match, no touch) instead of a folder.
    ``clock``: the store's time in seconds, for a simulator; the system's by default. ``tick_s``: how coarse the
    stamps of its folders are (0: every change gives another).
    """

    def __init__(
        self, conditional_replace: bool = False, clock: Callable[[], float] | None = None, tick_s: float = 0.0
    ) -> None:
        bucket = conditional_replace
        self.traits = Traits(
            "memory", "put" if bucket else "link", bucket, touch=not bucket, listing_sorted=True, stamps=not bucket
        )
        self._clock = clock or SystemClock().wall
        self._lock = threading.Lock()
        self._objects: dict[str, Object] = {}
        self._entries: dict[str, Entry] = {}  # the objects as a listing tells them, so that it only collects
        self._keys: builtins.list[str] = []  # sorted
        self._temps: dict[str, bytes] = {}
        self._stamps: dict[str, str] = {}
        self._tick_s = tick_s
        self._serial = itertools.count(1)

    def __reduce__(self) -> NoReturn:
        raise StoreError("a memory store lives in one process and cannot be sent to another: use a folder or a bucket")

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        whole = data if isinstance(data, bytes) else b"".join(data)
        with self._lock:
            temp = f"{TEMPS}{next(self._serial):016x}"
            self._temps[temp] = whole
        return Draft(data if isinstance(data, bytes) else None, temp, len(whole), durable)

    def create(self, key: str, draft: Draft) -> Outcome:
        check_key(key)
        with self._lock:
            data = self._staged(draft)
            draft.spent = draft.spent or data is None
            if data is None or key in self._objects:
                return Outcome.LOST
            self._put(key, data)
            return Outcome.WON

    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        check_key(key)
        conditional = self.traits.conditional_replace
        if conditional and version is None:
            raise UsageError(f"replacing {key} on a bucket needs the version that was read")
        with self._lock:
            data = self._staged(draft)
            if data is None:
                return Outcome.LOST
            if conditional:
                held = self._objects.get(key)
                if held is None or held.version != version:
                    return Outcome.LOST
            else:
                del self._temps[draft.temp]
                draft.spent = True
            self._put(key, data)
            return Outcome.WON

    def put(self, key: str, draft: Draft) -> Outcome:
        if not self.traits.conditional_replace:
            return self.replace(key, draft, None)
        check_key(key)
        with self._lock:
            data = self._staged(draft)
            if data is None:
                return Outcome.LOST
            self._put(key, data)
            return Outcome.WON

    def discard(self, draft: Draft) -> bool:
        with self._lock:
            self._temps.pop(draft.temp, None)
            draft.spent = True
        return True

    def read(self, key: str) -> Object | None:
        check_key(key)
        with self._lock:
            return self._objects.get(key)

    def stream(self, key: str, start: int = 0) -> Iterator[bytes] | None:
        held = self.read(key)
        if held is None:
            return None
        return iter([held.data[i : i + _CHUNK] for i in range(start, len(held.data), _CHUNK)])

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        check_prefix(prefix)
        with self._lock:
            keys = self._below(prefix, after)
            if details:
                return iter([self._entries[key] for key in keys])
        return iter([Entry(key, "", 0.0, -1) for key in keys])

    def folders(self, prefix: str) -> builtins.list[str]:
        check_prefix(prefix)
        return sorted(name for name, folder in self._segments(prefix) if folder)

    def names(self, prefix: str) -> builtins.list[str]:
        check_prefix(prefix)
        return [name for name, _ in self._segments(prefix)]

    def stamp(self, prefix: str) -> str | None:
        if self.traits.conditional_replace:
            return None
        with self._lock:
            return self._stamps.get(prefix, "")

    def touch(self, key: str) -> bool:
        check_key(key)
        if not self.traits.touch:
            raise UsageError("a bucket cannot touch: rewrite the record (traits.touch is False)")
        with self._lock:
            held = self._objects.get(key)
            if held is not None:
                self._set(key, held.data)
            return held is not None

    def delete(self, key: str) -> bool:
        check_key(key)
        with self._lock:
            if self._objects.pop(key, None) is None:
                return False
            del self._entries[key]
            del self._keys[bisect_left(self._keys, key)]
            self._mark(key)
            return True

    def now(self) -> float:
        return self._clock()

    def _staged(self, draft: Draft) -> bytes | None:
        """The bytes a try can still write: a folder's temporary, or what a bucket's request carries."""
        if self.traits.conditional_replace and draft.data is not None:
            return draft.data
        return self._temps.get(draft.temp)

    def _put(self, key: str, data: bytes) -> None:
        if key not in self._objects:
            insort(self._keys, key)
        self._mark(key)
        self._set(key, data)

    def _set(self, key: str, data: bytes) -> None:
        held = self._objects[key] = Object(data, f"{next(self._serial):x}", self._clock())
        self._entries[key] = Entry(key, held.version, held.modified, len(data))

    def _mark(self, key: str) -> None:
        """A name came, went or was rewritten: its folder's stamp moves, and those above if it is their first."""
        tick = self._tick_s
        stamp = f"{self._clock() // tick * tick}" if tick else f"{next(self._serial):x}"
        while "/" in key:
            folder = key[: key.rindex("/") + 1]
            known = folder in self._stamps
            self._stamps[folder] = stamp
            if known:
                return
            key = folder[:-1]

    def _below(self, prefix: str, after: str) -> builtins.list[str]:
        first = bisect_right(self._keys, after) if after >= prefix else bisect_left(self._keys, prefix)
        return self._keys[first : bisect_left(self._keys, _behind(prefix))]

    def _segments(self, prefix: str) -> builtins.list[tuple[str, bool]]:
        """The next segments behind the prefix, and whether each is a folder; one step each, however much is in it."""
        found = []
        with self._lock:
            at, end = bisect_left(self._keys, prefix), bisect_left(self._keys, _behind(prefix))
            while at < end:
                name, slash, _ = self._keys[at][len(prefix) :].partition("/")
                found.append((name, bool(slash)))
                at = bisect_left(self._keys, _behind(f"{prefix}{name}/"), at) if slash else at + 1
        return found


def _behind(prefix: str) -> str:
    """The first text that sorts behind everything that starts with the prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\U0010ffff"
