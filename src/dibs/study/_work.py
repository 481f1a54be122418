"""One worker's way through a study: claim, call the objective, close, until nothing is left for it.

It knows no processes: ``run`` calls it here, the pool calls it in each of its children. Whatever the objective
returns or raises becomes the attempt's end; only signals and the store's own errors leave this loop.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dibs.cell import UNLIMITED, Limits

from ._attempt import Attempt
from ._capped import Capped
from ._capture import captured
from ._claimer import Claiming
from ._events import Claimed
from ._loop import claim_next, failed_before
from ._session import Session
from ._slots import Slots
from ._trial import Trial

if TYPE_CHECKING:
    from ._runnable import Runnable

__all__ = ["Halt", "Objective", "Tally", "Terms", "work"]

Objective = Callable[[Trial], Any]
_COUNT_EVERY_S = 1.0


@dataclass(frozen=True)
class Halt:
    """The run takes up nothing new once so many trials have failed for good; ``now``: what still runs is interrupted."""

    fails: int
    now: bool = False


@dataclass(frozen=True)
class Terms:
    """How one run works on a study. ``until``: by the machine's monotonic clock, no claims after it.

    ``max_running``: trials that run at any time in the whole study, as far as those who say so can see to it.
    ``halt``: when failures of this run end it.
    """

    trials: int
    retries: int = 0
    until: float | None = None
    rescue_after_s: float | None = None
    grace_s: float = 30.0
    max_failures: int | None = 3
    wait: bool = False
    capture: bool = False
    limits: Limits = UNLIMITED
    max_running: int | None = None
    halt: Halt | None = None


@dataclass
class Tally:
    """What a worker has done. ``error``: what the last of its first failures raised, when it gave up.

    ``again``: of ``failed``, those that will be tried again. ``before``: the failures of those whose place it took, if they had nothing else.
    """

    before: int = 0
    ran: int = 0
    failed: int = 0
    done: int = 0
    again: int = 0
    why: str = "held"
    gave_up: bool = False
    error: BaseException | None = None
    trace: str = ""

    def only_failures(self, most: int | None) -> bool:
        """Whether so many of the first trials all failed; never for None."""
        return most is not None and self.ran == self.failed and self.before + self.failed >= most


def work(
    study: Runnable,
    objective: Objective,
    terms: Terms,
    session: Session,
    tally: Tally,
    *,
    worker: int = 0,
    counting: bool = False,
    hope: Callable[[], bool] = bool,
) -> None:
    """Run trials until nothing is left to claim; ``tally`` is kept up to date on the way.

    ``counting``: tell how the study stands, too. ``hope``: whether others of this run have succeeded where this worker has only failed.
    """
    with ExitStack() as at_end:
        claimer = _claiming(study, terms, session, at_end)
        poisoned = claimer.view.poisoned
        count_at = session.clock.monotonic()
        while True:
            got = claim_next(session, claimer, wait=terms.wait, until=terms.until, worker=worker)
            if counting and session.on_event is not None and session.clock.monotonic() >= count_at:
                began = session.clock.monotonic()
                session.tell(study.counted(claimer.trials))
                now = session.clock.monotonic()
                count_at = now + max(_COUNT_EVERY_S, 20 * (now - began))
            if not isinstance(got, Attempt):
                tally.failed += max(0, claimer.view.poisoned - poisoned)  # nobody else says that they failed
                tally.why = got.why
                return
            before = failed_before(claimer, got)
            trial = Trial(
                got, study.space, session, failed_before=before, retries=terms.retries, worker=worker,
                pruning=study.pruning(got),
            )  # fmt: skip
            session.tell(Claimed(got.n, got.attempt, worker))
            tally.ran += 1
            try:
                error = _try(trial, objective, session, capture=terms.capture)
            finally:
                tally.done += trial.state == "done"
                tally.failed += trial.state == "failed"
                tally.again += trial.state == "failed" and trial._again
            if terms.halt is not None and tally.failed - tally.again >= terms.halt.fails:
                tally.why = "halted"
                return
            if tally.only_failures(terms.max_failures) and not hope():
                tally.gave_up, tally.error = True, error
                tally.trace = "".join(traceback.format_exception(error)) if error is not None else trial._ended or ""
                return


def _claiming(study: Runnable, terms: Terms, session: Session, at_end: ExitStack) -> Claiming:
    claimer = study.claimer(terms.trials, terms.rescue_after_s)
    claiming: Claiming = claimer
    for cap in study.caps(terms.max_running):
        slots = Slots(study.store, cap.rack, cap.what, claimer.beat_s, study.stale_s, names=cap.names)
        capped = Capped(claiming, slots, session)
        at_end.callback(capped.leave)
        claiming = capped
    return claiming


def _try(trial: Trial, objective: Objective, session: Session, *, capture: bool) -> BaseException | None:
    """Run the objective on one trial and close it; returns what it raised, if that was its own affair."""
    raised: BaseException | None = None
    try:
        with trial:
            try:
                with captured(trial.log) if capture else nullcontext():
                    try:
                        with session.watched(trial), session.theirs():
                            value = objective(trial)
                    except BaseException:
                        if capture:
                            with suppress(
                                OSError, ValueError
                            ):  # a full disk, a closed stream: what it raised stays that
                                traceback.print_exc()
                        raise
            except BaseException as error:
                raised = error
                raise
            trial._returned(value)
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise  # the store's trouble, or somebody wants to end this
    except BaseException:  # sys.exit, a panic of a native library: recorded, and the next trial may do better
        session.check()
    return raised
