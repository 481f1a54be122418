"""One parameter's values of many points as coordinates, in one sweep where all are plain numbers or plain choices.

Whatever is no value of the parameter becomes nan: history may come from elsewhere, and no ask fails because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dibs.errors import SpaceError
from dibs.space import Choice, Float, Int, Param

from ._stream import Array

__all__ = ["ABSENT", "BELOW_ONE", "FEW", "Reader", "log_centre", "reader_of"]

FEW = 2**50  #: so many cells (k + 0.5) / cells tells apart
_EXACT = 2**53
BELOW_ONE = 1 - 2.0**-53  #: the largest coordinate there is
ABSENT: Any = object()  #: stands for a value that a point does not have

Reader: TypeAlias = Callable[[Sequence[Any]], Any]


def reader_of(param: Param) -> Reader:
    """values -> coordinates."""

    def slowly(values: Sequence[Any]) -> Any:
        return [_one(param, value) for value in values]

    if isinstance(param, Choice):
        return _choice(param, slowly)
    if isinstance(param, Float):
        return _number(slowly, {float, int}, _float(param))
    if isinstance(param, Int) and param.cells <= FEW and max(-param.low, param.high) < _EXACT:
        return _number(slowly, {int}, _int(param))
    return slowly


def log_centre(param: Int, values: Array) -> Array:
    """Where values of a log Int lie: the centres of their cells."""
    centre: Array = np.log(np.sqrt((values - 0.5) * (values + 0.5)) / (param.low - 0.5)) / param._width
    return centre


def _one(param: Param, value: Any) -> float:
    if value is ABSENT:
        return np.nan
    try:
        return param.unit(param.check(value))
    except SpaceError:
        return np.nan


def _number(slowly: Reader, kinds: set[type], convert: Callable[[Array], Array]) -> Reader:
    def read(values: Sequence[Any]) -> Any:
        if not kinds.issuperset(map(type, values)):
            values = [None if value is ABSENT else value for value in values]
            if not {*kinds, type(None)}.issuperset(map(type, values)):
                return slowly(values)
        try:
            column = np.array(values, np.float64)  # None becomes nan
        except OverflowError:
            return slowly(values)
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
            u = np.clip((np.log(v / low) if param.log else v - low) / width, 0.0, BELOW_ONE)
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

    def read(values: Sequence[Any]) -> Any:
        try:
            found = list(map(table.get, zip(map(type, values), values, strict=True)))
        except TypeError:  # not hashable
            return slowly(values)
        return np.array(found, np.float64)  # None becomes nan

    return read
