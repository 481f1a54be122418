"""What a pass of a copy did, counted. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Copied", "Trouble"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that was not copied, and why."""

    key: str
    what: str


@dataclass
class Copied:
    """What one pass did. ``same``: was there already; ``kept``: the copy's is as late or later."""

    records: int = 0
    blobs: int = 0
    bytes: int = 0
    same: int = 0
    kept: int = 0
    skipped: int = 0
    troubles: list[Trouble] = field(default_factory=list)

    def add(self, other: Copied) -> None:
        """Count what the other one counted, too."""
        self.records += other.records
        self.blobs += other.blobs
        self.bytes += other.bytes
        self.same += other.same
        self.kept += other.kept
        self.skipped += other.skipped
        self.troubles += other.troubles
