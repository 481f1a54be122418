"""One parameter's values of many points as coordinates, in one sweep where all are plain numbers or plain choices.

Whatever is no value of the parameter becomes nan: history may come from elsewhere, and no ask fails because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from dibs.errors import SpaceError
from dibs.space import Choice, Float, Int, Param

from ._stream import Array

__all__ = ["FEW", "Reader", "log_centre", "reader_of"]

FEW = 2**50  #: so many cells (k + 0.5) / cells tells apart
_EXACT = 2**53
_BELOW_ONE = 1 - 2.0**-53
_ABSENT: Any = object()

Reader: TypeAlias = Callable[[str, Sequence[Mapping[str, Any]]], Any]


def reader_of(param: Param) -> Reader:
    """(name, points) -> coordinates of the parameter that bears the name."""

    def slowly(name: str, points: Sequence[Mapping[str, Any]]) -> Any:
        return [_one(param, point.get(name, _ABSENT)) for point in points]

    if isinstance(param, Choice):
        return _choice(param, slowly)
    if isinstance(param, Float):
        return _number(slowly, {float, int, type(None)}, _float(param))
    if isinstance(param, Int) and param.cells <= FEW and max(-param.low, param.high) < _EXACT:
        return _number(slowly, {int, type(None)}, _int(param))
    return slowly


def log_centre(param: Int, values: Array) -> Array:
    """Where values of a log Int lie: the centres of their cells."""
    centre: Array = np.log(np.sqrt((values - 0.5) * (values + 0.5)) / (param.low - 0.5)) / param._width
    return centre


def _one(param: Param, value: Any) -> float:
    if value is _ABSENT:
        return np.nan
    try:
        return param.unit(param.check(value))
    except SpaceError:
        return np.nan


def _number(slowly: Reader, kinds: set[type], convert: Callable[[Array], Array]) -> Reader:
    def read(name: str, points: Sequence[Mapping[str, Any]]) -> Any:
        values = [point.get(name) for point in points]
        if not kinds.issuperset(map(type, values)):
            return slowly(name, points)
        try:
            column = np.array(values, np.float64)  # None becomes nan
        except OverflowError:
            return slowly(name, points)
        with np.errstate(all="ignore"):
            return convert(column)

    return read


def _float(param: Float) -> Callable[[Array], Array]:
    low, high, step, cells, width = param.low, param.high, param.step, param.cells, param._width

    def convert(v: Array) -> Array:
        inside = (v >= low) & (v <= high)
        if step is not None:
            assert cells is not None
            k = np.minimum(np.rint((v - low) / step), cells - 1)
            u, inside = (k + 0.5) / cells, inside & (np.abs(v - (low + k * step)) <= 1e-6 * step)
        elif cells == 1:
            u = np.full(v.shape, 0.5)
        else:
            u = np.clip((np.log(v / low) if param.log else v - low) / width, 0.0, _BELOW_ONE)
        return np.where(inside, u, np.nan)

    return convert


def _int(param: Int) -> Callable[[Array], Array]:
    low, high, step, cells = param.low, param.high, param.step, param.cells

    def convert(v: Array) -> Array:
        inside = (v >= low) & (v <= high) & ((v - low) % step == 0)
        u = log_centre(param, v) if param.log and cells > 1 else ((v - low) // step + 0.5) / cells
        return np.where(inside, u, np.nan)

    return convert


def _choice(param: Choice, slowly: Reader) -> Reader:
    if any(type(value) is tuple for value in param.values):
        return slowly  # (1,) and (1.0,) are two values
    table = {(type(value), value): param.unit(value) for value in param.values}
    nothing = float("nan")

    def read(name: str, points: Sequence[Mapping[str, Any]]) -> Any:
        try:
            return [
                nothing if (value := point.get(name, _ABSENT)) is _ABSENT else table.get((type(value), value), nothing)
                for point in points
            ]
        except TypeError:  # not hashable
            return slowly(name, points)

    return read
