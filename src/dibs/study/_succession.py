"""The attempt after the highest one: with the first one's point, seed and contract, or closed as poison.

Asking the sampler again at attempt k+1 would give another point and resume a wrong checkpoint, so the point
is copied from the highest readable lower attempt. Only when none reads is it asked anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ._attempt import Attempt, Terms, claim_attempt
from ._fold import Folded
from ._quiet import poisoned
from ._view import View

__all__ = ["POISON", "next_attempt"]

log = logging.getLogger("dibs")
POISON = "poison"


def next_attempt(
    view: View, trial: Folded, terms: Terms, anew: Callable[[], Mapping[str, Any] | None]
) -> Attempt | None:
    """Claim ``trial.top.attempt + 1``; None if somebody else has it, or if the verdict was poison.

    Poison (3 quiet or 10 interrupted attempts since the last release) claims it in state failed.
    """
    n, attempt = trial.n, trial.top.attempt + 1
    if all(seen.record is None for seen in view.seens(n).values()):
        for lower in range(attempt):  # an old listing may have left out the one that reads
            view.look(n, lower)
    attempts = sorted(view.seens(n).values(), key=lambda seen: -seen.attempt)
    source = next((seen.record for seen in attempts if seen.record is not None), None)
    point = source.point if source is not None else anew()
    if point is None:
        return None
    closed = None
    if poisoned(attempts, view.released(n)):
        closed = {"state": "failed", "reason": POISON, "took_s": 0.0, "score": None, "step": None, "again": False}
    copied: dict[str, Any] = (
        {"seed": source.seed, "wish": source.wish, "contract": source.contract} if source is not None else {}
    )
    claimed = claim_attempt(view.store, view.keys, n, attempt, point, terms, closed=closed, **copied)
    if claimed is None or closed is not None:
        view.look(n, attempt)
    else:
        view.own(claimed)
    if claimed is not None and closed is not None:
        log.warning(
            "trial %d ended %d attempts without a result: closed as failed (poison); `dibs retry` frees it", n, attempt
        )
        return None
    return claimed
