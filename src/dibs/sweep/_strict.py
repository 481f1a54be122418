"""JSON read strictly: one value for a key, and every number finite or named. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

__all__ = ["not_finite", "strict_json"]


def strict_json(data: bytes) -> Any:
    """The value. Raises ValueError with one sentence for what is no JSON, or has a key twice; NaN and infinities are read."""
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once)
    except UnicodeDecodeError as wrong:
        raise ValueError(f"it is not UTF-8 (byte {wrong.start})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as wrong:
        raise ValueError(f"it is not JSON: {wrong.msg}, line {wrong.lineno} column {wrong.colno}") from None


def not_finite(value: Any, name: str = "") -> Iterator[str]:
    """Where in plain data NaN or an infinity is: ``loss[3]``, ``test.auc``."""
    left = [(name, value)]
    while left:
        where, one = left.pop()
        if isinstance(one, float) and not math.isfinite(one):
            yield where or "the value"
        elif isinstance(one, dict):
            left += [(f"{where}.{key}" if where else str(key), item) for key, item in reversed(one.items())]
        elif isinstance(one, list | tuple):
            left += [(f"{where}[{at}]", one[at]) for at in range(len(one) - 1, -1, -1)]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r:.80} is there twice")
    return found
