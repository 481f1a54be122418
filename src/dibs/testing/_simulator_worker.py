"""Simulated workers of both APIs and their objectives. They call the real code and nothing else."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dibs
from dibs.errors import NotOwner, StoreError, UsageError
from dibs.study import Study, Trial, report, take
from dibs.study._attempt import Attempt
from dibs.study._claimer import Claimer, Idle
from dibs.study._loop import close_left_open, failed_before
from dibs.study._session import Session

from ._simulator_plan import WorkerPlan
from ._simulator_watch import NAME, SPACE, adopt, create_study, persist

if TYPE_CHECKING:
    from ._simulator_actor import Actor

__all__ = ["worker"]

CHECKPOINTS = sorted(Path(dibs.__file__).parent.rglob("__init__.py"))  # any files; each is saved once by an attempt


class Planned(Exception):
    """An objective that fails because the plan says so."""


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
            if got == Idle("stopped") and actor.stage.closed and not actor.plan.stay_stopped:
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
