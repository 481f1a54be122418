"""How the values of one parameter are laid out along an axis, and in which band a value lies. Pure.

A number's bands are of equal width on its own scale (its logarithm's, if it is searched so); every choice is a band.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dibs._canon import dumps, to_json
from dibs.errors import SpaceError, UsageError
from dibs.space import Choice, Constant, Float, Int, Param, Space

from ._plain import VALUE, Plain

__all__ = ["Axis", "Band", "Ruler", "ruler_of", "searched"]

BANDS = 8


@dataclass(frozen=True, slots=True)
class Band(Plain):
    """A part of an axis: the numbers from ``low`` to ``high`` (a Float's last band alone includes it, an Int's all do),
    or one ``choice``. What does not apply is None.
    """

    low: float | None
    high: float | None
    choice: Any = field(default=None, metadata=VALUE)


@dataclass(frozen=True, slots=True)
class Axis(Plain):
    """One parameter as an axis. ``kind``: "float", "int" or "choice"; ``log``: it is searched by its logarithm.

    ``assumed``: the study has no definition that reads, and the axis is made from the values that were seen.
    """

    name: str
    kind: str
    log: bool
    assumed: bool
    bands: tuple[Band, ...]


class Ruler:
    """An axis that knows where values lie."""

    def __init__(self, name: str, param: Param, *, bands: int = BANDS, assumed: bool = False) -> None:
        self.name, self.param = name, param
        self._lows: list[Any] = []
        if isinstance(param, Float | Int):
            self._lows = _lows(param, bands)
            kind, log = "float" if isinstance(param, Float) else "int", param.log
            parts = tuple(self._band(param, at) for at in range(len(self._lows)))
        else:
            kind, log = "choice", False
            values: Iterable[Any] = param.values if isinstance(param, Choice) else [param.value(0.5)]
            parts = tuple(Band(None, None, value) for value in values)
        self.axis = Axis(name, kind, log, assumed, parts)

    def _band(self, param: Float | Int, at: int) -> Band:
        last = at + 1 == len(self._lows)
        if isinstance(param, Int):
            return Band(self._lows[at], param.cell(param.cells - 1) if last else self._lows[at + 1] - param.step)
        return Band(self._lows[at], param.high if last else self._lows[at + 1])

    def value(self, value: Any) -> Any:
        """The value made plain. Raises SpaceError for one that is none of the parameter's."""
        return self.param.check(value)

    def at(self, value: Any) -> int:
        """The number of the band in which a value of the parameter lies."""
        return bisect_right(self._lows, value) - 1 if self._lows else self.param.index(value)


def _lows(param: Float | Int, bands: int) -> list[Any]:
    """Where the bands begin; a parameter of few values has one for each."""
    if param.cells is not None and param.cells <= bands:
        return [param.cell(k) for k in range(param.cells)]
    return sorted({param.low, *(param.value(k / bands) for k in range(1, bands))} - {param.high})


def searched(space: Space | None, points: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The parameters there are to look at, by name: those of the space that are no constants, else those of the points."""
    return space.axes if space is not None else tuple(sorted({name for point in points for name in point}))


def ruler_of(name: str, space: Space | None, points: Sequence[dict[str, Any]]) -> Ruler:
    """The ruler of a parameter. Raises UsageError for one that the study has not, or that is a constant in it."""
    if space is not None:
        if name not in space:
            raise UsageError(f"the study has no parameter {name!r}; it has {', '.join(map(repr, space.names))}")
        param = space[name]
        if isinstance(param, Constant):
            raise UsageError(f"{name!r} is a constant: it was the same in every trial")
        return Ruler(name, param)
    values = [point[name] for point in points if name in point]
    if not values:
        known = ", ".join(map(repr, searched(None, points))) or "none yet"
        raise UsageError(f"no result has a parameter {name!r}; seen: {known}")
    return Ruler(name, _assumed(values), assumed=True)


def _assumed(values: list[Any]) -> Param:
    """A parameter that has all these values."""
    kinds = {type(value) for value in values}
    try:
        if kinds == {int}:
            return Int(min(values), max(values))
        if kinds <= {int, float}:
            return Float(min(values), max(values))
    except SpaceError:  # too wide for a range
        pass
    return Choice(*{dumps(to_json(value)): value for value in values}.values())
