"""Tree-structured Parzen estimation: propose where good trials are dense and others are not.

Bergstra et al. 2011, with one joint kernel per trial. The best tenth, at most 25, is the good pile, the better ones
weighing more. Running trials join the bad pile only: they repel and never vote.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ._cube import Cube
from ._fresh import Fresh
from ._model import Model
from ._parzen import Parzen
from ._past import Past, best_first, rows_at
from ._sampler import register
from ._stream import Array, Stream

__all__ = ["TPE", "propose_by_density"]

_CANDIDATES = 24
_MOST_GOOD = 25
_MOST_BAD = 200
_RECENT = 25  # the newest bad ones weigh fully, older ones less and less
_BELIEF = 2.0


@register
class TPE(Model):
    """For any space: conditional, wide in categories, of many dimensions; its cost hardly grows with the history.

    Several goals: ParEGO's weights (:class:`Model`). Constraints: what keeps them comes first, then what is nearest to it.
    Sobol points until 10 trials are scored. ``goal`` and ``seed`` are the study's if left out.
    """

    name: ClassVar[str] = "tpe"
    version: ClassVar[int] = 1

    def _propose(self, cube: Cube, past: Past, stream: Stream, fresh: Fresh) -> Array | None:
        return propose_by_density(cube, past, stream, fresh)


def propose_by_density(cube: Cube, past: Past, stream: Stream, fresh: Fresh) -> Array | None:
    """The candidate whose density among good trials exceeds that among the others most."""
    count = len(past.y)
    order = best_first(past)
    best = min(math.ceil(0.1 * count), _MOST_GOOD)
    good = past.scored[order[:best]]
    bad, ramp = _thinned(np.sort(np.concatenate([past.scored[order[best:]], past.lost])))
    rows = rows_at(cube, past, np.concatenate([good, bad, past.running]))
    weights = math.log(best + 0.5) - np.log(np.arange(1.0, best + 1.0))
    likely = Parzen(cube, rows[:best], weights / weights.mean(), _BELIEF)
    unlikely = Parzen(cube, rows[best:], np.concatenate([ramp, np.ones(len(past.running))]))
    candidates = fresh.all()
    if candidates is None:
        candidates = fresh.of(cube.closed(likely.sample(_CANDIDATES, stream)))
    if not len(candidates):
        return None
    gain = likely.log_density(candidates) - unlikely.log_density(candidates)
    found: Array = candidates[np.argmax(np.round(gain, 9))]
    return found


def _thinned(places: Any) -> tuple[Any, Array]:
    """At most so many of ``places``, evenly over all of them, and what they weigh."""
    count = len(places)
    ramp = np.ones(count)
    if count > _RECENT:
        ramp[:-_RECENT] = np.linspace(1.0 / count, 1.0, count - _RECENT)
    if count > _MOST_BAD:
        keep = np.arange(_MOST_BAD) * count // _MOST_BAD
        return places[keep], ramp[keep]
    return places, ramp
