"""One worker of the torture: a fresh process that works on the study in one of the ways there are, until it is done.

``python -m dibs.testing._torture_worker '{...}'``. Exit 0: nothing left to claim; 3: the store failed; 143: SIGTERM;
whatever else it ends with, unkilled, is a fault. It looks after nothing but its own journal.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from dibs import SpaceError, StoreError, Study
from dibs._canon import digest
from dibs._clock import SystemClock
from dibs.errors import NotOwner
from dibs.search import Sobol
from dibs.study import report, take
from dibs.study._attempt import Attempt
from dibs.study._events import Closed, Event
from dibs.study._functions import _place, _taken

from ._torture_objective import (
    FAILURE,
    SPACE,
    STUDY,
    Hurried,
    Journal,
    Objective,
    bounds_of,
    hurry,
    journal_of,
    plan_of,
    score_of,
    text_of,
)
from ._torture_orders import Orders, WrongClock, opened

__all__ = ["MODES", "main"]

STEERING = ("wish", "stop", "resume", "rescue", "retry", "attach")


def joined(orders: Orders) -> Study:
    """The study, created by whoever comes first."""
    return Study(
        opened(orders), STUDY, SPACE, goal="min", sampler=Sobol(), seed=orders.seed, stale_s=orders.stale_s,
        me=orders.me,
    )  # fmt: skip


def objective_of(orders: Orders) -> Objective:
    kind = Hurried if orders.hurry else Objective
    return kind(orders.journals, orders.me, f"{orders.folder}/scratch", orders.shortest_s, orders.longest_s)


# the ways to work


def trials(orders: Orders, journal: Journal) -> None:
    """``for trial in study.trials(n): with trial: ...``"""
    study, objective = joined(orders), objective_of(orders)
    for trial in study.trials(orders.of, wait=orders.wait, rescue_after_s=orders.rescue_after_s):
        with trial:
            objective(trial)
        if trial.closed:
            score = score_of(trial.n, trial.attempt) if trial.state == "done" else None
            journal.say("told", n=trial.n, a=trial.attempt, state=trial.state, score=score)


def run(orders: Orders, journal: Journal, workers: int = 1) -> None:
    """``study.run(objective, n)``"""

    def told(event: Event) -> None:
        if isinstance(event, Closed):
            journal.say("told", n=event.n, a=event.attempt, state=event.state, score=event.score)

    joined(orders).run(
        objective_of(orders), orders.of, workers, rescue_after_s=orders.rescue_after_s, max_failures=None,
        wait=orders.wait, retries=1, grace_s=2.0, on_event=told,
    )  # fmt: skip


def pool(orders: Orders, journal: Journal) -> None:
    """``study.run(objective, n, workers=2)``"""
    run(orders, journal, 2)


def functions(orders: Orders, journal: Journal) -> None:
    """take and report, from an index of its own on and round again."""
    study = joined(orders)
    store, sampler = study.store, study.claimer(orders.of).sampler
    first = Random(orders.me).randrange(orders.of)
    for n in [*range(first, orders.of), *range(first)]:
        point = sampler.ask(SPACE, n)
        assert point is not None
        taken = take(store, point, study=STUDY, trial=n, me=orders.me, of=orders.of, goal="min")
        if taken is None:
            continue
        mine = _taken[_place(store), STUDY, n]
        assert isinstance(mine, Attempt)
        journal.say(
            "claimed", n=n, a=taken.attempt, nonce=mine.nonce, point=text_of(taken.point), seed=taken.seed
        )  # fmt: skip
        plan = plan_of(taken.seed, taken.attempt, orders.shortest_s, orders.longest_s)
        curve: list[float] = []
        try:
            for step in range(plan.steps):
                SystemClock().sleep(plan.step_s)
                curve.append(score_of(n, taken.attempt) if step == plan.steps - 1 else 1000.0 - step)
                report(store, taken.point, curve, study=STUDY, trial=n)
            state, reason = ("failed", FAILURE) if plan.fails else ("done", None)
            bounds = bounds_of(n, taken.attempt) if state == "done" else None
            report(store, taken.point, curve, study=STUDY, trial=n, state=state, reason=reason, constraints=bounds)
        except NotOwner as wrong:
            journal.say("lost", n=n, a=taken.attempt, why=str(wrong))
            continue
        score = curve[-1] if state == "done" else None
        journal.say("told", n=n, a=taken.attempt, state=state, score=score, constraints=bounds)


def steer(orders: Orders, journal: Journal) -> None:
    """What people do to a study while it runs."""
    study = joined(orders)
    chance = Random(orders.me)
    for step in orders.steps:
        if step in ("wish", "attach"):
            point = SPACE.check(
                {
                    "x": chance.random(),
                    "rate": 1e-3,
                    "depth": chance.randint(1, 8),
                    "kind": chance.choice([1, 1.0, True]),
                }
            )
            if step == "attach":
                study.attach(point, chance.random())
            else:
                new = study.enqueue(point)
                journal.say("wished", digest=digest(text_of(point)), point=text_of(point), new=new)
        elif step == "rescue":
            journal.say("rescued", pairs=study.rescue())
        elif step == "retry":
            journal.say("retried", trials=study.retry())
        elif step in ("stop", "resume"):
            journal.say(step, changed=study.stop() if step == "stop" else study.resume())
            SystemClock().sleep(0.2)
        else:
            raise SpaceError(f"{step!r} is none of {', '.join(STEERING)}")


MODES: dict[str, Callable[[Orders, Journal], None]] = {
    "trials": trials, "run": run, "pool": pool, "functions": functions, "steer": steer,
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Work as told; the exit code says how it ended."""
    orders = Orders.of_text(arguments[0])
    if orders.hurry:
        hurry()
    logging.basicConfig(format="%(relativeCreated)d %(levelname)s %(message)s", level=logging.INFO)
    Path(orders.journals).mkdir(parents=True, exist_ok=True)
    journal = journal_of(orders.journals, orders.me)
    wall = WrongClock(SystemClock(), orders.skew_s).wall()
    journal.say("began", mode=orders.mode, of=orders.of, wall=wall)
    try:
        MODES[orders.mode](orders, journal)
    except StoreError as wrong:
        logging.exception("the store failed")
        journal.say("gave up", why=str(wrong))
        return 3
    journal.say("ended")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
