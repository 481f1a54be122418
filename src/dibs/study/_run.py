"""``Study.run``: the loop with progress and a clean end, here or in worker processes, and what came of it.

A run ends when nothing is left that this caller could claim. What other machines still hold is theirs: the
summary names it, and ``wait=True`` waits for it.
"""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dibs.cell import UNLIMITED, Limits, resident
from dibs.errors import UsageError
from dibs.record import TrialRecord

from ._events import OnEvent, Said
from ._loop import refuse_while_importing
from ._progress import Progress
from ._results import TrialResult, best_of, counts_of, front_of
from ._session import Session
from ._work import Halt, Objective, Tally, Terms, work

if TYPE_CHECKING:
    from ._devices import Devices
    from ._runnable import Runnable

__all__ = ["Holder", "RunSummary", "run", "summary_of"]

log = logging.getLogger("dibs")


@dataclass(frozen=True)
class Holder:
    """A trial that somebody else is running: who, and since when by their own clock (for people only)."""

    n: int
    attempt: int
    me: str
    since: str | None


@dataclass(frozen=True)
class RunSummary:
    """How a run ended. ``states``: the study's trials by state; ``ran`` and ``failed``: attempts of this run.

    ``why``: "settled" (all N), "exhausted" (the sampler has no more points), "held" (others run the rest),
    "stopped" (the study is), "time" (``time_s`` is over), "halted" (enough have failed), "queued" (a wish waits for a larger N).
    ``machines`` and ``processes``: how many took part in the study so far.
    ``best``: None where there are several goals; ``front``: then the trials nobody dominates, by index.
    """

    trials: int
    states: Mapping[str, int]
    ran: int
    failed: int
    unfinished: bool
    why: str
    held: tuple[Holder, ...]
    best: TrialResult | None
    machines: int
    processes: int
    front: tuple[TrialResult, ...] = ()


