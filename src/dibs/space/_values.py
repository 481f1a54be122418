"""Values of parameters: None, bool, int, finite float, str, and tuples of these.

Two values are one only if their types agree too: ``True``, ``1``, ``1.0``, ``"1"`` and ``None`` are five.
Everything that comes from outside (a user, JSON, TOML, numpy) passes through here once and is plain afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from dibs._canon import dumps, plain, to_json
from dibs.errors import SpaceError

__all__ = ["Value", "a_float", "an_int", "as_value", "canonical", "shown", "typed", "value_from_json"]

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | None"

_DEEPEST = 16
_INT64 = 2**63


def typed(value: Any) -> tuple[Any, ...]:
    """A hashable key under which only values of equal type and content meet."""
    if type(value) is tuple:
        return (tuple, *map(typed, value))
    return (type(value), value)


def canonical(value: Value) -> bytes:
    """The canonical JSON of a value: an order for values that Python cannot compare."""
    return dumps(to_json(value))


def shown(value: Any) -> str:
    """``repr``, short enough for a sentence."""
    try:
        text = repr(value)
    except Exception:  # a foreign object's own repr must not hide our message
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def as_value(value: Any, depth: int = 0) -> Value:
    """``value`` as a plain value of a parameter (numpy scalars become Python's); SpaceError for anything else."""
    value = plain(value)
    kind = type(value)
    if kind is tuple:
        if depth >= _DEEPEST:
            raise SpaceError(f"tuples may be nested {_DEEPEST} deep at most")
        return tuple(as_value(item, depth + 1) for item in value)
    if value is not None and kind not in (bool, int, float, str):
        remedy = "write a tuple" if kind is list else "use None, bool, int, float, str or a tuple of these"
        raise SpaceError(f"{shown(value)} ({kind.__name__}) cannot be a value: {remedy}")
    if kind is int and not -_INT64 <= value < _INT64:
        raise SpaceError(f"{shown(value)} does not fit in 64 bits; pass it as a str")
    if kind is float and not math.isfinite(value):
        raise SpaceError(f"{value!r} cannot be a value: it must be finite")
    if kind is str and not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        raise SpaceError(f"{shown(value)} cannot be a value: it is not valid Unicode")
    known: Value = value
    return known


def value_from_json(obj: Any, depth: int = 0) -> Value:
    """The value that ``obj`` (see ``_canon.to_json``) stands for; SpaceError if it stands for none."""
    if isinstance(obj, Mapping):
        items = obj.get("tuple")
        if len(obj) != 1 or type(items) is not list:
            raise SpaceError(f'{shown(obj)} is not a value; a tuple is {{"tuple": [...]}}')
        if depth >= _DEEPEST:
            raise SpaceError(f"tuples may be nested {_DEEPEST} deep at most")
        return tuple(value_from_json(item, depth + 1) for item in items)
    if type(obj) is list:
        raise SpaceError(f'{shown(obj)} is not a value; a tuple is {{"tuple": [...]}}')
    return as_value(obj)


def a_float(value: Any, what: str) -> float:
    """``value`` as a finite float; whole numbers are taken, bools and strings are not."""
    value = plain(value)
    if type(value) not in (int, float):
        raise SpaceError(f"{what} must be a number, not {shown(value)} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise SpaceError(f"{what} must be a finite number, not {shown(value)}")
    return number + 0.0  # -0.0 becomes 0.0: one text for one number


def an_int(value: Any, what: str) -> int:
    """``value`` as an int of 64 bits; floats, even whole ones, bools and strings are refused."""
    value = plain(value)
    if type(value) is not int:
        remedy = f": write {int(value)}" if type(value) is float and value.is_integer() else ""
        raise SpaceError(f"{what} must be an int, not {shown(value)} ({type(value).__name__}){remedy}")
    if not -_INT64 <= value < _INT64:
        raise SpaceError(f"{what} must fit in 64 bits, not {shown(value)}")
    return value
