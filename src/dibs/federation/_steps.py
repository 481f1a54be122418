"""What somebody who waits for a round does next: a function of what it sees and how long it has waited. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

__all__ = ["STRIKES", "Sight", "Step", "is_poison", "next_step"]

STRIKES = 3
Step = Literal["end", "average", "wait", "over"]


class Sight(NamedTuple):
    """A round as a waiter sees it. ``good``: answered, and may be averaged as far as its own client can tell.

    ``top``: the highest attempt at averaging: None, ``"alive"``, or ``"free"`` (closed without an end, certainly dead or quiet).
    ``watch_s``: of one that seems quiet, how long it takes to be sure; else 0.
    """

    clients: Sequence[str]
    answered: Collection[str]
    good: Collection[str]
    quorum: int | None
    ended: bool = False
    top: Literal["alive", "free"] | None = None
    watch_s: float = 0.0


def next_step(sight: Sight, waited_s: float, enough_s: float | None, *, within_s: float, grace_s: float) -> Step:
    """``waited_s``: since the waiter began, or since it first saw somebody average; ``enough_s``: since it first saw
    a quorum, None if it has not. ``"over"``: the time is over and there is nothing one could do."""
    if sight.ended:
        return "end"
    if sight.top is not None:
        if sight.top == "free":
            return "average"
        # longer than one was told, or calls that are short would never find out, however many
        return "over" if waited_s >= within_s + sight.watch_s else "wait"
    if all(client in sight.answered for client in sight.clients):
        return "average"
    over = waited_s >= within_s
    if enough(sight):
        return "average" if over or (enough_s is not None and enough_s >= grace_s) else "wait"
    return "over" if over else "wait"


def is_poison(states: Collection[str]) -> bool:
    """Whether the attempts at averaging, all of which are to be followed, mean that its updates end whoever reads them.

    Counted are those that raised (``failed``), and those that were killed or went quiet without a word (``running``).
    Who was told to end, or had no store or no disk, is ``interrupted``: that says nothing of the updates, however often,
    and nobody could take back a verdict.
    """
    return sum(state in ("failed", "running") for state in states) >= STRIKES


def enough(sight: Sight) -> bool:
    """Whether a quorum has answered; without one only all together are enough."""
    return sight.quorum is not None and len(sight.good) >= sight.quorum
