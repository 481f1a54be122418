"""One seed, one run: the real protocol code in a simulated world, and what the invariants say of it.

``simulate(seed)`` gives the same run every time, on every machine. A failing run explains itself: the plan, the
sentences, the last things that happened to the names involved, and the call that replays it.
"""

from __future__ import annotations

import hashlib
import logging
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from random import Random
from threading import RLock
from typing import Any, cast

from dibs._canon import digest as digest_of
from dibs._canon import to_json
from dibs.errors import UnsureError
from dibs.store import Store
from dibs.study import Study
from dibs.study import _functions as functions
from dibs.study._attempt import Attempt
from dibs.study._view import View, view_of

from . import invariants
from ._simulator_machine import Host, SimMachine
from ._simulator_others import hand, judge, reader, steerer
from ._simulator_plan import Plan, WorkerPlan, draw
from ._simulator_reading import reading_of
from ._simulator_store import Faults, Truth, Wire, Write
from ._simulator_watch import NAME, Watched, create_study, persist
from ._simulator_worker import worker
from ._simulator_world import GreenletExit, Process, SimLock, World
from .invariants import Event, Reading

__all__ = ["Run", "replay", "simulate"]

LIMIT = 60_000  # steps; a run that needs more hangs
BEHIND_S = 150.0  # how long a view may be behind: an old listing, then trust in its stamp
_LOOKS = 6
_DULL = ("  read", "  touch")


class Actor:
    """A process that takes part: its way to the store, its machine, its own chance."""

    def __init__(self, stage: Stage, name: str, host: Host, role: str, *, mortal: bool, faults: Faults) -> None:
        plan = stage.plan
        self.stage, self.name, self.role, self.plan = stage, name, role, plan
        self.world, self.truth = stage.world, stage.truth
        self.rng = Random(f"{stage.seed} {name}")
        self.process = Process(
            name, host.name, doom=plan.doom if mortal else 0.0, stall=plan.stall, stall_s=plan.stall_s
        )
        self.machine = SimMachine(self.world, host, self.process, Random(f"{stage.seed} {name} entropy"))
        self.faults, self.host = faults, host
        wire = self.wire(faults)
        self.store = Store.over(wire, self.machine, f"simulated:{stage.seed}/{name}", plan.patience_s)
        settler = Watched(wire, self.machine, plan.patience_s)
        settler.actor = self
        self.store.settler = settler
        self.view = view_of(self.store, NAME)
        self.view.lock = cast(Any, SimLock(self.world))
        self.view.rolls.threshold = plan.roll
        self.ended = self.killed = False
        self.holds: Attempt | None = None  # the last attempt it claimed
        self.process.on_death = self._die

    def wire(self, faults: Faults) -> Wire:
        """A way to the store for this process."""
        wire = Wire(self.truth, self.process, self.host, faults, self.plan.client_stamps)
        wire.trace = lambda verb, key, answer: self.stage.note(self.name, verb, key, answer)
        return wire

    def fresh_view(self) -> View:
        """What this process would see if it had just been started, on a client whose caches are empty."""
        store = Store.over(self.wire(replace(self.faults, lag=0.0)), self.machine, patience_s=self.plan.patience_s)
        view = View(store, NAME)
        view.lock = cast(Any, SimLock(self.world))
        return view

    def start(self, body: Callable[[Actor], None], after_s: float = 0.0) -> None:
        """Run the body as this process's main task."""

        def main() -> None:
            try:
                body(self)
            except GreenletExit:
                raise
            except BaseException as error:
                where = traceback.format_exception(error)[-3:]
                self.tell("crashed", note="".join(where).strip())
            self.retire()

        self.world.spawn(self.process, main, after_s)

    def tell(self, what: str, **fields: Any) -> None:
        """Something this process was told, for the oracle."""
        self.stage.events.append(Event(self.world.now, self.name, what, role=self.role, **fields))

    def sleep(self, seconds: float) -> None:
        self.machine.clock.sleep(seconds)

    def retire(self) -> None:
        """The process ends by itself."""
        if self.process.alive:
            self.ended = True
            self.process.alive = False
            self.stage.ended_at = self.world.now

    def _die(self) -> None:
        self.ended = self.killed = True
        self.tell("killed")
        self.stage.ended_at = self.world.now
        self.stage.died(self)

    def is_last(self) -> bool:
        """Whether everybody who could still change something has ended, longer ago than a view may be behind."""
        stage = self.stage
        return stage.closed and not stage.busy(self) and self.world.now > stage.ended_at + BEHIND_S

    def may_end(self, why: str) -> bool:
        """Whether nothing is left to wait for."""
        return why != "held" and (why != "stopped" or self.plan.stay_stopped)

    def hopes(self, why: str, plan: WorkerPlan) -> bool:
        """Whether waiting makes sense: in the end only for those who would rescue what they wait for."""
        if not self.world.calm:
            return True
        return plan.rescue_after_s is not None if why == "held" else not self.plan.stay_stopped

    def taken(self, n: int) -> Attempt:
        """What the function API remembers for this process."""
        for mine in functions._taken.values():
            if isinstance(mine, Attempt) and mine.store is self.store and mine.n == n and not mine.closed:
                return mine
        raise LookupError(f"nobody took trial {n}")

    def stopped(self) -> None:
        """A stop returned; with views that may be behind nobody can tell who should know of it."""
        if not self.plan.faults.lag and not self.plan.tick_s:
            self.tell("stopped")

    def resume(self, study: Study) -> None:
        """Resume the study; from here on, or (if nobody can say) at any later time, claims are right again."""
        self.tell("resuming")
        try:
            study.resume()
        except UnsureError:
            self.tell("resuming", note="unsure")
            raise

    def wished(self, point: dict[str, Any]) -> None:
        text = {name: to_json(value) for name, value in point.items()}
        self.tell("wished", digest=digest_of(text))


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
            self.world.after(rng.random() * self.plan.chaos_s, lambda at=at: self._by_hand(at))  # type: ignore[misc]
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


