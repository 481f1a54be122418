"""What a run tells while it goes: small frozen facts, sent from worker processes to whoever shows them.

An event may be dropped (a worker never waits for a reader), so nothing is ever decided by one; the records
decide. ``worker`` numbers the processes of one run from 0; a replacement gets a number of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

__all__ = [
    "Claimed", "Closed", "Counted", "Ended", "Event", "OnEvent", "Ready", "Reported", "Said", "Stopping", "Waiting",
    "WorkerDied",
]  # fmt: skip


class Ready(NamedTuple):
    """A worker has loaded the objective and is about to claim."""

    worker: int
    pid: int


class Claimed(NamedTuple):
    """A worker has begun a trial."""

    n: int
    attempt: int
    worker: int


class Reported(NamedTuple):
    """One step of a running trial's curve; at most a few a second."""

    n: int
    attempt: int
    step: int
    score: float
    worker: int


class Closed(NamedTuple):
    """A worker has closed an attempt. ``again``: it will be tried again; ``took_s``: seconds since the claim.

    ``scores``: where there are several goals, one for each. ``feasible``: no constraint is broken.
    """

    n: int
    attempt: int
    state: str
    score: float | None
    took_s: float
    reason: str | None
    again: bool
    worker: int
    scores: tuple[float, ...] = ()
    feasible: bool = True


class Counted(NamedTuple):
    """The whole study as just read, all machines: trials by state, the best score, and N.

    ``front``: where there are several goals, how many trials nobody dominates.
    """

    states: dict[str, int]
    best: float | None
    total: int
    front: int | None = None


class Waiting(NamedTuple):
    """Nothing is left to claim, or nothing may be claimed now: others hold this many trials; ``why`` in words."""

    held: int
    worker: int
    why: str = ""


class Ended(NamedTuple):
    """A worker is through; ``why`` there was nothing more to claim."""

    worker: int
    ran: int
    failed: int
    why: str


class WorkerDied(NamedTuple):
    """A worker process ended without having said so; ``cause`` in words, ``replaced`` by a new one or not."""

    worker: int
    pid: int
    cause: str
    replaced: bool


class Stopping(NamedTuple):
    """No new trials from now on; ``interrupting``: the running ones are asked to end too."""

    reason: str
    interrupting: bool


class Said(NamedTuple):
    """A line of a worker's ``dibs`` log."""

    level: int
    text: str
    worker: int


Event: TypeAlias = (
    Ready | Claimed | Reported | Closed | Counted | Waiting | Ended | WorkerDied | Stopping | Said
)  # fmt: skip
OnEvent: TypeAlias = Callable[[Event], None]
