"""No repeats: in a finite space no point that anybody has, or had, is proposed while others remain.

A space with a continuous parameter has no repeats but copies of rows that a sampler began with: see ``copies``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._cube import Cube
from ._past import Past
from ._stream import Array, Stream

__all__ = ["Fresh", "copies"]

_TRIES = 64
_ALIKE = 1e-9


class Fresh:
    """The points of a finite space that no row of the history has; of any other space, all of them."""

    def __init__(self, cube: Cube, past: Past) -> None:
        self._cube = cube
        self._seen: frozenset[bytes] = frozenset()
        if cube.finite:
            rows, good = cube.rows(past.points)
            self._seen = frozenset(cube.keys(rows[good]))

    def of(self, rows: Array) -> Array:
        """Those of closed ``rows`` that are new, in their order."""
        if not self._seen or not len(rows):
            return rows
        new: Array = rows[np.array([key not in self._seen for key in self._cube.keys(rows)], bool)]
        return new

    def all(self) -> Array | None:
        """Every new row, if the space is small enough to list them."""
        listed = self._cube.listed
        return None if listed is None else self.of(listed)

    def first(self, rows: Array, stream: Stream) -> Array:
        """The first new one of ``rows``, else any new row; one that is not new only where there are no others."""
        found = self.of(rows)
        if not len(found):
            found = self.of(self._cube.closed(stream.uniform(_TRIES, self._cube.dims)))
        tree = self._cube.tree
        if not len(found) and tree is not None and len(self._seen) < tree.size:
            # more numbers in a row than there are seen points: one of them is new
            start = int(stream.uniform(1)[0] * tree.size)
            for k in range(len(self._seen) + 1):
                found = self.of(self._cube.rows([tree.point((start + k) % tree.size)])[0])
                if len(found):
                    break
        result: Array = found[0] if len(found) else rows[0]
        return result


def copies(rows: Array, known: Array) -> Any:
    """Which rows one of ``known`` equals, last bits aside."""
    same: Any = (np.abs(rows[:, None] - known) < _ALIKE) | (np.isnan(rows)[:, None] & np.isnan(known))
    return same.all(axis=2).any(axis=1)
