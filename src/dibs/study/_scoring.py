"""What an objective says at its end, as it stands in a record: a score or one for each goal, and constraints. Pure.

What comes from outside is checked here, in words; what comes from a record is read here, and never raises.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from dibs._canon import plain
from dibs.errors import UsageError
from dibs.record import Closed, TrialRecord
from dibs.search import Goal, Goals, Score, a_goal

__all__ = [
    "MOST_CONSTRAINTS", "Attached", "constraints_of", "count_of", "excess_of", "goal_said", "met", "score_in",
    "score_of", "scored", "scores_in", "scores_of",
]  # fmt: skip

MOST_CONSTRAINTS = 64


class Attached(NamedTuple):
    """One attached result. ``scores``: where there are several goals, one for each, and then no ``score``."""

    point: dict[str, Any]
    score: float | None
    scores: tuple[float, ...] = ()
    constraints: dict[str, float] | None = None


def goal_said(goal: Any) -> Goals | None:
    """A goal as it was passed: "min", "max", a tuple of 2 to 8 of these, or None. Raises UsageError for anything else."""
    return None if goal is None else a_goal(goal)


def count_of(goal: Any) -> int:
    """How many scores a trial has where that is the goal."""
    return len(goal) if isinstance(goal, tuple) else 1


def score_of(value: Any, *, finite: bool = True) -> float:
    """A score as a float: a number, a numpy scalar or a 0-d tensor. Raises UsageError that says what it is instead."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        raise UsageError(
            f"a score must be a number, not {type(value).__name__} ({value!r:.60}): several at once are for trial.done in a "
            f'study of several goals, such as goal=["min", "max"]'
        )
    return _number(value, "a score", finite)


def scores_of(value: Any, goal: tuple[Goal, ...]) -> tuple[float, ...]:
    """A score for each goal: of a list, a tuple, or an array or tensor of one dimension. Raises UsageError in words."""
    wanted = f"this study has {len(goal)} goals, and a trial ends with {len(goal)} scores in their order"
    if not isinstance(value, list | tuple) and getattr(value, "ndim", None) != 1:
        raise UsageError(f"{wanted}, as a list: not {type(value).__name__} ({value!r:.60})")
    if len(value) != len(goal):
        raise UsageError(f"{wanted}, not with {len(value)}")
    return tuple(
        _number(each, f"score {at} of {len(goal)}, the one to {goal[at - 1]}imise,", True)
        for at, each in enumerate(value, start=1)
    )


def constraints_of(value: Any) -> dict[str, float] | None:
    """Constraints by name, each a finite number that is 0 or less where it is met; None for none. Raises UsageError."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise UsageError(f"constraints are a mapping of names to numbers, not {type(value).__name__} ({value!r:.60})")
    if len(value) > MOST_CONSTRAINTS:
        raise UsageError(f"a trial has at most {MOST_CONSTRAINTS} constraints, not {len(value)}")
    found: dict[str, float] = {}
    for name, number in value.items():
        if not isinstance(name, str) or not name or not _is_text(name):
            raise UsageError(f"the name of a constraint must be a text, not {name!r:.60}")
        found[str(name)] = _number(number, f"constraint {name!r:.60}", True)
    return found or None


def excess_of(constraints: Mapping[str, float] | None) -> float | None:
    """How far a trial is from being feasible: the sum of what is above 0, else the largest; None without constraints.

    The same whatever the order of the names, and finite.
    """
    if not constraints:
        return None
    above = [value for value in constraints.values() if value > 0]
    if not above:
        return max(constraints.values())
    try:
        return math.fsum(above)
    except OverflowError:
        return sys.float_info.max


def met(constraints: Mapping[str, float] | None) -> bool:
    """Whether no constraint is broken; so it is where none was reported."""
    return not constraints or max(constraints.values()) <= 0


# what a record says


def scores_in(record: TrialRecord | Closed) -> tuple[float, ...]:
    """The scores of a record, one for each goal; empty where there are none, or not as many as goals."""
    goal = record.goal
    if not isinstance(goal, tuple):
        return () if record.score is None else (record.score,)
    scores = record.scores
    return scores if scores is not None and len(scores) == len(goal) else ()


def score_in(record: TrialRecord | Closed) -> float | None:
    """The score of a record of one goal; with several there is none."""
    return None if isinstance(record.goal, tuple) else record.score


def scored(record: TrialRecord | Closed, goals: int) -> Score | None:
    """What a history of so many goals has as the record's score: a number, a tuple of so many, or None."""
    if goals == 1:
        return score_in(record)
    scores = scores_in(record)
    return scores if len(scores) == goals else None


def _number(value: Any, what: str, finite: bool) -> float:
    value = plain(value)
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__") or getattr(value, "ndim", 0) != 0:
        raise UsageError(f"{what} must be a number, not {type(value).__name__} ({value!r:.60})")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as wrong:
        raise UsageError(f"{what} must be a number, not {value!r:.60} ({wrong})") from None
    if finite and not math.isfinite(number):
        raise UsageError(f"{what} must be finite, not {number}")
    return number


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True