@dataclass
class Run:
    """What came of a seed. ``broken``: what does not hold (empty: all is well)."""

    seed: int
    plan: Plan
    fixed: dict[str, Any]
    events: list[Event]
    final: Reading
    broken: list[str]
    steps: int
    now: float
    trace: list[tuple[float, str, str, str, object]] = field(repr=False)

    @property
    def digest(self) -> str:
        """A digest of everything that happened: equal for equal seeds."""
        return hashlib.sha256(repr((self.trace, self.events, self.broken)).encode()).hexdigest()

    @property
    def replay(self) -> str:
        """The call that gives this run again."""
        fixed = "".join(f", {name}={value!r}" for name, value in self.fixed.items())
        return f"dibs.testing.replay({self.seed}{fixed})"

    def explain(self, last: int = 60) -> str:
        """The plan, what is broken, what was written to the names involved, the last that happened, and the replay."""
        told = [(event.at, event.who, *_event_text(event)) for event in self.events if event.what != "looked"]
        done = [(at, who, f"  {verb} {key}", str(answer)) for at, who, verb, key, answer in self.trace]
        story = sorted([*told, *done], key=lambda line: line[0])
        sentences = " ".join(self.broken)
        marks = set(re.findall(r"study/\S+\.json|(?<=the wish )\w+", sentences))
        marks |= {f"/{int(n):08d}-" for n in re.findall(r"trial (\d+)", sentences)}
        named = [
            line for line in story if not line[2].startswith(_DULL) and any(mark in line[2] + line[3] for mark in marks)
        ]
        lines = [f"seed {self.seed}: {self.plan}", *self.broken]
        for title, part in (("the names involved", named), ("in the end", story)):
            lines += [f"... {title}:", *(f"{at:10.3f} {who:12} {what} {more}" for at, who, what, more in part[-last:])]
        return "\n".join(line.rstrip() for line in [*lines, f"replay: {self.replay}"])


def _event_text(event: Event) -> tuple[str, str]:
    more = [event.state, event.note, event.nonce[:8], str(event.number or "")]
    return f"{event.what.upper()} {event.key}", " ".join(word for word in more if word)


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
