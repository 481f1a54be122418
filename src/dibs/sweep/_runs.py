"""An attempt at a cell, and a cell with all of them, as readers see them. Pure: models, and nothing that reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._models import Artifact, Cell

__all__ = ["STATES", "CellStanding", "Run"]

STATES = ("done", "running", "waiting", "interrupted", "failed", "unsynced", "dropped")


@dataclass(frozen=True)
class Run:
    """One attempt at a cell. ``state``: running, done, failed or interrupted; ``cause``: in a word, why it ended badly.

    ``since``: when it began, by the clock of ``host``; ``took_s``: seconds, None while it runs. ``artifacts``: what it left,
    by name, as it was copied to ``final``; None if it does not say so. ``scripts``: file -> SHA-256 of what it ran;
    ``digest``: of the cell as it was then. ``quiet``: it runs and has not moved for its patience; ``gone``: it says that it runs, and
    its process, on this machine, is certainly dead. ``edited``: what its config was when it ended, if that was another by then.
    ``moved``: the store's stamp of its last write or beat.
    """

    n: int
    attempt: int
    state: str
    cause: str | None
    reason: str | None
    me: str
    host: str
    since: str | None
    took_s: float | None
    score: float | None
    artifacts: Mapping[str, Artifact] | None
    final: str | None
    scripts: Mapping[str, str]
    quiet: bool
    digest: str | None
    files: Mapping[str, str] = field(default_factory=dict)
    gone: bool = False
    edited: str | None = None
    moved: float = 0.0

    @property
    def at(self) -> tuple[int, int]:
        """Its trial and attempt."""
        return self.n, self.attempt


@dataclass(frozen=True)
class CellStanding:
    """A cell, the attempts at it, by number, and what they amount to.

    ``state``: done, running, waiting (nobody has it), interrupted (begun, and anybody may go on), failed, unsynced (it ended
    well and its results could not be copied), dropped. ``counts``: the attempt that speaks for it. ``waiting``: anybody may
    take it up now.
    """

    cell: Cell
    state: str
    runs: tuple[Run, ...]
    counts: Run | None
    waiting: bool

    @property
    def active(self) -> bool:
        """Whether the cell is to be run."""
        return not self.cell.dropped
