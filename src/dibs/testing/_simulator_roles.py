"""Who takes part in a simulated study: workers of both APIs, people who steer, readers, and a hand in the store.

They call the real code and nothing else; what they are told goes into the run's events.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar, cast

import dibs
from dibs.errors import NoResult, NotFound, NotOwner, StoreError, UnsureError, UsageError
from dibs.record import CLOSED
from dibs.space import Choice, Float, Int, Space
from dibs.store import Held, Settler, Store
from dibs.study import Study, Trial, report, take
from dibs.study._attempt import Attempt
from dibs.study._claimer import Claimer, Idle
from dibs.study._loop import close_left_open, failed_before
from dibs.study._session import Session

from ._simulator_plan import Plan, WorkerPlan
from ._simulator_reading import standing
from ._simulator_world import SimLock
from .invariants import Reading

if TYPE_CHECKING:
    from ._simulator import Actor

__all__ = ["NAME", "SPACE", "Watched", "create_study", "hand", "reader", "steerer", "worker"]

T = TypeVar("T")
NAME = "sim"
SPACE = Space(
    x=Float(1e-3, 1.0, log=True),
    k=Int(1, 5),
    c=Choice(None, True, 1, 1.0, "1", (1, 2.0)),
    y=Float(0.0, 1.0, when={"k": [1, 2]}),
)


CHECKPOINTS = sorted(Path(dibs.__file__).parent.rglob("__init__.py"))  # any files; each is saved once by an attempt


class Planned(Exception):
    """An objective that fails because the plan says so."""


class Watched(Settler):
    """The real settler, which also tells the oracle what each caller was told."""

    actor: Actor

    def claim(self, key: str, body: dict[str, Any], *, durable: bool = False) -> Held | None:
        tell = self.actor.tell
        if self._asks_anew(body):
            tell("blind", key=key)
        try:
            held = super().claim(key, body, durable=durable)
        except UnsureError:
            tell("unsure", key=key, nonce=self.actor.machine.last_nonce)
            raise
        if held is None:
            tell("refused", key=key, nonce=self.actor.machine.last_nonce)
        else:
            tell("claimed", key=key, nonce=held.nonce)
            if body.get("state") in CLOSED:
                tell("closed", key=key, nonce=held.nonce, state=body["state"])
        return held

    def _asks_anew(self, body: dict[str, Any]) -> bool:
        """Whether this is a later attempt of a trial of which this process could read no earlier one."""
        if not body.get("attempt"):
            return False
        return all(seen.record is None for seen in self.actor.view.attempts.get(body["n"], {}).values())


def adopt(actor: Actor, attempt: Attempt) -> Attempt:
    """Give an attempt locks that tasks respect, and listen to what its owner is told."""
    attempt.lock = cast(Any, SimLock(actor.world))
    attempt._held.lock = SimLock(actor.world)
    key, nonce = attempt._held.key, attempt.nonce
    actor.tell("owns", key=key, nonce=nonce, point=attempt.point)

    def close(state: str, **fields: Any) -> None:
        try:
            type(attempt).close(attempt, state, **fields)
        except NotOwner as lost:
            actor.tell("lost", key=key, nonce=nonce, note=type(lost).__name__)
            raise
        actor.tell("closed", key=key, nonce=nonce, state=attempt.state, score=fields.get("score"))

    def keep(name: str, path: Path) -> str:
        digest = type(attempt).keep(attempt, name, path)
        actor.tell("saved", key=key, nonce=nonce, note=name, digest=digest)
        return digest

    cast(Any, attempt).close = close
    cast(Any, attempt).keep = keep
    return attempt


class _Session(Session):
    """A session without threads, pipes and signals: a task beats instead."""

    def __init__(self, actor: Actor) -> None:
        super().__init__(actor.machine.clock)
        self._actor = actor
        self._due_at: dict[Any, float] = {}

    def open(self, trial: Any) -> None:
        self._due_at[trial] = self.clock.monotonic() + trial.beat_s

    def close(self, trial: Any) -> None:
        self._due_at.pop(trial, None)

    def beat(self) -> None:
        """Beat for whatever is open, for as long as the process lives."""
        while True:
            now = self.clock.monotonic()
            for trial, at in list(self._due_at.items()):
                if at <= now:
                    self._due_at[trial] = now + trial.beat_s
                    trial.beat()
                    if trial.closed:
                        self._due_at.pop(trial, None)
            self._actor.sleep(min([1.0, *(max(0.05, at - now) for at in self._due_at.values())]))


def persist(actor: Actor, call: Callable[[], T], tries: int = 40) -> T:
    """Call again after an error of the store, as a person or a supervisor would."""
    for _ in range(tries):
        try:
            return call()
        except StoreError:
            actor.sleep(0.5 + actor.rng.random())
    return call()


def create_study(store: Store, plan: Plan, me: str) -> Study:
    """Create the study or join it, as every worker does."""
    return Study(store, NAME, SPACE, goal="min", seed=plan.seed, stale_s=plan.stale_s, sampler=plan.sampler, me=me)


# ---- workers


def worker(actor: Actor, plan: WorkerPlan) -> None:
    """A worker process, from its start to the end of its loop."""
    actor.tell("asked", number=plan.trials)
    if plan.api == "functions":
        _by_functions(actor, plan)
        return
    study = persist(actor, lambda: create_study(actor.store, actor.plan, actor.name))
    claimer = study.claimer(plan.trials, plan.rescue_after_s)
    session = _Session(actor)
    actor.world.spawn(actor.process, session.beat)
    why = _loop(actor, plan, study, claimer, session)
    actor.tell("idle" if why in ("settled", "queued", "exhausted", "stopped") else "left", number=plan.trials, note=why)
    actor.retire()


def _loop(actor: Actor, plan: WorkerPlan, study: Study, claimer: Claimer, session: Session) -> str:
    pause_s = 0.05
    while True:
        last = plan.survivor and actor.is_last()  # before the step: it must see what the others left behind
        actor.tell("steps")
        try:
            got = claimer.step()
        except StoreError:
            actor.sleep(0.2 + actor.rng.random())
            continue
        if isinstance(got, Attempt):
            pause_s = 0.05
            retries = plan.retries
            trial = Trial(adopt(actor, got), SPACE, session, failed_before=failed_before(claimer, got), retries=retries)
            if not _try(actor, trial) and not plan.survivor:
                return "left"
            continue
        if plan.survivor:
            if last and actor.may_end(got.why):
                return got.why
            if last and got == Idle("stopped"):
                persist(actor, lambda: actor.resume(study))  # a stop that nobody was sure of has landed late
            actor.sleep((1.0 + 3 * actor.rng.random()) * (5 if actor.world.calm else 1))
            continue
        if not (plan.wait and got in (Idle("held"), Idle("stopped")) and actor.hopes(got.why, plan)):
            return got.why
        actor.sleep(pause_s)
        pause_s = min(max(5.0, claimer.beat_s / 2), 2 * pause_s)


def _try(actor: Actor, trial: Trial) -> bool:
    """One trial as a user's code would run it; False if the process should end after it."""
    end = _how_it_ends(actor)
    try:
        with trial:
            _watch(actor, trial, end)
    except KeyboardInterrupt:
        return False
    except (StoreError, NotOwner):
        if actor.rng.random() < 0.5:
            _insist(actor, trial)
    with contextlib.suppress(StoreError):
        close_left_open(trial)
    return True


