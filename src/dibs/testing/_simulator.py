"""One seed, one run: the real protocol code in a simulated world, and what the invariants say of it.

``simulate(seed)`` gives the same run every time, on every machine. A failing run explains itself: the plan, the
sentences, the last things that happened to the names involved, and the call that replays it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from random import Random
from threading import RLock
from typing import Any

from dibs.store import Store
from dibs.study import _functions as functions
from dibs.study._view import View

from . import invariants
from ._simulator_actor import BEHIND_S, Actor
from ._simulator_machine import Host, SimMachine
from ._simulator_others import hand, judge, reader, steerer
from ._simulator_plan import Plan, WorkerPlan, draw
from ._simulator_reading import reading_of
from ._simulator_run import Run
from ._simulator_truth import Truth, Write
from ._simulator_watch import NAME, create_study, persist
from ._simulator_worker import worker
from ._simulator_world import Process, World
from .invariants import Event, Reading

__all__ = ["Stage", "replay", "simulate"]

LIMIT = 60_000  # steps; a run that needs more hangs
_LOOKS = 6


class Stage:
    """Everything one run consists of."""

    def __init__(self, seed: int, plan: Plan) -> None:
        self.seed, self.plan = seed, plan
        self.world = World(Random(f"world {seed}"))
        self.events: list[Event] = []
        self.trace: list[tuple[float, str, str, str, object]] = []
        self.truth = Truth(self.world, plan.kind, plan.tick_s, self._wrote)
        self.hosts = [Host(f"host{at}", host.skew_s, host.drift) for at, host in enumerate(plan.hosts)]
        self.actors: list[Actor] = []
        self.closed = False  # the last word on stop and resume is spoken
        self.ended_at = 0.0  # when somebody ended last
        self._born = 0

    # what happens

    def note(self, who: str, verb: str, key: str, answer: object) -> None:
        self.trace.append((self.world.now, who, verb, key, answer))

    def _wrote(self, write: Write) -> None:
        if "/live/" in write.key or write.key.startswith("blobs/"):
            return
        role = next((actor.role for actor in self.actors if actor.name == write.who), "")
        self.events.append(
            Event(
                write.at, write.who, "wrote", write.key, note=("late " if write.late else "") + write.verb,
                data=write.data, before=write.before, by_hand=write.verb == "by hand", role=role,
            )
        )  # fmt: skip

    # who takes part

    def actor(self, name: str, host: int, role: str, *, mortal: bool = True) -> Actor:
        actor = Actor(self, name, self.hosts[host], role, mortal=mortal, faults=self.plan.faults)
        self.actors.append(actor)
        return actor

    def cast(self) -> None:
        """Everybody takes their place."""
        rng = Random(f"cast {self.seed}")
        if self.plan.kind == "mkdir":
            self._create()
        for at, plan in enumerate(self.plan.workers):
            self._start(plan, f"worker{at}", plan.start_s)
        for at in range(self.plan.steerers):
            self.actor(f"steerer{at}", rng.randrange(len(self.hosts)), "steerer").start(steerer)
        for at in range(self.plan.readers):
            self.actor(f"reader{at}", rng.randrange(len(self.hosts)), "reader").start(reader)
        for _ in range(_LOOKS):
            self.world.after(rng.random() * self.plan.chaos_s, self.look)
        for at in range(self.plan.by_hand):
            self.world.after(rng.random() * self.plan.chaos_s, partial(self._by_hand, at))
        if rng.random() < self.plan.reboot:
            self.world.after(rng.random() * self.plan.chaos_s, lambda: self._reboot(rng.choice(self.hosts)))
        self.world.after(self.plan.chaos_s, self._calm)

    def _reboot(self, host: Host) -> None:
        """A machine goes down with all that runs on it, but for those who may not die."""
        host.boot += 1
        for actor in list(self.actors):
            if actor.host is host and actor.process.doom and actor.process.alive:
                self.world.kill(actor.process)

    def _create(self) -> None:
        """With mkdir claims a creator that dies between mkdir and rename leaves a study nobody can open or mend."""
        store = Store.over(self.truth, SimMachine(self.world, self.hosts[0], Process("first", "host0"), Random(0)))
        self.truth.author = ("first", "host0", "create", False)
        create_study(store, self.plan, "first")

    def _start(self, plan: WorkerPlan, name: str, after_s: float) -> None:
        actor = self.actor(name, plan.host, "worker", mortal=not plan.survivor)
        actor.start(lambda actor: worker(actor, plan), after_s)

    def died(self, actor: Actor) -> None:
        """A killed worker is sometimes started again, as another process."""
        at = actor.name.partition("worker")[2].partition("r")[0]
        if at.isdigit() and self._born < 6:
            plan = self.plan.workers[int(at)]
            if actor.rng.random() < plan.reborn:
                self._born += 1
                self._start(plan, f"worker{at}r{self._born}", actor.rng.random() * 10)
            lost = actor.holds
            if lost is not None and not lost.closed and actor.rng.random() < self.plan.verdict:
                parent = self.actor(f"parent{len(self.actors)}", plan.host, "steerer", mortal=False)
                parent.start(lambda actor: judge(actor, plan, lost.n, lost.attempt), actor.rng.random())

    def busy(self, but: Actor) -> bool:
        """Whether anybody but this one may still change the study."""
        return any(not actor.ended and actor is not but and actor.role != "reader" for actor in self.actors)

    def _calm(self) -> None:
        self.world.calm = True

        def close(actor: Actor) -> None:
            study = persist(actor, lambda: create_study(actor.store, self.plan, actor.name))
            persist(actor, study.stop if self.plan.stay_stopped else lambda: actor.resume(study))
            self.closed = True

        self.actor("closer", 0, "steerer", mortal=False).start(close)

    def _by_hand(self, at: int) -> None:
        keys = [
            entry.key for entry in self.truth.list(f"study/{NAME}/") if "/trial/" in entry.key or "/again/" in entry.key
        ]
        if keys:
            actor = self.actor(f"hand{at}", 0, "hand", mortal=False)
            actor.retire()
            hand(actor, actor.rng.choice(keys))

    # readings

    def look(self) -> None:
        """A fresh reader looks, all at once."""
        since = len(self.events)
        self.events.append(Event(self.world.now, "fresh", "looked", reading=self.read(), since=since))

    def read(self) -> Reading:
        store = Store.over(self.truth, self.actors[0].machine)
        view = View(store, NAME)
        view.refresh()
        return reading_of(view)

    def held(self) -> None:
        """Everybody who is still there looks once more with what they knew, when no hint is trusted any more."""
        self.world.now += BEHIND_S
        for actor in self.actors:
            if not actor.killed and actor.view.attempts:
                actor.store.backend, actor.view.lock = self.truth, RLock()
                actor.view.refresh()
                actor.view.refresh()  # in a bucket the study's parts are listed every other time
                self.events.append(Event(self.world.now, actor.name, "held", reading=reading_of(actor.view)))


def simulate(seed: int, *, planted: AbstractContextManager[object] | None = None, **fixed: Any) -> Run:
    """Run one seed and check it. ``planted``: a fault put into the real code; ``fixed``: fields of the plan.

    Replays exactly: the same arguments give the same run, in every process and on every machine.
    """
    plan = draw(seed, **fixed)
    stage = Stage(seed, plan)
    with planted or nullcontext(), _quiet(), _forgotten():
        try:
            stage.cast()
            ended = stage.world.run(LIMIT, lambda: stage.closed and all(actor.ended for actor in stage.actors))
            if ended:
                ended = stage.world.run(2 * LIMIT, lambda: False)  # what is still on its way lands
            if not ended:
                busy = [actor for actor in stage.actors if not actor.ended]
                for actor in busy or stage.actors[:1]:
                    actor.tell("hung", note=f"after {stage.world.steps} steps, {stage.world.now:.0f} s")
        finally:
            stage.world.close()
        final = stage.read()
        stage.held()
    broken = invariants.broken(stage.events, final)
    return Run(seed, plan, fixed, stage.events, final, broken, stage.world.steps, stage.world.now, stage.trace)


replay = simulate  # the public name: ``dibs.testing.simulate`` is the module that runs many


@contextmanager
def _quiet() -> Iterator[None]:
    """What the library logs is not news here."""
    log = logging.getLogger("dibs")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def _forgotten() -> Iterator[None]:
    """What the function API remembers of simulated processes is forgotten again."""
    before = dict(functions._taken)
    try:
        yield
    finally:
        functions._taken.clear()
        functions._taken.update(before)
