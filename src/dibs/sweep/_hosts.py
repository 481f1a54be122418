"""Hosts and how fast they are: ``a=1.5``, or a file of them. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from dibs.errors import UsageError

from ._queue import is_comment

__all__ = ["hosts_in", "hosts_of"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_BETWEEN = re.compile(r"\s*=\s*|\s+")


def hosts_of(texts: Iterable[str], place: str = "--host") -> dict[str, float]:
    """Name -> speed, of ``a=1.5`` or ``a`` for speed 1. Raises UsageError, ``place`` says where it stands."""
    found: dict[str, float] = {}
    for text in texts:
        name, *rest = _BETWEEN.split(text.strip())
        try:
            speed = float(rest[0]) if rest else 1.0
        except ValueError:
            speed = math.nan
        if len(rest) > 1 or not _NAME.fullmatch(name) or not (math.isfinite(speed) and speed > 0):
            raise UsageError(f"{place} {text!r:.80} is no host: write its name and how fast it is, such as a=1.5")
        if name in found:
            raise UsageError(f"{place} {text!r:.80}: that host is named twice")
        found[name] = speed
    return found


def hosts_in(source: str, lines: Sequence[str]) -> dict[str, float]:
    """The same of a file, one host per line, blank lines and ``#`` comments between. Raises UsageError."""
    texts = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not is_comment(line)]
    found: dict[str, float] = {}
    for number, text in texts:
        one = hosts_of([text], f"{source}:{number}:")
        if one.keys() & found.keys():
            raise UsageError(f"{source}:{number}: {text.strip()!r:.80}: that host is named twice")
        found |= one
    if not found:
        raise UsageError(f"there is no host in {source}: write one on each line, such as a=1.5")
    return found
