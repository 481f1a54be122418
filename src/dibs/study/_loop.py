"""The loop over trials: claim, hand over, look after what is left open, claim again."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable, Iterator

from dibs.errors import NotOwner, StoreError, UsageError
from dibs.space import Space

from ._attempt import Attempt
from ._claimer import Claiming, Idle
from ._events import Waiting
from ._pruning import Pruning
from ._session import Session
from ._succession import failed_attempts
from ._trial import Trial

__all__ = [
    "UNGUARDED", "claim_next", "close_left_open", "failed_before", "held_by_others", "loop", "refuse_while_importing",
]  # fmt: skip

log = logging.getLogger("dibs")
UNGUARDED = 90  # exit code of a worker process that came by a loop while it imported the program
_PASSING = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0


def loop(
    session: Session,
    claimer: Claiming,
    space: Space,
    *,
    wait: bool,
    pruning: Callable[[Attempt], Pruning | None] = lambda _: None,
) -> Iterator[Trial]:
    """Yield claimed trials until there is nothing to claim (with ``wait``: until all are settled)."""
    refuse_while_importing()
    with session:
        said = False
        while isinstance(got := claim_next(session, claimer, wait=wait), Attempt):
            trial = Trial(got, space, session, pruning=pruning(got))
            try:
                with session.theirs():
                    yield trial
                if not (said or trial._over or session.draining) and trial._ours:
                    said = True
                    log.warning(
                        "%s was left open, so it is interrupted and will be tried again: put the loop's body under "
                        "`with trial:`, or call trial.done(score)", trial._called,
                    )  # fmt: skip
            finally:
                close_left_open(trial)
            if not session.ours:
                raise UsageError(
                    "this loop belongs to the process that was forked: ask for trials() again in the child"
                )


def claim_next(
    session: Session, claimer: Claiming, *, wait: bool, until: float | None = None, worker: int = 0
) -> Attempt | Idle:
    """The next attempt, or why there is none; "capped" is waited out, and "held" with ``wait``.

    ``until``: by the session's monotonic clock, no claims after it ("time"). Raises what a signal asked for.
    """
    pause_s = _FIRST_PAUSE_S
    told = ""
    while True:
        session.check()
        if until is not None and session.clock.monotonic() >= until:
            return Idle("time")
        got = _step(session, claimer)
        if isinstance(got, Attempt):
            if session.draining:  # the signal came while it was being claimed: nothing new begins after one
                got.close("interrupted", reason=session.reason)
                session.check()
            return got
        if got.why != "capped" and not (wait and got.why == "held"):
            return got
        if told != got.why:
            told = got.why
            session.tell(Waiting(len(held_by_others(claimer)), worker, got.said))
        left_s = pause_s if until is None else min(pause_s, max(0.0, until - session.clock.monotonic()))
        session.wait(left_s)
        pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)


def _step(session: Session, claimer: Claiming) -> Attempt | Idle:
    """One step; an outage that may pass is waited out for as long as a doubtful write is pursued."""
    deadline: float | None = None
    pause_s = _FIRST_PAUSE_S
    while True:
        session.check()
        try:
            return claimer.step()
        except StoreError as wrong:
            now = session.clock.monotonic()
            if deadline is None:
                deadline = now + claimer.view.store.settler.patience_s
            if now >= deadline or not _may_pass(wrong):
                raise
            log.warning("%s; trying again", wrong)
        session.wait(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)


def _may_pass(wrong: StoreError) -> bool:
    """Whether it may work in a moment: an outage, a full disk; not damage, a missing right or a doubt pursued already."""
    cause = wrong.__cause__
    return wrong.passing or (isinstance(cause, OSError) and cause.errno in _PASSING)


def held_by_others(claimer: Claiming) -> list[int]:
    """The trials of this worker's that somebody is running."""
    return [seen.n for seen in claimer.view.running() if claimer.wants(seen.n)]


def close_left_open(trial: Trial) -> None:
    """The loop went on (or ended) without closing the trial: it is interrupted, and anybody may take it up."""
    if trial._over or not trial._ours:
        return
    try:
        trial.interrupt("left open")
    except NotOwner as lost:
        log.warning("%s: %s", trial._called, lost)
    except StoreError as wrong:  # while the loop is being left: the trial is found quiet, or dead with this process
        log.warning("%s is left running: %s", trial._called, wrong)


def failed_before(claimer: Claiming, attempt: Attempt) -> int:
    """How many earlier attempts at the trial failed."""
    return failed_attempts(claimer.view.seens(attempt.n), attempt.attempt)


def refuse_while_importing() -> None:
    """No loop in a fresh process that is still importing the program: there the `__main__` guard is missing."""
    processes = sys.modules.get("multiprocessing.process")
    current = processes.current_process() if processes is not None else None
    if not getattr(current, "_inheriting", False):
        return
    if current is not None and current.name.startswith("dibs-worker-"):
        os._exit(UNGUARDED)  # its parent says it, once for all of them
    raise UsageError(
        "a new process that imports the program came by here: put the loop under `if __name__ == '__main__':`"
    )
