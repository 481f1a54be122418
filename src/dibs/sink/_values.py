"""Parameters and scalars as JSON that comes back as it went in, and when two sets of parameters are the same. Pure.

Nothing a value does can raise here: what is no plain value is kept as the text of its repr. Sameness is lenient where
optimisers are (0.30000000000000004, "0.3", a list for a tuple) and strict about True, which is not 1.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from reprlib import Repr
from typing import Any

from dibs._canon import plain
from dibs._passing import interrupts

__all__ = ["pack", "pack_each", "same", "unpack"]

DECIMALS = 10  # 0.1 + 0.2 is 0.3; what optimisers compute on the way to a value differs far behind that
_DEEPEST = 16
_MOST = 10_000  # values in one set of parameters, containers included
_LONGEST = 1_000  # characters of a repr
_BITS = 2_048  # of an int: Python may be told to write none that has more than 640 digits as text
_name = type.__dict__["__name__"].__get__  # which a metaclass cannot answer in its own way
_NUMERAL = re.compile(r"[+-]?(\d{1,400}|\d{0,400}\.\d{1,400}|\d{1,400}\.)([eE][+-]?\d{1,4})?", re.ASCII)


class _Brief(Repr):
    """The repr of what is too much: what holds itself many times over has one that never ends."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxtuple, self.maxdict = 2, 30, 30, 30
        self.maxother = self.maxstring = _LONGEST

    def repr_instance(self, x: Any, level: int) -> str:
        try:
            return repr(x)[: self.maxother]
        except Exception as error:  # the library's own passes over a signal handler's, too
            if interrupts(error):
                raise
            return f"<{_name(type(x))}>"


_BRIEF = _Brief()


def pack(value: Any) -> Any:
    """The value as JSON. Never raises an Exception, whatever the value's own methods do; only a signal handler's passes.

    None, bool, int, float, str, tuples, lists and mappings of these come back equal and of the same type (``unpack``);
    numpy scalars become Python's and arrays lists; anything else, and what lies too deep or is too much, the text of its repr.
    """
    return _pack(value, 0, [_MOST])


def pack_each(named: Mapping[str, Any]) -> Any:
    """The same for scalars by name, each for itself: however many there are, and whatever one is, ``unpack`` makes a dict."""
    return {"dict": [[_pack(name, 1, [_MOST]), _pack(value, 1, [_MOST])] for name, value in named.items()]}


def _pack(value: Any, depth: int, left: list[int]) -> Any:
    try:
        value = plain(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float | str):
            return _leaf(value)
        if isinstance(value, Mapping | list | tuple) or _is_array(value):
            return _inside(value, depth, left)
        return {"text": repr(value)[:_LONGEST]}
    except Exception as error:  # of an iterator, a repr or an item() of somebody else's
        if interrupts(error):
            raise
        return {"text": f"<{_name(type(value))}>"}


def _leaf(value: int | float | str) -> Any:
    """Numbers and texts; an IntEnum, too, is its number."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int.__int__(value)
        return number if number.bit_length() <= _BITS else {"text": f"<an int of {number.bit_length()} bits>"}
    real = float.__float__(value)
    return real if math.isfinite(real) else {"float": repr(real)}


def _inside(value: Any, depth: int, left: list[int]) -> Any:
    """What holds others. Each takes its length from what is left, so that even one which holds itself ends."""
    size = value.size if _is_array(value) else len(value)
    if depth >= _DEEPEST or size > left[0]:
        left[0] = max(0, left[0] - _BRIEF.maxlist)
        return {"text": _BRIEF.repr(value)[:_LONGEST] if left[0] else "..."}
    left[0] -= size
    if isinstance(value, Mapping):
        return {"dict": [[_pack(name, depth + 1, left), _pack(each, depth + 1, left)] for name, each in value.items()]}
    items = [_pack(each, depth + 1, left) for each in (value.tolist() if _is_array(value) else value)]
    return {"tuple": items} if isinstance(value, tuple) else items


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0


def unpack(packed: Any, depth: int = 0) -> Any:
    """The inverse of ``pack``. An Exception for JSON that ``pack`` does not make, such as what is deeper than it goes."""
    if depth > _DEEPEST:
        raise ValueError("deeper than a sink writes")
    if isinstance(packed, list):
        return [unpack(each, depth + 1) for each in packed]
    if not isinstance(packed, dict):
        return packed
    ((kind, inner),) = packed.items()
    if kind == "tuple":
        return tuple(unpack(each, depth + 1) for each in inner)
    if kind == "dict":
        return {unpack(key, depth + 1): unpack(each, depth + 1) for key, each in inner}
    return {"float": float, "text": str}[kind](inner)


def same(one: Any, other: Any) -> bool:
    """Whether two packed values mean the same parameters.

    Numbers after rounding to 10 decimals, an int like the float it equals, a numeral in a string like the number, a list like a
    tuple, mappings whatever their order. True, False and None are like their names, and like no number.
    """
    return bool(_alike(one) == _alike(other))


def _alike(packed: Any) -> Any:
    """Something that is equal for values that are the same: every leaf says whether it is a number or a word."""
    if packed is None or isinstance(packed, bool):
        return ("word", str(packed))
    if isinstance(packed, int | float):
        return _number(packed)
    if isinstance(packed, str):
        return _word(packed)
    if isinstance(packed, list):
        return [_alike(each) for each in packed]
    ((kind, inner),) = packed.items()
    if kind == "dict":
        return ("dict", sorted((repr(_alike(key)), repr(_alike(each))) for key, each in inner))
    return _alike(inner) if kind == "tuple" else ("word", inner)


def _word(text: str) -> Any:
    if not _NUMERAL.fullmatch(text):
        return ("word", text)
    return _number(int(text) if text.lstrip("+-").isdigit() else float(text))


def _number(value: int | float) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return ("word", str(value))
        value = round(value, DECIMALS)
        value = int(value) if value.is_integer() else value
    return ("number", value)
