"""The read models: frozen, complete, and without a way back to the store.

Durations and ages are seconds. An age is a lower bound: it counts back from the newest stamp seen in the study.
Times ``..._at`` are for people.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dibs.search import Goals
from dibs.space import Space

from ._plain import POINT, POINTS, Plain
from ._runs import RunLine

__all__ = [
    "AttemptDetail",
    "Part",
    "Problem",
    "Replayed",
    "Row",
    "Running",
    "Script",
    "StoreStatus",
    "StudyLine",
    "StudyStatus",
    "TrialDetail",
]


@dataclass(frozen=True, slots=True)
class Problem(Plain):
    """Something in the store that does not read: which key, why, and what to do. ``newer``: a later version wrote it."""

    key: str
    why: str
    cure: str
    newer: bool = False


@dataclass(frozen=True, slots=True)
class Row(Plain):
    """One trial by the fold. ``waiting``: not settled, and anybody may take its next attempt.

    ``state`` "failed" with ``settled`` False is a failure with a retry left (or released by ``retry``).
    ``cause``: of a failure "objective", "limit" or "poison", of a running trial "quiet" if it is; else None.
    ``scores``: one for each goal, empty while there is none; with several ``score`` is None. ``constraints``: by name,
    met where the number is 0 or less; None if none was reported.
    """

    n: int
    attempt: int
    state: str
    settled: bool
    waiting: bool
    score: float | None
    step: int | None
    took_s: float | None
    me: str
    host: str
    reason: str | None
    started_at: str | None
    readable: bool = True
    cause: str | None = None
    point: dict[str, Any] = field(default_factory=dict, metadata=POINT)
    scores: tuple[float, ...] = ()
    constraints: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Running(Plain):
    """A running attempt of a trial that is not settled.

    ``beat_age_s``: since it last moved at all; ``report_age_s``: since its last report, None if it has made none.
    ``quiet``: no beat for longer than its patience. ``gone``: certainly dead, as seen from this machine.
    ``stuck``: a hint, it beats but has stopped reporting. ``released``: anybody may take the next attempt.
    """

    n: int
    attempt: int
    me: str
    host: str
    pid: int
    started_at: str | None
    beat_age_s: float
    report_age_s: float | None
    step: int | None
    score: float | None
    quiet: bool
    gone: bool
    stuck: bool
    released: bool
    readable: bool


@dataclass(frozen=True, slots=True)
class Part(Plain):
    """Who took part under one name on one machine: processes seen, attempts claimed, and how they stand."""

    me: str
    host: str
    processes: int
    attempts: int
    done: int
    running: int


@dataclass(frozen=True, slots=True)
class Script(Plain):
    """A version of a script that `dibs exec` has run in a study, by digest; ``command`` and ``me``: of its first run."""

    file: str
    digest: str
    command: str
    me: str


@dataclass(frozen=True, slots=True)
class StudyStatus(Plain):
    """Everything about a study at a glance.

    ``counts``: trials by state, adding up to the larger of ``of`` and the number of trials: done, pruned, failed (for
    good), running, interrupted, again (failed, to be tried once more), unclaimed. ``failed_by``: those failed for good
    by cause, objective, limit (over one) and poison. ``waiting``: how many of them anybody may take up now.
    ``queued``: wishes no trial carries yet. ``newest_at``: the newest stamp seen, by the store's clock; ``still_s``: how
    long ago that is by this machine's clock, which decides nothing. ``best``: None where there are several goals;
    ``front``: then the trials nobody dominates.
    """

    study: str
    store: str
    goal: Goals | None
    space: Space | None
    sampler: dict[str, Any] | None
    pruner: dict[str, Any] | None
    seed: int | None
    stale_s: float
    max_step: int | None
    of: int
    counts: dict[str, int]
    failed_by: dict[str, int]
    waiting: int
    stopped: bool
    best: Row | None
    running: tuple[Running, ...]
    attached: int
    machines: int
    processes: int
    parts: tuple[Part, ...]
    problems: tuple[Problem, ...]
    newest_at: str | None
    still_s: float | None
    queued: tuple[dict[str, Any], ...] = field(default=(), metadata=POINTS)
    front: tuple[Row, ...] = ()
    programs: tuple[Script, ...] = ()

    @property
    def settled(self) -> int:
        """How many trials are settled: done, pruned or failed for good."""
        return self.counts["done"] + self.counts["pruned"] + self.counts["failed"]

    @property
    def complete(self) -> bool:
        """Whether every trial asked for is settled."""
        return self.of > 0 and self.settled >= self.of


@dataclass(frozen=True, slots=True)
class StudyLine(Plain):
    """A study in the list of a store. ``front``: where there are several goals, how many trials nobody dominates."""

    study: str
    goal: Goals | None
    of: int
    counts: dict[str, int]
    best: float | None
    stopped: bool
    problems: int
    newest_at: str | None
    still_s: float | None
    front: int | None = None


@dataclass(frozen=True, slots=True)
class StoreStatus(Plain):
    """What a store holds. ``claim`` and ``verdict`` are what its marker says; ``sweeps``: their names; ``runs``: of
    federated rounds.
    """

    store: str
    claim: str | None
    verdict: str | None
    studies: tuple[StudyLine, ...]
    runs: tuple[RunLine, ...] = ()
    sweeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptDetail(Plain):
    """One attempt in full. ``curve``: (step, value) pairs, from the blob or, while it runs, as last shown.

    ``log`` and ``folder`` are local paths, None where there is none on this machine. ``problem``: what of it does not
    read. ``age_s``: since its record last moved. ``verdict``: of the pruner that stopped it: pruner, reason, seen.
    ``ended``: of a program that ended badly: its cause, and what was seen.
    """

    attempt: int
    key: str
    state: str
    score: float | None
    step: int | None
    reason: str | None
    again: bool
    released: bool
    started_at: str | None
    took_s: float | None
    age_s: float
    me: str
    host: str
    pid: int
    curve: tuple[tuple[int, float], ...]
    traceback: str | None
    verdict: dict[str, Any] | None
    files: dict[str, str]
    blob: str | None
    folder: str | None
    log: str | None
    problem: Problem | None = None
    scores: tuple[float, ...] = ()
    constraints: dict[str, float] | None = None
    ended: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Replayed(Plain):
    """The point asked for again. ``matches`` None: it could not be recomputed, and ``said`` says why."""

    matches: bool | None
    point: dict[str, Any] | None
    said: str


@dataclass(frozen=True, slots=True)
class TrialDetail(Plain):
    """One trial in full: what it amounts to, and every attempt, by number."""

    study: str
    store: str
    goal: Goals | None
    row: Row
    seed: int | None
    wish: str | None
    attempts: tuple[AttemptDetail, ...]
    replay: Replayed | None = None
