"""Which index to try next: the lowest free one, then a gallop away from the crowd. Pure; for cost, not safety.

When P workers start from one listing, lowest-free alone costs about P tries each; after the k-th loss in a
row a random one of the next ``min(4**k, max(8, 2 * running))`` free ones spreads them out. Holes that
this leaves are the lowest free ones of the next ask. A refresh does not end the row: whoever began again at
the lowest one would meet everybody else there (10,000 that start within a minute tried 19 names per claim).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["LOSSES", "Gallop"]

LOSSES = 4  # then refresh and ask again


class SupportsIn(Protocol):
    """Something that knows which indexes are taken."""

    def __contains__(self, n: int, /) -> bool: ...


class Gallop:
    """Free indexes in the order one worker tries them.

    ``taken``: indexes seen taken; ``start``: none below it is free; ``below``: the worker's N; ``running``: how many
    trials are; ``word``: a source of non-negative integers, each call another. Neither is called before a loss.
    ``before``: losses of the same row that came before, on what was seen then.
    """

    def __init__(
        self,
        taken: SupportsIn,
        start: int,
        below: int,
        running: Callable[[], int],
        word: Callable[[], int],
        before: int = 0,
    ) -> None:
        self._taken, self._start, self._below, self._word = taken, start, below, word
        self._running = running
        self._before = before
        self._lost: set[int] = set()

    @property
    def losses(self) -> int:
        """Tries that somebody else had, of these indexes."""
        return len(self._lost)

    @property
    def row(self) -> int:
        """Tries in a row that somebody else had, with those before."""
        return self._before + len(self._lost)

    def next(self) -> int | None:
        """The index to try, or None when none is free below N."""
        if not self.row and self._start < self._below and self._start not in self._taken:
            return self._start
        width = min(4**self.row, max(8, 2 * self._running())) if self.row else 1
        free: list[int] = []
        for n in range(self._start, self._below):
            if n not in self._taken and n not in self._lost:
                free.append(n)
                if len(free) == width:
                    break
        if not free:
            return None
        return free[0] if width == 1 else free[self._word() % len(free)]

    def lost(self, n: int) -> None:
        """Somebody has that one."""
        self._lost.add(n)