def _watch(actor: Actor, trial: Trial, end: str) -> None:
    """Run the objective; an error of it that was not planned is the library's, and would hide as a failed trial."""
    try:
        _objective(actor, trial, end)
    except (Planned, StoreError, NotOwner):
        raise
    except Exception as error:
        actor.tell("crashed", note=f"in the objective: {error!r}")
        raise


def _how_it_ends(actor: Actor) -> str:
    plan, draw = actor.plan, actor.rng.random()
    for name, chance in (("fail", plan.fail), ("prune", plan.prune), ("leave", plan.leave)):
        if draw < chance:
            return name
        draw -= chance
    return "done"


def _objective(actor: Actor, trial: Trial, end: str) -> None:
    rng, plan = actor.rng, actor.plan
    steps = rng.randint(0, plan.epochs)
    if rng.random() < plan.grace:
        actor.world.spawn(actor.process, lambda: _grace_is_over(actor, trial), rng.random() * plan.epoch_s * steps)
    for epoch in range(steps):
        actor.sleep(plan.epoch_s * rng.random() * 2)
        if trial.report(rng.random()) and rng.random() < 0.8:
            return
        if rng.random() < plan.save:
            trial.save(f"ck{epoch % 2}", CHECKPOINTS[epoch])
    if end == "fail":
        if rng.random() < 0.3:
            trial.done(float("nan"))
            return
        raise Planned("the objective failed")
    if end == "leave":
        if rng.random() < 0.3:
            raise KeyboardInterrupt
        trial._session.reason, trial._session.stopping = "a signal", True
        try:
            trial.interrupt("a signal")
        finally:
            trial._session.reason, trial._session.stopping = None, False
        return
    if end == "prune":
        trial._attempt.close("pruned", score=0.5, step=3, reason="median")
        return
    trial.done(rng.random())


