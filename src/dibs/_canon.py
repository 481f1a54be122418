"""Canonical JSON, digests and chance: one text per value, on every machine.

Canonical = UTF-8, keys sorted, no blanks, Python's shortest float repr, no bare NaN or Infinity.
Values keep their type: a tuple is ``{"tuple": [...]}``, ``1`` and ``1.0`` and ``true`` are three texts.
Nothing here reads a clock or a random source: all chance is SHAKE-256 (FIPS 202) of named inputs.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

__all__ = [
    "all_to_json", "chance", "chance_by_name", "chance_bytes", "digest", "dumps", "from_json", "plain", "to_json",
]  # fmt: skip

_DEEPEST = 16  # tuples in tuples; a hostile record must not reach Python's own limit later, in somebody's repr
_SCALE = 2.0**-53
_shake = hashlib.shake_256
_word = struct.Struct(">Q").unpack
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def dumps(obj: Any) -> bytes:
    """The canonical bytes of a JSON object; ValueError for NaN and infinities, TypeError for foreign types."""
    # a lone surrogate (an undecodable file name in a traceback, say) has no UTF-8: it becomes "?"
    return _ENCODER.encode(obj).encode("utf-8", "replace")


def digest(obj: Any) -> str:
    """SHA-256 of the canonical bytes, 64 hex characters."""
    return hashlib.sha256(dumps(obj)).hexdigest()


def plain(value: Any) -> Any:
    """The Python value behind a numpy scalar; anything else is returned as it is."""
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    return value


def to_json(value: Any, depth: int = 0) -> Any:
    """A parameter's value as JSON that ``from_json`` turns back into an equal value of the same type.

    Values: None, bool, int, finite float, str, and tuples of these, 16 deep at most. TypeError for anything else.
    """
    kind = type(value)
    if kind is int or kind is bool or value is None or (kind is float and math.isfinite(value)):
        return value
    value = plain(value)
    if value is None or type(value) in (bool, int):
        return value
    if type(value) is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise TypeError(f"{value!r} cannot be a parameter's value: it is not valid Unicode") from None
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise TypeError(f"{value!r} cannot be a parameter's value: it must be finite")
        return value
    if type(value) is tuple:
        if depth >= _DEEPEST:
            raise TypeError(f"tuples may be nested {_DEEPEST} deep at most")
        return {"tuple": [to_json(item, depth + 1) for item in value]}
    raise TypeError(
        f"{value!r} ({type(value).__name__}) cannot be a parameter's value: use None, bool, int, "
        "float, str or a tuple of these"
    )


def all_to_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """``to_json`` of each value, in the order they come. TypeError for what is no parameter's value."""
    return {
        name: value if (type(value) is float and math.isfinite(value)) or type(value) is int else to_json(value)
        for name, value in values.items()
    }


def from_json(obj: Any, depth: int = 0) -> Any:
    """The inverse of :func:`to_json`. TypeError for JSON that is no parameter's value."""
    if type(obj) is dict:
        items = obj.get("tuple")
        if len(obj) != 1 or type(items) is not list:
            raise TypeError(f"an object with {sorted(map(str, obj))[:3]} is not a parameter's value")
        if depth >= _DEEPEST:
            raise TypeError(f"tuples may be nested {_DEEPEST} deep at most")
        return tuple(from_json(item, depth + 1) for item in items)
    if type(obj) is list:
        raise TypeError('a list is not a parameter\'s value: a tuple is {"tuple": [...]}')
    return obj


def _text(part: Any) -> str:
    """One part of a key as canonical JSON; names come again and again."""
    return _quoted(part) if type(part) is str else dumps(part).decode()


@lru_cache(maxsize=4096)
def _quoted(name: str) -> str:
    return dumps(name).decode()


def _texts(key: tuple[Any, ...]) -> str:
    return ",".join([str(part) if type(part) is int else _text(part) for part in key])


@lru_cache(maxsize=4096)
def _tail(name: str) -> bytes:
    return f"{_quoted(name)}]".encode()


def chance(words: int, *key: Any) -> list[float]:
    """``words`` numbers in [0, 1), a pure function of ``key`` (version, seed, n, purpose).

    Each is the top 53 bits of an 8-byte big-endian word of SHAKE-256 over the canonical key.
    """
    stream = chance_bytes(words, *key)
    return [(int.from_bytes(stream[i : i + 8], "big") >> 11) * 2.0**-53 for i in range(0, 8 * words, 8)]


def chance_bytes(words: int, *key: Any) -> bytes:
    """The words of :func:`chance` as they come, for those who take very many apart."""
    return _shake(f"[{_texts(key)}]".encode()).digest(8 * words)


def chance_by_name(*key: Any) -> Callable[[str], float]:
    """``name -> chance(1, *key, name)[0]``, with what the names have in common put into words once."""
    head = f"[{_texts(key)},".encode()

    def draw(name: str) -> float:
        word: int = _word(_shake(head + _tail(name)).digest(8))[0]
        return (word >> 11) * _SCALE

    return draw
