"""What a trial's record holds, as frozen structs that msgspec fills straight from the bytes.

Every field but the head has a default, so that a record of an earlier minor writer still reads.
A ``point`` here is still JSON (a tuple is ``{"tuple": [...]}``); ``decode_trial`` turns it into values.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

__all__ = ["CLOSED", "STATES", "Closed", "Roll", "State", "TrialRecord", "Who", "is_closed"]

State = Literal["running", "done", "pruned", "failed", "interrupted"]
STATES: tuple[str, ...] = ("running", "done", "pruned", "failed", "interrupted")
CLOSED = frozenset(STATES[1:])  # an attempt in one of these will never change again


def is_closed(state: object) -> bool:
    """Whether it is a state that never changes again. Of a body not checked yet it may be anything, a list too."""
    return isinstance(state, str) and state in CLOSED


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # what a column of 64 bits can hold
Goal = Literal["min", "max"]
Goals = Goal | Annotated[tuple[Goal, ...], msgspec.Meta(min_length=2, max_length=8)]


class Who(msgspec.Struct, frozen=True):
    """Which process wrote it. ``token`` is ``<pid namespace>-<process start>``; empty strings = not known."""

    me: str = ""
    host: str = ""
    boot: str = ""
    pid: int = 0
    token: str = ""


class TrialRecord(msgspec.Struct, frozen=True):
    """One attempt at a trial. Times ``..._at`` are for people, durations ``..._s`` are seconds.

    With several goals ``scores`` has one number for each, in their order, and ``score`` is None.
    """

    v: int
    kind: Literal["trial"]
    study: str
    n: Count
    attempt: Count
    state: State
    nonce: str
    point: dict[str, Any]
    goal: Goals | None = None
    of: Count = 0
    seed: Count = 0
    score: float | None = None
    step: Count | None = None
    reason: str | None = None
    again: bool = False
    wish: str | None = None
    contract: str | None = None
    blob: str | None = None
    files: dict[str, str] = msgspec.field(default_factory=dict)
    beat_s: float = 60.0
    took_s: float | None = None
    started_at: str | None = None
    scores: tuple[float, ...] | None = None
    constraints: dict[str, float] | None = None  # each is met if it is 0 or less
    saw: Any = None  # what the asker had seen; not validated here, whoever replays looks closely
    who: Who = Who()

    @property
    def closed(self) -> bool:
        """Whether the attempt will never change again."""
        return self.state != "running"


class Closed(msgspec.Struct, frozen=True, gc=False):
    """What a reader keeps of a closed attempt it finds in a roll; ``who`` stays bytes, to be told apart cheaply."""

    v: int
    kind: Literal["trial"]
    study: str
    n: Count
    attempt: Count
    state: Literal["done", "pruned", "failed", "interrupted"]
    point: dict[str, Any]
    score: float | None = None
    step: Count | None = None
    seed: Count = 0
    of: Count = 0
    again: bool = False
    goal: Goals | None = None
    wish: str | None = None
    contract: str | None = None
    reason: str | None = None
    blob: str | None = None
    took_s: float | None = None
    started_at: str | None = None
    scores: tuple[float, ...] | None = None
    constraints: dict[str, float] | None = None
    who: msgspec.Raw = msgspec.Raw(b"{}")


class Roll(msgspec.Struct, frozen=True):
    """A cache of closed attempts of one study: ``<n>-<attempt>`` -> the record as it was."""

    v: int
    kind: Literal["roll"]
    study: str
    records: dict[str, Closed]
