"""Float and Int: the unit interval to numbers and back.

A float is snapped to a decimal about 2**-32 of the range away from the next (in the log if log): a last bit that
differs between two machines' exp or log, or in a sampler's arithmetic, gives the same value on both.
Stepped floats are computed in whole numbers of their decimal texts: 0.1 steps reach 0.3, not 0.30000000000000004.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from dibs.errors import SpaceError

from ._param import BELOW_ONE, Param
from ._values import a_float, an_int, shown

__all__ = ["Float", "Int"]

_EXACT = 2**50  # up to here (k + 0.5) / cells * cells finds k again in doubles
_LARGEST = 1e300  # rounding and subtracting must not overflow
_SNAP = 32 * math.log10(2)


def _flag(value: Any, what: str) -> bool:
    if type(value) is not bool:
        raise SpaceError(f"{what}={shown(value)} must be True or False")
    return value


def _ordered(kind: str, low: Any, high: Any) -> None:
    if low > high:
        raise SpaceError(f"{kind}({low!r}, {high!r}): low is above high; swap them")


class Float(Param):
    """A float in [``low``, ``high``], both ends included; ``log`` searches its logarithm, ``step`` a grid from low.

    A grid ends at the largest ``low + k * step`` that is not above ``high``. ``low == high`` is one value. ``prior`` is a
    value believed to be good: samplers that learn start near it and exclude nothing for it.
    Raises SpaceError for bounds that are no finite numbers, ``log`` with ``low <= 0`` or with a step, a step that
    does not fit into the range.
    """

    __slots__ = ("_digits", "_first", "_grid", "_last", "_width", "high", "log", "low", "prior", "step")
    low: float
    high: float
    log: bool
    step: float | None
    prior: float | None
    _width: float
    _digits: int
    _first: float  # the ends need not be decimals of the grid: what lies within half a step of one is that end
    _last: float
    _grid: tuple[int, int, int] | None

    def __init__(
        self, low: Any, high: Any, *, log: bool = False, step: Any = None, prior: Any = None, when: Any = None
    ) -> None:
        low, high = a_float(low, "Float: low"), a_float(high, "Float: high")
        _ordered("Float", low, high)
        if max(-low, high) > _LARGEST:
            raise SpaceError(f"Float({low!r}, {high!r}) reaches beyond {_LARGEST}: narrow it")
        cells, grid, width, digits = None, None, 0.0, 0
        first, last = low, high
        if _flag(log, "log"):
            if step is not None:
                raise SpaceError(f"Float({low!r}, {high!r}): log and step exclude each other; drop one")
            if low <= 0:
                raise SpaceError(f"Float({low!r}, {high!r}, log=True): a log range starts above 0")
            if math.isinf(high / low):
                raise SpaceError(f"Float({low!r}, {high!r}, log=True) spans more than a float can hold; narrow it")
        if step is not None:
            step = a_float(step, "Float: step")
            cells, grid = _grid(low, high, step)
        elif low == high:
            cells, grid = 1, _ratio(low, 0.0)
        elif log:
            width = math.log(high / low)
            digits = _log_digits(width)
            first, last = low * (1 + 0.5 * 10.0**-digits), high * (1 - 0.5 * 10.0**-digits)
        else:
            width = high - low
            # at least 2**32 decimals; where floats themselves lie further apart, they are the grid
            digits = math.ceil(-math.log10(width) + _SNAP)
            first, last = low + 0.5 * 10.0**-digits, high - 0.5 * 10.0**-digits
        self._fill(when, low=low, high=high, log=log, step=step, cells=cells)
        self._keep(_grid=grid, _width=width, _digits=digits, _first=first, _last=last)
        self._keep(prior=None if prior is None else self._believe(prior))

    def value(self, u: float) -> float:
        if self.cells is not None:
            k = int(u * self.cells)
            return self.cell(k if k < self.cells else self.cells - 1)
        if not 0.0 < u < BELOW_ONE:
            return self.low if u <= 0.0 else self.high
        if self.log:
            v = float(f"{self.low * math.exp(u * self._width):.{self._digits}e}")
        else:
            # float: a numpy u would make a numpy v; + 0.0: what rounds to -0.0 is 0.0
            v = round(self.low + float(u) * self._width, self._digits) + 0.0
        return self.low if v < self._first else self.high if v > self._last else v

    def unit(self, value: Any) -> float:
        if self.cells is not None:
            return (self.index(value) + 0.5) / self.cells
        if not self.low < value < self.high:
            return 0.0 if value <= self.low else BELOW_ONE
        u = (math.log(value / self.low) if self.log else value - self.low) / self._width
        return u if u < BELOW_ONE else BELOW_ONE

    def cell(self, k: int) -> float:
        assert self._grid is not None
        start, step, scale = self._grid
        return (start + k * step) / scale

    def index(self, value: Any) -> int:
        return 0 if self.step is None else round((value - self.low) / self.step)

    def check(self, value: Any) -> float:
        number = a_float(value, "it")
        if not self.low <= number <= self.high:
            raise SpaceError(f"{number!r} is not in [{self.low!r}, {self.high!r}]")
        if self.step is None:
            return number
        assert self.cells is not None
        k = min(self.index(number), self.cells - 1)
        nearest = self.cell(k)
        # a caller who adds up steps arrives a few last bits beside the grid and means the grid
        if abs(number - nearest) > 1e-9 * self.step:
            raise SpaceError(
                f"{number!r} is not on the grid from {self.low!r} in steps of {self.step!r}; the nearest is {nearest!r}"
            )
        return nearest

    def spec(self) -> dict[str, Any]:
        return {"float": [self.low, self.high], **_options(self)}

    def _call(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.low, self.high), _options(self)


def _ratio(*numbers: float) -> Any:
    """The decimal texts of ``numbers`` as whole numbers over one common denominator, which comes last."""
    pairs = [Decimal(repr(x)).as_integer_ratio() for x in numbers]
    scale = math.lcm(*(d for _, d in pairs))
    return (*(n * (scale // d) for n, d in pairs), scale)


def _grid(low: float, high: float, step: float) -> tuple[int, tuple[int, int, int]]:
    if step <= 0:
        raise SpaceError(f"Float({low!r}, {high!r}, step={step!r}): a step is above 0")
    a, b, s, scale = _ratio(low, high, step)
    cells = (b - a) // s + 1
    if cells == 1 and low < high:
        raise SpaceError(f"Float({low!r}, {high!r}, step={step!r}): the step is wider than the range")
    if cells > _EXACT:
        raise SpaceError(f"Float({low!r}, {high!r}, step={step!r}) has {cells} values: leave the step out")
    return cells, (a, s, scale)


def _log_digits(width: float) -> int:
    """Digits after the first that tell 2**32 values apart, unless that is finer than ``low * exp(u * width)`` is."""
    # neighbouring floats have the quotient 1 in the end, and the ends are then all the values there are
    wanted = math.ceil(-math.log10(max(width, 1e-16)) + _SNAP)
    return max(0, min(wanted, math.floor(-math.log10((width + 2) * 2.0**-49)) - 1))


class Int(Param):
    """An int in [``low``, ``high``], both included; ``log`` searches its logarithm, ``step`` counts from low.

    With ``log`` the number k owns [k - 0.5, k + 0.5) on the log scale. ``prior`` as of a Float. At most 64 bits
    (45 with log).
    Raises SpaceError for bounds that are no ints, ``log`` with ``low < 1`` or with a step, a step that does not fit.
    """

    __slots__ = ("_width", "high", "log", "low", "prior", "step")
    cells: int
    low: int
    high: int
    log: bool
    step: int
    prior: int | None
    _width: float

    def __init__(
        self, low: Any, high: Any, *, log: bool = False, step: Any = 1, prior: Any = None, when: Any = None
    ) -> None:
        low, high, step = an_int(low, "Int: low"), an_int(high, "Int: high"), an_int(step, "Int: step")
        _ordered("Int", low, high)
        if step < 1:
            raise SpaceError(f"Int({low}, {high}, step={step}): a step is above 0")
        if step > 1 and step > high - low > 0:
            raise SpaceError(f"Int({low}, {high}, step={step}): the step is wider than the range")
        width = 0.0
        if _flag(log, "log"):
            if step != 1:
                raise SpaceError(f"Int({low}, {high}): log and step exclude each other; drop one")
            if low < 1:
                raise SpaceError(f"Int({low}, {high}, log=True): a log range starts at 1 or above")
            if high > 2**45:
                raise SpaceError(f"Int({low}, {high}, log=True) reaches beyond 2**45: use Float(log=True) and round")
            width = math.log((high + 0.5) / (low - 0.5))
        self._fill(when, low=low, high=high, log=log, step=step, _width=width, cells=(high - low) // step + 1)
        self._keep(prior=None if prior is None else self._believe(prior))

    def value(self, u: float) -> int:
        if self.log:
            v = math.floor((self.low - 0.5) * math.exp(u * self._width) + 0.5)
            return self.low if v < self.low else self.high if v > self.high else v
        if self.cells <= _EXACT:
            k = int(u * self.cells)
        else:  # more values than a float in [0, 1) can tell apart: every 2**-53 names one of them, the last the last
            k = (int(u * 2.0**53) * self.cells) >> 53 if u < BELOW_ONE else self.cells
        return self.low + (k if k < self.cells else self.cells - 1) * self.step

    def unit(self, value: Any) -> float:
        if self.log:
            return math.log(math.sqrt((value - 0.5) * (value + 0.5)) / (self.low - 0.5)) / self._width
        k = self.index(value)
        if self.cells <= _EXACT:
            return (k + 0.5) / self.cells
        return min(-((-k << 53) // self.cells) * 2.0**-53, BELOW_ONE)

    def cell(self, k: int) -> int:
        return self.low + k * self.step

    def index(self, value: Any) -> int:
        return int(value - self.low) // self.step

    def check(self, value: Any) -> int:
        number = an_int(value, "it")
        if not self.low <= number <= self.high:
            raise SpaceError(f"{number} is not in [{self.low}, {self.high}]")
        if (number - self.low) % self.step:
            nearest = self.cell(self.index(number))
            raise SpaceError(f"{number} is not on the grid from {self.low} in steps of {self.step}; one is {nearest}")
        return number

    def spec(self) -> dict[str, Any]:
        return {"int": [self.low, self.high], **_options(self)}

    def _call(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.low, self.high), _options(self)


def _options(param: Float | Int) -> dict[str, Any]:
    """What was said beside the bounds, defaults left out."""
    said: dict[str, Any] = {"log": True} if param.log else {}
    if param.step is not None and (isinstance(param, Float) or param.step != 1):
        said["step"] = param.step
    if param.prior is not None:
        said["prior"] = param.prior
    return said
