"""What somebody may have meant who names a cell that is not there. Pure."""

from __future__ import annotations

from difflib import get_close_matches

from ._models import Plan

__all__ = ["meant"]

_NAMED = 8  # cells, where somebody named one that is not there


def meant(plan: Plan, name: str) -> str:
    """The nearest name, or what names there are."""
    names = [cell.name for cell in plan.cells]
    near = get_close_matches(name, names, 1)
    if near:
        return f"did you mean {near[0]}?"
    return f"there is {', '.join(names[:_NAMED])}" + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
