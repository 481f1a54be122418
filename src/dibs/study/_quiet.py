"""Quiet is not dead: how long a running attempt may stand still, and when a trial is poison. Pure.

Patience doubles with every quiet attempt of the trial. Ages are differences of the store's own stamps;
some file systems stamp with the client's clock, so an automatic rescue also has to watch (``Watch``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ._fold import Seen

__all__ = ["INTERRUPTED_LIMIT", "QUIET_LIMIT", "Watch", "beat_s_of", "counts", "is_quiet", "patience_s", "poisoned"]

QUIET_LIMIT = 3
INTERRUPTED_LIMIT = 10
DEFAULT_BEAT_S = 60.0
FOLDER_BEAT_S, BUCKET_BEAT_S = (1.0, 60.0), (30.0, 600.0)  # in a bucket each beat is a rewrite, and paid for


def beat_s_of(stale_s: float, *, folder: bool = True) -> float:
    """Seconds between beats: a sixth of ``stale_s``, within 1-60 on a folder and 30-600 on a bucket."""
    low, high = FOLDER_BEAT_S if folder else BUCKET_BEAT_S
    return min(high, max(low, stale_s / 6))


def counts(attempts: Sequence[Seen], released: Collection[int]) -> tuple[int, int]:
    """(quiet, interrupted) attempts since the last release. Quiet = running with a successor."""
    since = max(released, default=-1)
    top = max(seen.attempt for seen in attempts)
    late = [seen for seen in attempts if seen.attempt > since]
    quiet = sum(1 for seen in late if not seen.closed and seen.attempt < top)
    return quiet, sum(1 for seen in late if seen.state == "interrupted")


def patience_s(seen: Seen, quiet_before: int, stale_s: float) -> float:
    """Seconds without a beat after which the attempt is quiet."""
    beat_s = seen.record.beat_s if seen.record is not None else DEFAULT_BEAT_S
    return float(max(stale_s, 3 * beat_s) * 2**quiet_before)


def is_quiet(seen: Seen, now: float, quiet_before: int, stale_s: float) -> bool:
    """Whether a running attempt has stopped moving, ``now`` by the store's clock."""
    return not seen.closed and not seen.newer and now - seen.modified > patience_s(seen, quiet_before, stale_s)


def poisoned(attempts: Sequence[Seen], released: Collection[int]) -> bool:
    """Whether the next attempt should be claimed as failed: 3 quiet ones (the top included) or 10 interrupted."""
    quiet, interrupted = counts(attempts, released)
    top = max(attempts, key=lambda seen: seen.attempt)
    if not top.closed and top.attempt not in released:
        quiet += 1  # the one about to be rescued
    return quiet >= QUIET_LIMIT or interrupted >= INTERRUPTED_LIMIT


class Watch:
    """Remembers since when (own monotonic clock) each running attempt has not changed."""

    def __init__(self) -> None:
        self._since: dict[tuple[int, int], tuple[str, float]] = {}

    def still_s(self, seen: Seen, monotonic: float) -> float:
        """Seconds for which the attempt has been seen unchanged; 0 at the first look."""
        at = (seen.n, seen.attempt)
        stamp = f"{seen.version} {seen.modified}"
        known = self._since.get(at)
        if known is None or known[0] != stamp:
            self._since[at] = (stamp, monotonic)
            return 0.0
        return monotonic - known[1]

    def forget(self, alive: Collection[tuple[int, int]]) -> None:
        """Drop what is not running any more."""
        self._since = {at: since for at, since in self._since.items() if at in alive}
