"""A trial is a fold over its attempts by rank. Pure: no store, no clock, no chance.

done beats pruned beats failed beats everything else, and among equals the highest attempt counts, so a
trial once settled stays settled and no rescue un-does an acknowledged result. A failure with a retry left
(``again``) or with a release note ranks with the open ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from dibs.record import TrialRecord

__all__ = ["Folded", "Seen", "fold"]

_RANK = {"done": 3, "pruned": 2, "failed": 1}


class Seen(NamedTuple):
    """One attempt as a reader saw it. ``record`` is None if it did not parse: running since ``modified``."""

    n: int
    attempt: int
    record: TrialRecord | None
    modified: float  # the store's stamp of the last write or beat
    version: str = ""
    newer: bool = False  # unreadable because a later version wrote it: never judged quiet by this one
    empty: bool = False  # unreadable because nothing is written yet

    @property
    def state(self) -> str:
        return self.record.state if self.record is not None else "running"

    @property
    def closed(self) -> bool:
        return self.record is not None and self.record.state != "running"


class Folded(NamedTuple):
    """What a trial's attempts amount to."""

    n: int
    settled: bool  # done, pruned, or failed for good
    counts: Seen  # the attempt that speaks for the trial
    top: Seen  # the highest attempt
    waiting: bool  # not settled, and anybody may claim ``top.attempt + 1``

    @property
    def state(self) -> str:
        """done, pruned, failed, interrupted or running."""
        return self.counts.state


def rank(seen: Seen, released: Collection[int]) -> int:
    """3 done, 2 pruned, 1 failed for good, 0 everything that can still become something else."""
    record = seen.record
    if record is None:
        return 0
    if record.state == "failed" and (record.again or seen.attempt in released):
        return 0
    return _RANK.get(record.state, 0)


def fold(attempts: Sequence[Seen], released: Collection[int] = ()) -> Folded:
    """The trial behind its attempts (at least one, any order); ``released``: attempts with a release note."""
    if len(attempts) == 1:  # nearly always
        top = counts = attempts[0]
    else:
        top = max(attempts, key=lambda seen: seen.attempt)
        counts = max(attempts, key=lambda seen: (rank(seen, released), seen.attempt))
    settled = rank(counts, released) > 0
    waiting = not settled and (top.closed or top.attempt in released)
    return Folded(top.n, settled, counts, top, waiting)
