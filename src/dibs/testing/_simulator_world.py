"""The simulated world: one clock, one queue of what happens next, and tasks that run one at a time.

A task is a greenlet of a process; it gives way only in ``pause`` and ``park``, so a run is a function of its
seed. A killed process never runs again, and what its frames still try while they unwind has no effect.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from types import TracebackType
from typing import Any, Self

from greenlet import GreenletExit, getcurrent, greenlet  # type: ignore[import-untyped]

__all__ = ["GreenletExit", "Process", "SimLock", "Task", "World"]


class Process:
    """A process on a host: alive, frozen for a while, or killed. ``doom`` and ``stall`` are chances per pause."""

    def __init__(self, name: str, host: str, *, doom: float = 0.0, stall: float = 0.0, stall_s: float = 0.0) -> None:
        self.name, self.host = name, host
        self.doom, self.stall, self.stall_s = doom, stall, stall_s
        self.alive = True
        self.frozen_until = 0.0
        self.on_death: Callable[[], object] | None = None


class Task:
    """One thread of control of a process."""

    __slots__ = ("greenlet", "parked", "process")

    def __init__(self, process: Process, body: Callable[[], object], hub: Any) -> None:
        self.process = process
        self.parked = False
        self.greenlet: Any = greenlet(body, parent=hub)


class World:
    """Runs tasks and timed happenings in the order of simulated time; ties by who came first.

    ``calm``: no more kills and stalls. ``steps`` counts what happened, for bounds.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now = 0.0
        self.calm = False
        self.steps = 0
        self.current: Task | None = None
        self._hub = getcurrent()
        self._queue: list[tuple[float, int, Task | Callable[[], object]]] = []
        self._serial = itertools.count()
        self._tasks: list[Task] = []

    # what happens next

    def spawn(self, process: Process, body: Callable[[], object], after_s: float = 0.0) -> Task:
        """Start a task of a process."""
        task = Task(process, body, self._hub)
        self._tasks.append(task)
        self._push(self.now + after_s, task)
        return task

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        """Let something happen later, whoever is dead by then."""
        self._push(self.now + seconds, call)

    def _push(self, at: float, what: Task | Callable[[], object]) -> None:
        heappush(self._queue, (at, next(self._serial), what))

    # inside a task

    def pause(self, seconds: float) -> None:
        """Give way for so long. The process may be killed or frozen here."""
        task = self._alive()
        process = task.process
        if not self.calm:
            if process.doom and self.rng.random() < process.doom:
                self.kill(process)
                self._hub.switch()
            if process.stall and self.rng.random() < process.stall:
                process.frozen_until = self.now + self.rng.random() * process.stall_s
        self._push(self.now + seconds, task)
        self._hub.switch()
        self._alive()

    def park(self) -> None:
        """Give way until ``wake``."""
        task = self._alive()
        task.parked = True
        self._hub.switch()
        self._alive()

    def wake(self, task: Task) -> None:
        """Let a parked task go on."""
        if task.parked:
            task.parked = False
            self._push(self.now, task)

    def _alive(self) -> Task:
        task = self.current
        assert task is not None, "only a task may give way"
        if not task.process.alive:
            raise GreenletExit
        return task

    def kill(self, process: Process) -> None:
        """SIGKILL: none of its tasks runs again."""
        if process.alive:
            process.alive = False
            if process.on_death is not None:
                process.on_death()

    # outside

    def run(self, limit: int, until: Callable[[], bool]) -> bool:
        """Go on until it is true or nothing is left to happen; False if ``limit`` steps did not suffice."""
        while self._queue and not until():
            at, _, what = heappop(self._queue)
            self.now = max(self.now, at)
            if isinstance(what, Task):
                if not what.process.alive:
                    continue
                if what.process.frozen_until > self.now:
                    self._push(what.process.frozen_until, what)
                    continue
                self.current = what
                what.greenlet.switch()
                self.current = None
            else:
                what()
            self.steps += 1
            if self.steps >= limit:
                return False
        return True

    def close(self) -> None:
        """Unwind what still stands on a stack; nothing of it has an effect any more."""
        for task in self._tasks:
            task.process.alive = False
        for task in self._tasks:
            if not task.greenlet.dead:
                self.current = task
                task.greenlet.throw(GreenletExit)
        self.current = None


class SimLock:
    """A lock between tasks that one task may take again. (A real one would let every task of the thread in.)"""

    def __init__(self, world: World) -> None:
        self._world = world
        self._owner: Task | None = None
        self._depth = 0
        self._waiting: list[Task] = []

    def __enter__(self) -> Self:
        task = self._world._alive()
        while self._owner not in (None, task):
            self._waiting.append(task)
            self._world.park()
        self._owner = task
        self._depth += 1
        return self

    def acquire(self, blocking: bool = True) -> bool:
        """As a real one; without ``blocking`` it does not wait."""
        if not blocking and self._owner not in (None, self._world.current):
            return False
        self.__enter__()
        return True

    def release(self) -> None:
        self.__exit__(None, None, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
            if self._waiting:
                self._world.wake(self._waiting.pop(0))
