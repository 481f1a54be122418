"""Which rows of a history have points of a given space: settled trials are looked at once, not at every ask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dibs.search import History
from dibs.space import Space

from ._table import Table

__all__ = ["Within"]


class Within:
    """Remembers, for one study and one set of parameters, what it has looked at."""

    def __init__(self, space: Space) -> None:
        self.names = frozenset(space.names)
        self._table: Table | None = None
        self._clear(0)

    def _clear(self, epoch: int) -> None:
        self._epoch, self._seen = epoch, 0  # so many rows of the table were looked at
        self._foreign: NDArray[np.bool_] = np.zeros(0, np.bool_)  # by index, as far as there is a foreign one
        self._dones = 0  # done rows among those

    def settled(self, table: Table, goals: int = 1) -> History:
        """The table's done rows whose points have parameters of the space only; costs the rows that are new."""
        if table is not self._table or table.epoch != self._epoch:
            self._table = table
            self._clear(table.epoch)
        for n, point, done in table.since(self._seen):
            if not self._has(point):
                self._mark(n)
                self._dones += done
            self._seen += 1
        return table.history(done_only=True, but=self._foreign, fewer=self._dones, goals=goals)

    def all(self, history: History) -> History:
        """Those rows, every row looked at: an open trial may be claimed anew with another point."""
        return (
            _kept(history, np.array([self._has(point) for point in history.points], bool)) if len(history) else history
        )

    def _has(self, point: Any) -> bool:
        return bool(point.keys() <= self.names)

    def _mark(self, n: int) -> None:
        if n >= len(self._foreign):
            more = np.zeros(n + 1 + n // 2, np.bool_)
            more[: len(self._foreign)] = self._foreign
            self._foreign = more
        self._foreign[n] = True


def _kept(history: History, keep: NDArray[np.bool_]) -> History:
    if keep.all():
        return history
    at = np.flatnonzero(keep)
    points = [history[i][0] for i in at.tolist()]
    scores, excess = history.scores[at], history.excess[at]
    return History.columns(
        history.n[at], history.score[at], history.state[at], history.step[at], points,
        scores=scores if scores.shape[1] > 1 else None, excess=None if np.isnan(excess).all() else excess,
    )  # fmt: skip
