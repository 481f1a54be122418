"""Whether a metrics file says only finite numbers. Pure; a number that is none is an anomaly, not a result."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["LARGEST", "not_finite"]

LARGEST = 16 << 20  # bytes of a metrics file


def not_finite(data: bytes) -> str | None:
    """What in a JSON text is not finite, in words; None if everything is. ValueError if it is no JSON."""
    try:
        stack: list[tuple[str, Any]] = [("", json.loads(data))]
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    while stack:
        name, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{name}.{key}" if name else str(key), each) for key, each in value.items()]
        elif isinstance(value, list):
            stack += [(f"{name}[{at}]", each) for at, each in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{name or 'the number'} is {value}"
    return None
