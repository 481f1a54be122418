"""Random search: every parameter drawn by its own name, index by index.

Adding a parameter to a space therefore moves none of the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import ClassVar

from dibs._canon import chance_by_name
from dibs.space import Space, Value

from ._history import Pair
from ._sampler import Sampler, register

__all__ = ["Random"]


@register
class Random(Sampler):
    """Independent uniform points (log-uniform where a parameter is log). Needs no history, never ends."""

    name: ClassVar[str] = "random"
    version: ClassVar[int] = 1
    needs_history: ClassVar[bool] = False
    several: ClassVar[bool] = True

    def ask(self, space: Space, n: int, history: Iterable[Pair] = ()) -> dict[str, Value]:
        return space.draw(chance_by_name(self.version, self.seed or 0, index(n)))
