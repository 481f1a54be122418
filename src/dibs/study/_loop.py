"""The loop behind ``Study.trials``: claim, hand over, look after what is left open, claim again."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from dibs.errors import NotOwner
from dibs.space import Space

from ._attempt import Attempt
from ._claimer import Claimer, Idle
from ._session import Session
from ._trial import Trial

__all__ = ["failed_before", "loop", "poll_s"]

log = logging.getLogger("dibs")


def loop(session: Session, claimer: Claimer, space: Space, *, wait: bool) -> Iterator[Trial]:
    """Yield claimed trials until there is nothing to claim (with ``wait``: until all are settled)."""
    with session:
        pause_s = 0.05
        while True:
            session.check()
            got = claimer.step()
            if isinstance(got, Attempt):
                pause_s = 0.05
                trial = Trial(got, space, session)
                try:
                    yield trial
                finally:
                    close_left_open(trial)
                continue
            if not (wait and got == Idle("held")):
                return
            session.wait(pause_s)
            pause_s = poll_s(pause_s)


def poll_s(pause_s: float) -> float:
    """The next pause of somebody who waits for others: doubling up to 5 s."""
    return min(5.0, 2 * pause_s)


def close_left_open(trial: Trial) -> None:
    """The loop went on (or ended) without closing the trial: it is interrupted, and anybody may take it up."""
    if trial.closed:
        return
    try:
        trial.interrupt("left open")
    except NotOwner as lost:
        log.warning("trial %d: %s", trial.n, lost)


def failed_before(claimer: Claimer, attempt: Attempt) -> int:
    """How many earlier attempts at the trial failed."""
    known = claimer.view.attempts.get(attempt.n, {})
    return sum(1 for k, seen in known.items() if k < attempt.attempt and seen.state == "failed")
