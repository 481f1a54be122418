"""Why a trial is where it is, in one word: what looks the same in ``state`` and means different things. Pure."""

from __future__ import annotations

from dibs.cell import is_limit
from dibs.study._succession import POISON

__all__ = ["CAUSES", "cause_of"]

CAUSES = ("objective", "limit", "poison")


def cause_of(state: str, reason: str | None) -> str | None:
    """Of a failure: "objective" (it raised, or returned no score), "limit" or "poison". None for other states."""
    if state != "failed":
        return None
    if reason == POISON:
        return "poison"
    return "limit" if is_limit(reason) else "objective"
