"""Models as plain data: dicts, lists, texts and numbers that ``json.dumps(..., allow_nan=False)`` takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dibs._canon import to_json as value_to_json
from dibs.space import Space

__all__ = ["POINT", "POINTS", "VALUE", "Plain"]


def _point(point: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value_to_json(value) for name, value in point.items()}


#: field metadata: the values of a point keep their type, a tuple is ``{"tuple": [...]}``
POINT = {"json": _point}
VALUE = {"json": value_to_json}
POINTS = {"json": lambda points: [_point(point) for point in points]}


class Plain:
    """Base of the read models: a frozen dataclass that can be told as plain data."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Every field by name. Points are written as in records, NaN and infinities as "nan", "inf", "-inf"."""
        found: dict[str, Any] = {}
        for field in fields(self):  # type: ignore[arg-type] # only what is a dataclass derives from it
            value = getattr(self, field.name)
            found[field.name] = field.metadata.get("json", _plain)(value)
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.to_json()
    if isinstance(value, Space):
        return value.to_json()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
