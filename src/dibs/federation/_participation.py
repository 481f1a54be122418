"""Who is in a round: a seeded function of run and round, so that everybody knows it without talking. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dibs._canon import chance
from dibs.errors import UsageError

__all__ = ["client_list", "participants"]


def client_list(clients: Iterable[str]) -> list[str]:
    """The clients, sorted. Raises UsageError for none, one that is no name, and one that is there twice."""
    if isinstance(clients, str):
        raise UsageError(f"clients is a list of names, not the text {clients!r}")
    names = list(clients)
    for name in names:
        if not isinstance(name, str) or not name:
            raise UsageError(f"a client's name is a text, not {name!r}")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the name {name!r} is not valid Unicode: choose another") from None
    if not names:
        raise UsageError("there are no clients: name one at least")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"client {twice!r} is there twice")
    return sorted(names)


def participants(clients: Iterable[str], run: str, round: int, share: float = 1.0, seed: int = 0) -> list[str]:
    """The clients that are in a round: ``share`` of them, rounded up, drawn anew for each round; sorted.

    A function of its arguments and nothing else. Raises UsageError.
    """
    names = client_list(clients)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise UsageError(f"share is above 0 and at most 1, not {share!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"seed is a whole number, not {seed!r}")
    if share == 1:
        return names
    count = min(len(names), math.ceil(share * len(names) - 1e-9))  # 0.3 of 10 is 3, whatever the float says
    drawn = sorted(names, key=lambda name: (chance(1, "federation", seed, run, round, name)[0], name))
    return sorted(drawn[:count])
