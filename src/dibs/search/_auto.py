"""The sampler for those who do not choose one: a Gaussian process where it is at home, Parzen estimation elsewhere."""

from __future__ import annotations

from typing import ClassVar

from ._cube import Cube
from ._fresh import Fresh
from ._gp import propose_by_improvement
from ._model import Model
from ._past import Past
from ._sampler import register
from ._stream import Array, Stream
from ._tpe import propose_by_density

__all__ = ["Auto"]

_MOST_DIMS = 20
_MOST_VALUES = 40  # of all unordered choices together


@register
class Auto(Model):
    """``gp`` unless the space has more than 20 dimensions, or unordered choices of over 40 values in all; ``tpe`` there.
    Which of the two depends on the space alone.

    Sobol points until 10 trials are scored. ``goal`` and ``seed`` are the study's if left out.
    """

    name: ClassVar[str] = "auto"
    version: ClassVar[int] = 2

    def _propose(self, cube: Cube, past: Past, stream: Stream, fresh: Fresh) -> Array | None:
        wide = cube.dims > _MOST_DIMS or int(cube.choices.sum()) > _MOST_VALUES
        propose = propose_by_density if wide else propose_by_improvement
        return propose(cube, past, stream, fresh)
