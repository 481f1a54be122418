"""A simulated object store and its workers: every request costs latency in simulated time and is counted.

Only time, chance, the machines and the network are made up here. What the workers run is the real claim and refresh
code over the real MemoryBackend; greenlets let thousands of them interleave at every request, one thread in all.
"""

from __future__ import annotations

import builtins
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from heapq import heappop, heappush
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

from greenlet import getcurrent, greenlet

from dibs.backend import Backend, Entry, MemoryBackend, Object, Outcome, WrapperBackend
from dibs.errors import RecordError
from dibs.record import Who
from dibs.store import StudyKeys
from dibs.study import _rolls, _view

T = TypeVar("T")
PAGE = 1000  # keys per LIST request
AT_ONCE = 64  # requests that one client has on their way
EPOCH = 1.8e9
PUT, GET, LIST, DELETE = "PUT", "GET", "LIST", "DELETE"
REQUEST = {
    "create": PUT, "replace": PUT, "read": GET, "version": GET, "stream": GET, "now": GET, "list": LIST,
    "names": LIST, "folders": LIST, "delete": DELETE,
}  # fmt: skip


@dataclass
class Model:
    """Median latencies in seconds, their spread (sigma of the logarithm), and prices in dollars per request."""

    latency_s: dict[str, float] = field(
        default_factory=lambda: {PUT: 0.040, GET: 0.020, LIST: 0.050, DELETE: 0.030}  # a client in the same region
    )
    sigma: float = 0.5  # p99 is 3.2 times the median
    dollars: dict[str, float] = field(default_factory=lambda: {PUT: 5e-6, LIST: 5e-6, GET: 0.4e-6, DELETE: 0.0})
    limits: dict[str, float] = field(default_factory=lambda: {PUT: 3500.0, GET: 5500.0})  # per second and prefix


class World:
    """Simulated time: greenlets sleep in a heap; whoever is due first runs until it sleeps again."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now = 0.0
        self._hub = getcurrent()
        self._queue: list[tuple[float, int, Any]] = []
        self._serial = itertools.count()

    def spawn(self, body: Callable[[], object], after_s: float) -> None:
        heappush(self._queue, (self.now + after_s, next(self._serial), greenlet(body, parent=self._hub)))

    def sleep(self, seconds: float) -> None:
        heappush(self._queue, (self.now + seconds, next(self._serial), getcurrent()))
        self._hub.switch()

    def run(self) -> None:
        """Until nobody has anything left to do."""
        while self._queue:
            self.now, _, task = heappop(self._queue)
            task.switch()


class Meter:
    """Requests by type, by verb and purpose, and by second; claims and their tries."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.purposes: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, Counter[int]] = {PUT: Counter(), GET: Counter()}
        self.tries = self.claims = self.rolls = self.roll_tries = 0

    def count(self, kind: str, purpose: str, now: float, pages: int = 1) -> None:
        self.requests[kind] += pages
        self.purposes[kind, purpose] += pages
        limited = GET if kind in (GET, LIST) else PUT
        self.seconds[limited][int(now)] += pages

    def peak(self, kind: str) -> int:
        """The most requests in one second."""
        return max(self.seconds[kind].values(), default=0)


class SimulatedBucket(WrapperBackend):
    """One worker's client: the shared objects behind a network with latency. A request takes effect on its way."""

    def __init__(self, objects: MemoryBackend, world: World, meter: Meter, model: Model) -> None:
        super().__init__(objects)
        self.world, self.meter, self.model = world, meter, model

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        kind = REQUEST.get(verb)
        if kind is None:  # stage and discard send nothing; stamp has nobody to ask
            return call()
        self.meter.count(kind, _purpose(key), self.world.now)
        return self._travel(kind, call)

    def _travel(self, kind: str, call: Callable[[], T], at_once: int = 1) -> T:
        rng = self.world.rng
        slowest = max(rng.gauss(0.0, 1.0) for _ in range(at_once))
        took_s = self.model.latency_s[kind] * math.exp(self.model.sigma * slowest)
        there_s = took_s * rng.random()
        self.world.sleep(there_s)
        answer = call()
        self.world.sleep(took_s - there_s)
        return answer

    def create(self, key: str, draft: Any) -> Outcome:
        outcome = super().create(key, draft)
        won = outcome is Outcome.WON
        if "/trial/" in key or "/again/" in key:
            self.meter.tries += 1
            self.meter.claims += won
        elif "/roll/" in key:
            self.meter.roll_tries += 1
            self.meter.rolls += won
        return outcome

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        found = list(super().list(prefix, after, details=details))
        for _ in range(max(0, len(found) - 1) // PAGE):  # the further pages
            self.meter.count(LIST, _purpose(prefix), self.world.now)
            self._travel(LIST, lambda: None)
        return iter(found)

    def read_many(self, keys: Sequence[str]) -> builtins.list[Object | RecordError | None]:
        """As the client does it: so many requests at once, and the slowest of them decides."""
        found: builtins.list[Object | RecordError | None] = []
        for start in range(0, len(keys), AT_ONCE):
            chunk = keys[start : start + AT_ONCE]
            for key in chunk:
                self.meter.count(GET, _purpose(key), self.world.now)
            found += self._travel(GET, lambda some=chunk: [self.inner.read(key) for key in some], len(chunk))  # type: ignore[misc]
        return found


class Machine:
    """What the protocol asks of the machine a simulated worker runs on; it is the world's clock."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.clock = world, name, self

    def wall(self) -> float:
        return EPOCH + self.world.now

    def monotonic(self) -> float:
        return self.world.now

    def sleep(self, seconds: float) -> None:
        self.world.sleep(seconds)

    def entropy(self, size: int) -> bytes:
        return self.world.rng.randbytes(size)

    def pid(self) -> int:
        return 1

    def who(self, me: str) -> dict[str, Any]:
        return {"me": self.name, "host": self.name, "boot": self.name, "pid": 1, "token": "1-1"}

    def gone(self, who: Who) -> bool:
        return False


class Shared:
    """What thousands of workers in one process would each make of the same bytes is made once and given to all of them.

    Pure functions only, and what they return is immutable: nobody learns anything by it that was not read.
    """

    def __enter__(self) -> None:
        self._patches = [
            patch.object(StudyKeys, "parse", staticmethod(cache(StudyKeys.parse))),
            patch.object(_view, "decode_trial", cache(_view.decode_trial)),
            patch.object(_rolls, "decode_roll", cache(_rolls.decode_roll)),
        ]
        for one in self._patches:
            one.start()

    def __exit__(self, *wrong: object) -> None:
        for one in self._patches:
            one.stop()


def _purpose(key: str) -> str:
    """The folder of the study a key lies in."""
    return key.split("/")[2] if key.count("/") >= 2 else key


def bucket(world: World) -> MemoryBackend:
    """The shared objects, playing a bucket that stamps with the world's time."""
    return MemoryBackend(conditional_replace=True, clock=lambda: EPOCH + world.now)


__all__ = [
    "EPOCH",
    "GET",
    "LIST",
    "PUT",
    "Backend",
    "Machine",
    "Meter",
    "Model",
    "Shared",
    "SimulatedBucket",
    "World",
    "bucket",
]
