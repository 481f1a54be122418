"""Asking again: the point that a trial's asker must have been given, from what it had seen. Reads only."""

from __future__ import annotations

from typing import Any, NamedTuple

from dibs.errors import NotFound, UsageError
from dibs.record import TrialRecord
from dibs.search import History

from ._definition import Definition
from ._saw import rows_of
from ._scoring import Attached, count_of
from ._view import View

__all__ = ["Replay", "replay"]


_DAMAGED = "what its record says of what its asker had seen makes no sense"


class Replay(NamedTuple):
    """``matches``: whether the same point came out; None: it could not be recomputed, and ``said`` says why."""

    matches: bool | None
    point: dict[str, Any] | None
    said: str


def replay(view: View, definition: Definition | None, n: int) -> Replay:
    """Recompute the point of trial ``n``. Raises NotFound if nobody has claimed it, StoreError."""
    with view.lock:
        first = next((seen.record for seen in view.whole(n) if seen.attempt == 0), None)
    if first is None:
        if view.trial(n) is None:
            raise NotFound(f"nobody has claimed trial {n}")
        return Replay(None, None, "its first attempt does not read")
    if first.wish:
        return Replay(None, None, "somebody wished for this point: no sampler was asked")
    if definition is None:
        return Replay(None, None, "the study has no definition, so nobody knows its sampler and space")
    sampler, space = definition.sampler, definition.space
    try:
        goals = count_of(definition.goal)
        history = History.of(_rows(view, first, goals)) if sampler.needs_history else History()
        point = sampler.ask(space, n, history)
    except NotFound as lost:
        return Replay(None, None, str(lost))
    except UsageError as wrong:  # a sampler of somebody's own, or of another version
        return Replay(None, None, str(wrong))
    if point is None:
        return Replay(False, None, f"the sampler has no point of index {n}")
    same = _typed(point) == _typed(first.point)
    return Replay(same, dict(point), "the same point comes out" if same else "another point comes out")


def _rows(view: View, first: TrialRecord, goals: int) -> list[Any]:
    if first.saw is None:
        raise NotFound("it was claimed by a loop of its owner's own, which recorded nothing of what it had seen")

    def record(n: int, attempt: int) -> TrialRecord | None:
        found = view.seens(n).get(attempt)
        return found.record if found is not None else None

    def given(name: str) -> Attached | None:
        return view.given.get(view.given.prefix + name)

    with view.lock:
        if not isinstance(first.saw, dict) or not _is_index(first.saw.get("to"), view.of):
            raise NotFound(_DAMAGED)
        try:
            saw = dict(first.saw)
            if isinstance(saw.get("given"), dict):
                saw["given"] = view.given.recall(saw["given"])
            return rows_of(saw, record, given, goals)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
            raise NotFound(_DAMAGED) from None


def _typed(point: Any) -> dict[str, tuple[type, Any]]:
    """Tells 1 from 1.0 and from True."""
    return {name: (type(value), value) for name, value in point.items()}


def _is_index(to: Any, below: int) -> bool:
    """No record may make its reader count to 10**18."""
    return type(to) is int and 0 <= to <= below
