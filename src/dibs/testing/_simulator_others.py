"""Who takes part in a simulated study besides its workers: people who steer, readers, parents, a hand in the store."""

from __future__ import annotations

import contextlib
from random import Random
from typing import TYPE_CHECKING

from dibs.errors import NoResult, NotFound, StoreError, UsageError
from dibs.study import Study

from ._simulator_plan import WorkerPlan
from ._simulator_reading import standing
from ._simulator_watch import NAME, SPACE, create_study, persist
from .invariants import Reading

if TYPE_CHECKING:
    from ._simulator_actor import Actor

__all__ = ["hand", "judge", "reader", "steerer"]


def judge(actor: Actor, plan: WorkerPlan, n: int, attempt: int) -> None:
    """A parent process whose worker was ended, over a limit say, closes what the worker held."""
    study = persist(actor, lambda: create_study(actor.store, actor.plan, actor.name))
    claimer = study.claimer(max(plan.trials, n + 1))
    with contextlib.suppress(StoreError):
        claimer.close_lost(n, attempt, "over a limit", plan.retries)
    actor.retire()


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
