"""The first lines of what is read of a study's results: which study, which goal, how many."""

from __future__ import annotations

from dibs.view import Contour, Importances, Slices

from ._text import out, safe

__all__ = ["aim_text", "say_heading", "say_infeasible"]


def aim_text(goal: str, which: int, goals: int) -> str:
    """``goal min``, or which of several."""
    return f"goal {goal}" if goals == 1 else f"goal {which} ({goal}) of 0 to {goals - 1}"


def say_heading(told: Contour | Importances | Slices) -> None:
    """One line."""
    attached = f", {told.attached} of them attached" if told.attached else ""
    out(f"study {safe(told.study)}, {aim_text(told.goal, told.which, told.goals)}: {told.results} results{attached}")


def say_infeasible(told: Contour | Slices) -> None:
    """One line more, where some results break a constraint."""
    if told.infeasible:
        out(f"  {told.infeasible} break a constraint: never the best, but in mean and median")
