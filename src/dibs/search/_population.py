"""The best of all settled trials, the most spread among equals, found again at every ask for what is new only.

Trials are looked at in blocks, by their order, and at most ``_KEPT`` go on from one block to the next: as an
evolutionary algorithm does with its generations. So an ask costs the same after 100 trials and 100,000, and since
blocks that are full do not change, what came out of them is remembered: a pure function of what went in.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from ._fronts import crowding, ranks
from ._goals import violation
from ._past import Past
from ._stream import Array

__all__ = ["population_of"]

_BLOCK = 256
_KEPT = 256


def population_of(past: Past, size: int) -> Any:
    """Places in ``past.scored`` of the ``size`` best, best first: by front, then by crowding distance, then by index."""
    over = violation(past.excess) if past.excess is not None else np.zeros(len(past.y))
    table = np.concatenate([past.many, over[:, None]], axis=1) + 0.0  # -0.0 and 0.0 are one number
    kept = np.empty(0, np.int64)
    # by places in the history: what was running when it was looked at moves nothing when it is scored
    ends = np.searchsorted(past.scored, np.arange(0, past.scored[-1] + 1, _BLOCK) + _BLOCK).tolist()
    for start, end in pairwise([0, *ends]):
        places = np.concatenate([kept, np.arange(start, end)])
        kept = np.sort(places[_best(table[places], max(_KEPT, size))])
    return kept[_best(table[kept], size)]


def _best(table: Array, size: int) -> Any:
    return np.frombuffer(_remembered(table.tobytes(), table.shape[1], size), np.int64)


@lru_cache(maxsize=512)
def _remembered(table: bytes, columns: int, size: int) -> bytes:
    rows = np.frombuffer(table).reshape(-1, columns)
    rank = ranks(rows[:, :-1], rows[:, -1])
    order = np.lexsort((-crowding(rows[:, :-1], rank), rank))
    return order[:size].astype(np.int64).tobytes()
