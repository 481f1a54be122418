"""A wrapper that lies as networks do: lost answers, lost requests, writes that land late, errors, old listings.

Every fault is within the storage contract (or, for ``stale_list``, within what the store must survive), so
what is built on a backend must keep its promises over this one. All chance comes from the caller's ``rng``.
"""

from __future__ import annotations

import builtins
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from dibs.backend._base import Backend, Draft, Entry, Object, Outcome
from dibs.backend._wrapper import WrapperBackend
from dibs.errors import StoreError

__all__ = ["Chance", "FaultyBackend"]

T = TypeVar("T")

_REMEMBERED = 8  # earlier answers per question


class Chance(Protocol):
    """Where chance comes from: ``random.Random(seed)`` is one."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...


class FaultyBackend(WrapperBackend):
    """Each fault happens with its own probability, decided by ``rng.random()``; all are 0 unless given.

    create, replace:
      ``lost_request``  UNSURE, and it never happens
      ``lost_answer``   it happens, and UNSURE is all that is said
      ``late``          UNSURE; it happens when ``land`` or ``land_all`` is called, or at a later verb (``landing``)
      ``conflict``      LOST without anything stored, with a conditional backend (S3's 409)
    stage: ``stage_error``, a full disk. read, version, stream, list, names, folders: ``read_error``.
    list, names: ``stale_list``, an earlier answer to the same question.

    ``faults`` counts what was done, ``waiting`` the late writes that have not landed. A backend that is pickled
    takes no late writes along.
    """

    def __init__(
        self,
        inner: Backend,
        rng: Chance,
        *,
        lost_answer: float = 0.0,
        lost_request: float = 0.0,
        late: float = 0.0,
        read_error: float = 0.0,
        stage_error: float = 0.0,
        stale_list: float = 0.0,
        conflict: float = 0.0,
        landing: float = 0.1,
    ) -> None:
        super().__init__(inner)
        self.chances = {
            "lost_answer": lost_answer,
            "lost_request": lost_request,
            "late": late,
            "read_error": read_error,
            "stage_error": stage_error,
            "stale_list": stale_list,
            "conflict": conflict if inner.traits.conditional_replace else 0.0,
            "landing": landing,
        }
        self._rng = rng
        self._start()

    def _start(self) -> None:
        self.faults: Counter[str] = Counter()
        self._late: builtins.list[Callable[[], object]] = []
        self._answers: dict[tuple[object, ...], deque[builtins.list[Any]]] = {}
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        mine = ("faults", "_late", "_answers", "_lock")
        return {name: value for name, value in self.__dict__.items() if name not in mine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    # ---- late writes

    @property
    def waiting(self) -> int:
        """How many late writes have not landed yet."""
        return len(self._late)

    def land(self, k: int = 0) -> None:
        """Let the k-th of the waiting writes happen now. Nobody hears what came of it, an error included."""
        with self._lock:
            write = self._late.pop(k)
        try:
            write()
        except StoreError:
            pass

    def land_all(self) -> None:
        """Let all waiting writes happen, the oldest first."""
        while self._late:
            self.land()

    # ---- the verbs

    def _hit(self, fault: str) -> bool:
        chance = self.chances[fault]
        if chance <= 0.0:
            return False
        with self._lock:
            hit = self._rng.random() < chance
            if hit:
                self.faults[fault] += 1
        return hit

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        with self._lock:
            if self._late and self._hit("landing"):
                self.land(int(self._rng.random() * len(self._late)))
        return call()

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        if self._hit("stage_error"):
            raise StoreError("cannot write to the store: the disk is full (a made-up fault)")
        return super().stage(data, durable=durable)

    def create(self, key: str, draft: Draft) -> Outcome:
        return self._around("create", key, lambda: self._write(draft, lambda: self.inner.create(key, draft)))

    def put(self, key: str, draft: Draft) -> Outcome:
        return self._around("put", key, lambda: self._write(draft, lambda: self.inner.put(key, draft)))

    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        return self._around("replace", key, lambda: self._write(draft, lambda: self.inner.replace(key, draft, version)))

    def _write(self, draft: Draft, call: Callable[[], Outcome]) -> Outcome:
        if self._hit("conflict"):
            return Outcome.LOST
        if self._hit("lost_request"):
            return Outcome.UNSURE
        if self._hit("late"):
            with self._lock:
                self._late.append(lambda: _unheard(draft, call))
            return Outcome.UNSURE
        if self._hit("lost_answer"):
            _unheard(draft, call)
            return Outcome.UNSURE
        return call()

    def read(self, key: str) -> Object | None:
        self._may_fail("read", key)
        return super().read(key)

    def stream(self, key: str, start: int = 0) -> Iterator[bytes] | None:
        self._may_fail("stream", key)
        return super().stream(key, start)

    def folders(self, prefix: str) -> builtins.list[str]:
        self._may_fail("list", prefix)
        return super().folders(prefix)

    def version(self, key: str) -> str | None:
        self._may_fail("read", key)
        return super().version(key)

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        self._may_fail("list", prefix)
        look = super().list
        if self.chances["stale_list"] <= 0.0:
            return look(prefix, after, details=details)  # as lazy as the inner one
        return iter(
            self._perhaps_old(("list", prefix, after, details), lambda: [*look(prefix, after, details=details)])
        )

    def names(self, prefix: str) -> builtins.list[str]:
        self._may_fail("list", prefix)
        look = super().names
        return [*self._perhaps_old(("names", prefix), lambda: look(prefix))]

    def _perhaps_old(self, question: tuple[object, ...], look: Callable[[], builtins.list[T]]) -> builtins.list[T]:
        """The answer, or an earlier one to the same question."""
        if self.chances["stale_list"] <= 0.0:
            return look()
        with self._lock:
            old: deque[builtins.list[T]] = self._answers.setdefault(question, deque(maxlen=_REMEMBERED))
            if old and self._hit("stale_list"):
                return old[int(self._rng.random() * len(old))]
            old.append(look())
            return old[-1]

    def _may_fail(self, verb: str, key: str) -> None:
        if self._hit("read_error"):
            raise StoreError(f"cannot {verb} {key}: input/output error (a made-up fault)", key=key)


def _unheard(draft: Draft, call: Callable[[], Outcome]) -> None:
    """Perform a write whose answer nobody hears: what it did to the temporary stays unknown to the caller."""
    known = draft.spent
    try:
        call()
    finally:
        draft.spent = known
