"""Which closed trials a pruner is shown where there are more than it asks for: a draw by index alone. Pure.

The draw is the same in every process and fair: whether a trial is in it has nothing to do with its score or its age. Of
those who got further than a step, those who are in the draw of a lower step are in the draw of that one too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Voters"]

_U = np.uint64


class Voters:
    """Indexes of closed trials with the last step of each."""

    def __init__(self) -> None:
        self._ns = np.zeros(0, np.int64)
        self._lasts = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._ns)

    def add(self, ns: Sequence[int] | NDArray[np.int64], lasts: Sequence[int] | NDArray[np.int64]) -> None:
        """More of them, each index once."""
        self._ns = np.concatenate([self._ns, np.asarray(ns, np.int64)])
        self._lasts = np.concatenate([self._lasts, np.asarray(lasts, np.int64)])

    def drawn(self, least: int, most: int) -> list[int]:
        """At most ``most`` of those whose last step is at least ``least`` (0: of all)."""
        ns: NDArray[np.int64] = self._ns if least <= 0 else self._ns[self._lasts >= least]
        if len(ns) > most:
            ns = ns[np.argpartition(_ranks(ns), most)[:most]]
        found: list[int] = np.sort(ns).tolist()
        return found


def _ranks(ns: NDArray[np.int64]) -> NDArray[Any]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): one-to-one, so that no two trials have one rank."""
    x = ns.astype(_U) * _U(0x9E3779B97F4A7C15)
    x = (x ^ (x >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _U(27))) * _U(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> _U(31)))
