"""The simulated store as it really is, shared by everybody: a memory backend that writes down every change.

It remembers what its names held a while ago, so that a client's caches can be behind.
"""

from __future__ import annotations

import builtins
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dibs.backend import Backend, Entry, MemoryBackend, Object

from ._simulator_machine import EPOCH
from ._simulator_world import World

__all__ = ["Truth", "Write"]


@dataclass(frozen=True, slots=True)
class Write:
    """One change of the truth, in order. ``data`` None: the name was removed."""

    at: float
    who: str
    key: str
    verb: str
    data: bytes | None
    before: bytes | None
    late: bool


class Truth(MemoryBackend):
    """What is really there. ``kind``: "link" and "mkdir" play a folder, "put" a bucket."""

    def __init__(self, world: World, kind: str, tick_s: float, told: Callable[[Write], None]) -> None:
        super().__init__(kind == "put", lambda: EPOCH + world.now + self.stamp_skew_s, tick_s)
        self.traits = replace(self.traits, name="simulated", claim=kind)
        self.world, self.kind = world, kind
        self.stamp_skew_s = 0.0  # of the client whose clock stamps, where it does
        self.author = ("", "", "", False)  # process, host, verb, late
        self.born: dict[str, float] = {}
        self.written_by: dict[str, str] = {}  # key -> host
        self.older: defaultdict[str, deque[tuple[float, Object]]] = defaultdict(lambda: deque(maxlen=4))
        self._moved: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)  # folder -> its stamps since when
        self._claims: dict[str, Object] = {}  # mkdir: claimed names whose record is not there (yet)
        self._told = told

    def _put(self, key: str, data: bytes) -> None:
        before = self._objects.get(key)
        super()._put(key, data)
        who, host, verb, late = self.author
        if before is None:
            self.born.setdefault(key, self.world.now)
        elif before.data != data:
            self.older[key].append((self.world.now, before))
        self.written_by[key] = host
        if before is None or before.data != data:
            was = before.data if before is not None else None
            self._told(Write(self.world.now, who, key, verb, data, was, late))

    def mkdir(self, key: str) -> bool:
        """Claim by mkdir: False if the directory (or the record) is there."""
        if key in self._claims or key in self._objects:
            return False
        self._claims[key] = Object(b"", f"d{next(self._serial):x}", self._clock())
        self._mark(key)
        self.born.setdefault(key, self.world.now)
        self.written_by[key] = self.author[1]
        return True

    def _mark(self, key: str) -> None:
        super()._mark(key)
        folder = key
        while "/" in folder:
            folder = folder[: folder.rstrip("/").rfind("/") + 1]
            past, stamp = self._moved[folder], self._stamps.get(folder, "")
            if folder and (not past or past[-1][1] != stamp):
                past.append((self.world.now, stamp))

    def stamp_at(self, prefix: str, at: float) -> str | None:
        """The folder's stamp as it was at an earlier time."""
        if self.traits.conditional_replace:
            return None
        return next((stamp for since, stamp in reversed(self._moved.get(prefix, [])) if since <= at), "")

    def read(self, key: str) -> Object | None:
        return self._objects.get(key) or self._claims.get(key)

    def names(self, prefix: str) -> builtins.list[str]:
        return Backend.names(self, prefix)  # out of the listing below, which has the bare claims

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        entries = builtins.list(super().list(prefix, after, details=details))
        bare = [key for key in self._claims if key not in self._objects and key.startswith(prefix) and key > after]
        if bare:
            entries = sorted([*entries, *(Entry(key, "", 0.0, 0) for key in bare)])
        return iter(entries)

    def touch(self, key: str) -> bool:
        claim = self._claims.get(key)
        if claim is not None and key not in self._objects:
            self._claims[key] = Object(b"", f"d{next(self._serial):x}", self._clock())
            return True
        return super().touch(key)

    def remove(self, key: str, who: str) -> None:
        """Somebody removes the name, whatever it is."""
        held = self._objects.get(key)
        self._claims.pop(key, None)
        if super().delete(key) and held is not None:
            self._forget(key, who, held.data)

    def delete(self, key: str) -> bool:
        held = self._objects.get(key)
        there = super().delete(key)
        if held is not None:
            self._forget(key, self.author[0], held.data)
        return there

    def _forget(self, key: str, who: str, before: bytes) -> None:
        self.born.pop(key, None)
        self._told(Write(self.world.now, who, key, "delete", None, before, False))

    def was(self, key: str, at: float) -> Object | None:
        """What the name held at an earlier time, as far as that is remembered."""
        if self.born.get(key, at) > at:
            return None
        for since, held in self.older.get(key, ()):
            if since > at:
                return held
        return self.read(key)
