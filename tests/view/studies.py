"""A study in memory whose time the test moves, and a backend that no reader may write to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from tests.parts import FakeMachine, body_at, plant

from dibs import Choice, Float, Space, Store, Study
from dibs.backend import MemoryBackend, WrapperBackend
from dibs.study import report, take
from dibs.view import Source

T = TypeVar("T")
SPACE = Space(lr=Float(1e-5, 0.1, log=True), opt=Choice("adam", (1, 2), True))
READS = {"read", "stream", "list", "folders", "names", "stamp", "version"}


class ReadOnly(WrapperBackend):
    """Whatever is not a reading verb is a failure of the test."""

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        assert verb in READS, f"a reader called {verb} {key}"
        return call()


class Lab:
    """One study ``name`` whose workers are this process under several pids, and whose store's time is ``now``."""

    def __init__(self, name: str = "spam", *, defined: bool = True, stale_s: float | None = None) -> None:
        self.now = 1_000_000.0
        self.name = name
        self.backend = MemoryBackend(clock=lambda: self.now)
        self.machine = FakeMachine(pid=1, host="north")
        self.store = Store.over(self.backend, self.machine)
        if defined:
            self.study = Study(self.store, name, SPACE, goal="min", seed=7, stale_s=stale_s)

    def point(self, n: int) -> dict[str, Any]:
        return {"lr": 0.001 * (n + 1), "opt": (1, 2)}

    def begin(self, n: int, *, me: str = "ann", of: int = 10) -> None:
        taken = take(self.store, self.point(n), study=self.name, trial=n, me=me, goal="min", of=of)
        assert taken is not None

    def report(self, n: int, curve: Iterable[Any], state: str = "running", reason: str | None = None) -> None:
        report(self.store, self.point(n), curve, study=self.name, trial=n, state=state, reason=reason)

    def trial(
        self, n: int, state: str, curve: Iterable[Any] = (), *, me: str = "ann", reason: str | None = None
    ) -> None:
        self.begin(n, me=me)
        self.report(n, curve, state, reason)

    def two_goals(self) -> None:
        """Two done trials, and by hand the second one's goal is the other."""
        self.trial(0, "done", [1.0])
        self.trial(1, "done", [2.0])
        key = self.store.keys(self.name).attempt(1, 0)
        plant(self.store, key, {**body_at(self.store, key), "goal": "max"})

    def pass_s(self, seconds: float) -> None:
        """Time goes by for the store and for the machine."""
        self.now += seconds
        self.machine.clock.now += seconds

    def reader(self, machine: FakeMachine | None = None) -> Store:
        """The same store as somebody else opens it, who may not write."""
        return Store.over(ReadOnly(self.backend), machine or FakeMachine(pid=99, host="reader"), url="memory:lab")

    def source(self, machine: FakeMachine | None = None) -> Source:
        return Source.of(self.reader(machine), self.name)


def never(*_: Any) -> NoReturn:
    raise AssertionError("this must not be called")
