"""Which rows of a history have points of a given space: settled trials are looked at once, not at every ask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dibs.search import History
from dibs.space import Space

from ._table import FAR

__all__ = ["Within"]

_UNKNOWN, _WITHIN, _WITHOUT = 0, 1, 2


class Within:
    """Remembers by index, for one study and one set of parameters, what it has looked at."""

    def __init__(self, space: Space) -> None:
        self.names = frozenset(space.names)
        self._known: NDArray[np.int8] = np.zeros(256, np.int8)

    def settled(self, history: History) -> History:
        """Those rows whose points have parameters of the space only; rows without an index are always looked at."""
        ns = history.n
        top = int(ns[-1]) + 1 if len(ns) else 0  # sorted
        if top > FAR + 4 * len(ns):
            return self.all(history)
        known = self._known
        if top > len(known):
            known = np.concatenate([known, np.zeros(max(top, len(known) * 3 // 2) - len(known), np.int8)])
        indexed = ns >= 0
        codes = np.where(indexed, known[ns], _UNKNOWN)
        for at in np.flatnonzero(codes == _UNKNOWN).tolist():
            codes[at] = self._code(history[at][0])
        known[ns[indexed]] = codes[indexed]
        self._known = known
        return _kept(history, codes == _WITHIN)

    def all(self, history: History) -> History:
        """The same, every row looked at: an open trial may be claimed anew with another point."""
        return _kept(history, np.array([self._code(point) == _WITHIN for point in history.points], bool))

    def _code(self, point: Any) -> int:
        return _WITHIN if point.keys() <= self.names else _WITHOUT


def _kept(history: History, keep: NDArray[np.bool_]) -> History:
    if keep.all():
        return history
    at = np.flatnonzero(keep)
    points = [history[i][0] for i in at.tolist()]
    return History.columns(history.n[at], history.score[at], history.state[at], history.step[at], points)