def run(
    study: Runnable,
    objective: Objective,
    trials: int,
    workers: int = 1,
    *,
    retries: int = 0,
    time_s: float | None = None,
    rescue_after_s: float | None = None,
    grace_s: float = 30.0,
    max_failures: int | None = 3,
    wait: bool = False,
    limits: Limits = UNLIMITED,
    max_running: int | None = None,
    halt: Halt | None = None,
    capture: bool = False,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> RunSummary:
    """Run ``objective(trial) -> score`` on every trial that can be claimed; see :meth:`Study.run`."""
    _check(objective, workers, retries, time_s, grace_s, max_failures, limits, max_running)
    if on_event is not None and not callable(on_event):
        raise UsageError(f"on_event must be a function of an event, not {on_event!r:.60}")
    clock = study.store.machine.clock
    until = None if time_s is None else clock.monotonic() + time_s
    terms = Terms(
        trials=trials, retries=retries, until=until, rescue_after_s=rescue_after_s, grace_s=grace_s,
        max_failures=max_failures, wait=wait, capture=capture, limits=limits, max_running=max_running,
        halt=halt,
    )  # fmt: skip
    pooled = workers > 1 or bool(limits)
    pickled = _packed(study, objective, "workers > 1" if workers > 1 else "a limit") if pooled else b""
    devices = _devices(study, limits.gpus) if limits.gpus is not None else None
    shown: Progress | None = None
    if on_event is None and progress is not False:
        shown = Progress(trials, study.goal)
        on_event = shown.event
    tally = Tally()
    claimer = study.claimer(trials)
    size = claimer.trials
    try:
        study.view.refresh()
        if on_event is not None:
            on_event(study.counted(size))
        if not pooled:
            _here(study, objective, terms, tally, on_event)
        elif claimer.open():  # else there is nothing to do, and no process is started
            tally = _pooled(study, pickled, terms, min(workers, max(1, size)), size, on_event, devices)
        else:
            tally.why = "settled"
        summary = summary_of(study, trials, tally)
        if on_event is not None:
            on_event(study.counted(size))
        if shown is not None and summary.why == "time":
            shown.event(Said(logging.WARNING, "the time is over: no new trials", 0))
        if tally.error is not None:
            if summary.unfinished:
                raise tally.error
            log.warning("a worker could not go on, the others finished without it: %s", tally.error)
        return summary
    finally:
        if shown is not None:
            shown.close()


def summary_of(study: Runnable, trials: int, tally: Tally | None = None) -> RunSummary:
    """The study as it stands, and what this run did in it."""
    tally = tally or Tally()
    view = study.view
    view.refresh(last=True)
    claimer = study.claimer(trials)
    size = claimer.trials
    unfinished = claimer.open()
    goal = study.goal
    best = [] if isinstance(goal, tuple) or goal is None else best_of(view, goal, 1)
    running = [seen for seen in view.running() if claimer.wants(seen.n)]
    held = tuple(Holder(seen.n, seen.attempt, *_holder(seen.record)) for seen in running)
    rare = [seen.record for trial in view.specials() for seen in view.seens(trial.n).values()]
    whos = view.table.whos() | {record.who for record in rare if record is not None}
    return RunSummary(
        trials=trials,
        states=counts_of(view),
        ran=tally.ran,
        failed=tally.failed,
        unfinished=unfinished,
        why=_why(study, tally, unfinished, size < trials),
        held=held,
        best=best[0] if best else None,
        machines=len({who.host for who in whos}),
        processes=len({(who.host, who.boot, who.pid, who.token) for who in whos}),
        front=tuple(front_of(view, goal)) if isinstance(goal, tuple) else (),
    )


def _holder(record: TrialRecord | None) -> tuple[str, str | None]:
    return (record.who.me, record.started_at) if record is not None else ("?", None)


def _why(study: Runnable, tally: Tally, unfinished: bool, exhausted: bool) -> str:
    if unfinished:
        if study.view.notes.stopped:
            return "stopped"
        return tally.why if tally.why in ("time", "halted") else "held"
    if study.view.wishes():
        return "queued"
    return "exhausted" if exhausted else "settled"


def _here(study: Runnable, objective: Objective, terms: Terms, tally: Tally, on_event: OnEvent | None) -> None:
    session = Session(study.store.machine.clock, grace_s=terms.grace_s, on_event=on_event)
    with session:
        work(study, objective, terms, session, tally, counting=True)
    if tally.gave_up:
        if isinstance(tally.error, Exception):
            raise tally.error
        # a SystemExit would end the caller with a code that is the objective's own
        last = tally.trace if tally.error is None else "".join(traceback.format_exception_only(tally.error)).strip()
        raise UsageError(f"the first {tally.failed} trials all failed; the last one: {last}") from tally.error


def _packed(study: Runnable, objective: Objective, why: str) -> bytes:
    from ._packed import packed  # multiprocessing is loaded only where processes are wanted

    return packed(study, objective, why)


def _devices(study: Runnable, count: int) -> Devices:
    from ._devices import Devices, pool_of

    beat_s = study.claimer(0).beat_s
    return Devices(study.store, pool_of(os.environ, count), count, os.environ, study.me, beat_s, study.stale_s)


def _pooled(
    study: Runnable,
    payload: bytes,
    terms: Terms,
    workers: int,
    size: int,
    on_event: OnEvent | None,
    devices: Devices | None,
) -> Tally:
    from ._pool import Pool

    return Pool(study, payload, terms, workers, size, on_event, devices).run()


def _check(
    objective: Any,
    workers: Any,
    retries: Any,
    time_s: float | None,
    grace_s: float,
    max_failures: int | None,
    limits: Any,
    max_running: int | None,
) -> None:
    refuse_while_importing()
    if not callable(objective):
        raise UsageError(f"the objective must be a function of a trial, not {objective!r:.60}")
    counts = (
        ("workers", workers, 1), ("retries", retries, 0), ("max_failures", max_failures, 1),
        ("max_running", max_running, 1),
    )  # fmt: skip
    for name, value, least in counts:
        if value is None and name.startswith("max_"):
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name} must be an integer of at least {least}, not {value!r}")
    if time_s is not None and not (isinstance(time_s, int | float) and time_s > 0):
        raise UsageError(f"time_s must be a positive number of seconds, not {time_s!r}")
    if not isinstance(limits, Limits):
        raise UsageError(f"limits must be dibs.study.Limits(...), not {limits!r:.60}")
    if limits.memory_bytes is not None and resident(os.getpid()) is None:
        raise UsageError("memory_bytes needs /proc, where what a process holds can be read: there is none here")
    if not (isinstance(grace_s, int | float) and grace_s >= 0):
        raise UsageError(f"grace_s must be a number of seconds, not {grace_s!r}")
