"""What one worker of the torture is told, and the store as it sees it: through a clock and stamps that may be wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from dibs import Store
from dibs._clock import Clock, SystemClock
from dibs.backend import Backend, Draft, WrapperBackend
from dibs.store._machine import Here

__all__ = ["Orders", "WrongClock", "opened"]


@dataclass(frozen=True)
class Orders:
    """What one worker is told. ``skew_s``: by how much its clock is wrong; ``stamps``: its file system uses that clock.

    ``hurry``: its store is a bucket, whose beats are to be as quick as a folder's.
    """

    store: str
    folder: str
    me: str
    mode: str
    of: int
    seed: int
    stale_s: float
    rescue_after_s: float | None
    shortest_s: float = 0.05
    longest_s: float = 0.5
    skew_s: float = 0.0
    stamps: bool = False
    wait: bool = False
    hurry: bool = False
    steps: tuple[str, ...] = ()

    def text(self) -> str:
        """As an argument of the worker's command line."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Orders:
        """The inverse of :meth:`text`."""
        told = json.loads(text)
        return cls(**{**{field.name: told[field.name] for field in fields(cls)}, "steps": tuple(told["steps"])})

    @property
    def journals(self) -> str:
        return f"{self.folder}/journal"


class WrongClock:
    """A machine whose people never set the time."""

    def __init__(self, inner: Clock, skew_s: float) -> None:
        self._inner, self._skew_s = inner, skew_s

    def wall(self) -> float:
        return self._inner.wall() + self._skew_s

    def monotonic(self) -> float:
        return self._inner.monotonic()

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class ClientStamps(WrapperBackend):
    """A file system that stamps with its client's clock, right or wrong, whatever the other clients' say."""

    def __init__(self, inner: Backend, clock: Clock) -> None:
        super().__init__(inner)
        self._clock = clock

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        draft = self.inner.stage(data, durable=durable)
        self._stamp(draft.temp)
        return draft

    def touch(self, key: str) -> bool:
        return self._stamp(key)

    def now(self) -> float:
        self.inner.now()
        return self._clock.wall()

    def _stamp(self, name: str) -> bool:
        assert self.root is not None
        try:
            os.utime(self.root / name, (self._clock.wall(), self._clock.wall()))
        except FileNotFoundError:
            return False
        return True


def opened(orders: Orders) -> Store:
    """The store as this worker sees it."""
    store = Store(orders.store)
    if not orders.skew_s and not orders.stamps:
        return store
    machine = Here()
    machine.clock = WrongClock(SystemClock(), orders.skew_s)
    backend = ClientStamps(store.backend, machine.clock) if orders.stamps else store.backend
    return Store.over(backend, machine, url=store.url)
