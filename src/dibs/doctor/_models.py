"""What the doctor says, as data: findings of one machine, and the outcome of a meeting of several. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["Checkup", "Clocks", "Delay", "Finding", "Guest", "Joined", "Lap", "Method", "Stamps", "Word"]

_FIRST_PACE_S, _SLOWEST_PACE_S = 0.002, 0.25


@dataclass(frozen=True)
class Finding:
    """One thing that was tried: ``ok``, ``note`` (works, but know it) or ``bad`` (no store can live with it)."""

    what: str
    how: Literal["ok", "note", "bad"]
    said: str


@dataclass(frozen=True)
class Stamps:
    """What file stamps (mtime) are like here. ``ahead_s``: of the machine's own clock, to within ``error_s``."""

    step_s: float  # what every stamp seen is a multiple of
    ahead_s: float
    error_s: float


@dataclass(frozen=True)
class Checkup:
    """What one machine can see of a folder. ``claim``: how a store claims here, or would; ``ways``: what works alone."""

    store: str
    mount: str
    findings: tuple[Finding, ...]
    stamps: Stamps
    ways: Mapping[str, str]  # link, open, mkdir -> "" or why it does not work
    claim: str
    used: bool  # there is a marker
    fine: bool
    verdict: str  # the sentence

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Lap:
    """What one racer saw of one lap. ``tried``: how many of the names it came to."""

    tried: int = 0
    won: list[int] = field(default_factory=list)
    unsure: list[int] = field(default_factory=list)
    robbed: int = 0  # how often it won and was told later that it had not
    broken: str = ""  # why this way does not work here
    attempt_s: float = 0.0

    def pace_s(self) -> float:
        """How long a winner should wait on average so that this racer catches up."""
        return min(_SLOWEST_PACE_S, self.attempt_s or _FIRST_PACE_S)


@dataclass(frozen=True)
class Guest:
    """One machine at a meeting. ``site`` names the mount it came through: two with one site stand for one machine."""

    me: str
    host: str
    pid: int
    mount: str
    site: str


#: what a race showed of a way to claim
Word: TypeAlias = Literal["exclusive", "lies", "missing", "unproven"]


@dataclass(frozen=True)
class Method:
    """What a race on ``names`` names showed. ``contested``: names at which the machines certainly met."""

    name: str
    word: Word
    why: str = ""
    names: int = 0
    one: int = 0  # names with one winner
    several: int = 0
    nobody: int = 0
    contested: int = 0
    differ: int = 0  # names that two machines read differently, or that do not show their winner
    won: tuple[int, ...] = ()  # by seat
    attempt_s: tuple[float, ...] = ()  # a typical attempt, by seat

    @property
    def bad(self) -> bool:
        """Whether no store may claim so here."""
        return self.word in ("lies", "missing")


@dataclass(frozen=True)
class Delay:
    """How late ``by`` (a seat) saw what ``of`` did, to within ``error_s``; None: not within ``limit_s``."""

    what: str
    of: int
    by: int
    late_s: float | None
    error_s: float
    limit_s: float

    def rank(self) -> tuple[bool, float]:
        """Later ones sort later, and last what was not seen at all."""
        return self.late_s is None, self.late_s or 0.0


@dataclass(frozen=True)
class Clocks:
    """Whose clock stamps files: ``server``, ``clients``, or ``unknown`` where the clocks agree too well to tell."""

    stamped_by: Literal["server", "clients", "unknown"]
    apart_s: float  # the machines' own clocks, at most
    error_s: float
    step_s: float


@dataclass(frozen=True)
class Joined:
    """The outcome of a meeting, the same on all machines but for ``seat``. ``written``: the keys that now say so."""

    store: str
    name: str
    seat: int
    guests: tuple[Guest, ...]
    sites: int
    methods: tuple[Method, ...]
    delays: tuple[Delay, ...]
    clocks: Clocks
    claim: str  # of the store, or what a new one here would use
    fine: bool
    verdict: str
    written: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
