"""What a trial's record holds, as frozen structs that msgspec fills straight from the bytes.

Every field but the head has a default, so that a record of an earlier minor writer still reads.
A ``point`` here is still JSON (a tuple is ``{"tuple": [...]}``); ``decode_trial`` turns it into values.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = ["CLOSED", "STATES", "State", "TrialRecord", "Who"]

State = Literal["running", "done", "pruned", "failed", "interrupted"]
STATES: tuple[str, ...] = ("running", "done", "pruned", "failed", "interrupted")
CLOSED = frozenset(STATES[1:])  # an attempt in one of these will never change again


class Who(msgspec.Struct, frozen=True):
    """Which process wrote it. ``token`` is ``<pid namespace>-<process start>``; empty strings = not known."""

    me: str = ""
    host: str = ""
    boot: str = ""
    pid: int = 0
    token: str = ""


class TrialRecord(msgspec.Struct, frozen=True):
    """One attempt at a trial. Times ``..._at`` are for people, durations ``..._s`` are seconds."""

    v: int
    kind: Literal["trial"]
    study: str
    n: int
    attempt: int
    state: State
    nonce: str
    point: dict[str, Any]
    goal: Literal["min", "max"] | None = None
    of: int = 0
    seed: int = 0
    score: float | None = None
    step: int | None = None
    reason: str | None = None
    again: bool = False
    wish: str | None = None
    contract: str | None = None
    blob: str | None = None
    files: dict[str, str] = msgspec.field(default_factory=dict)
    beat_s: float = 60.0
    took_s: float | None = None
    started_at: str | None = None
    who: Who = Who()

    @property
    def closed(self) -> bool:
        """Whether the attempt will never change again."""
        return self.state != "running"