def _grace_is_over(actor: Actor, trial: Trial) -> None:
    """What the beat thread does when a signal's grace is over and the main thread has not come back."""
    try:
        trial.interrupt("SIGTERM")
    except (NotOwner, StoreError):
        pass  # it came to its end meanwhile, or is left running
    if actor.process.doom:
        actor.retire()


def _insist(actor: Actor, trial: Trial) -> None:
    """The store did not take the end: say it again, perhaps another one."""
    for _ in range(6):
        if trial.closed:
            return
        actor.sleep(actor.plan.patience_s * actor.rng.random())
        try:
            if actor.rng.random() < 0.7 and trial._attempt.curve:
                trial.done()
            else:
                trial.interrupt("the store failed")
        except StoreError:
            continue
        except NotOwner:
            return


def _by_functions(actor: Actor, plan: WorkerPlan) -> None:
    rng, store = actor.rng, actor.store
    for _ in range(rng.choice((1, 2, 4))):
        for n in range(plan.trials):
            point = SPACE.draw(lambda name: rng.random())
            attempt = rng.choice((None, None, None, 0, 1))
            actor.tell("steps")
            try:
                taken = take(store, point, study=NAME, trial=n, goal="min", me=actor.name, attempt=attempt)
            except (StoreError, UsageError):
                continue
            if taken is None:
                continue
            mine = adopt(actor, actor.taken(n))
            try:
                _train(actor, n, mine)
            except NotOwner:
                continue
        actor.sleep(rng.random() * 10)
    actor.retire()


def _train(actor: Actor, n: int, mine: Attempt) -> None:
    rng, plan, store = actor.rng, actor.plan, actor.store
    curve: list[float] = []
    for _ in range(rng.randint(0, plan.epochs)):
        actor.sleep(plan.epoch_s * rng.random() * 2)
        curve.append(rng.random())
        try:
            if report(store, mine.point, curve, study=NAME, trial=n, goal="min") and rng.random() < 0.5:
                break
        except StoreError:
            continue
    end = {"fail": "failed", "prune": "pruned", "leave": "interrupted"}.get(_how_it_ends(actor), "done")
    for _ in range(4):
        try:
            report(store, mine.point, curve, study=NAME, trial=n, goal="min", state=end, reason="as it went")
            return
        except StoreError:
            actor.sleep(rng.random() * plan.patience_s)
    return  # left running; others will find it quiet


# ---- everybody else


def steerer(actor: Actor) -> None:
    """Somebody at a command line: wishes, stops, resumes, retries, rescues."""
    rng = actor.rng
    for _ in range(rng.randint(1, 6)):
        actor.sleep(rng.random() * actor.plan.chaos_s / 4)
        try:
            study = Study(actor.store, NAME, me=actor.name)
            _steer(actor, study, rng)
        except (StoreError, NotFound, UsageError):
            continue
    actor.retire()


def _steer(actor: Actor, study: Study, rng: Random) -> None:
    verb = rng.choice(("wish", "wish", "wish", "stop", "resume", "retry", "rescue", "attach"))
    if verb == "wish":
        some = Random(rng.randrange(3))  # few points: the same wish comes twice
        point = SPACE.draw(lambda name: some.random())
        study.enqueue(point)
        actor.wished(point)
    elif verb == "stop":
        study.stop()
        actor.stopped()
        actor.sleep(rng.random() * 10)
        persist(actor, lambda: actor.resume(study))
    elif verb == "resume":
        actor.resume(study)
    elif verb == "retry":
        study.retry()
    elif verb == "rescue":
        study.rescue(stale_s=rng.choice((None, 1.0)))
    else:
        study.attach(SPACE.draw(lambda name: rng.random()), rng.random())


def reader(actor: Actor) -> None:
    """Somebody who looks now and then, with what was seen before."""
    rng = actor.rng
    while not actor.world.calm:
        actor.sleep(rng.random() * 20)
        try:
            if rng.random() < 0.5:
                since, view = len(actor.stage.events), actor.fresh_view()
                view.refresh()
                actor.tell("looked", reading=Reading(trials=standing(view)), since=since)
            study = Study(actor.store, NAME)
            study.results()
            study.in_flight()
            with contextlib.suppress(NoResult):
                study.best()
        except (StoreError, NotFound, UsageError):
            continue
    actor.retire()


def hand(actor: Actor, key: str) -> None:
    """Somebody removes or damages a record."""
    actor.tell("wrote", key=key, by_hand=True, note="by hand")
    if actor.rng.random() < 0.6:
        actor.truth.remove(key, actor.name)
    else:
        actor.truth.author = (actor.name, "hand", "by hand", False)
        actor.truth._put(key, actor.rng.choice((b"", b'{"v":1,"kind":"tri', b"\xff\x00")))
