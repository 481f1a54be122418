"""The attempt after the highest one: with the first one's point, seed and contract, or closed as poison.

Asking the sampler again at attempt k+1 would give another point and resume a wrong checkpoint, so the point
is copied from the highest readable lower attempt. Only when none reads is it asked anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ._attempt import Attempt, Terms, claim_attempt
from ._fold import Folded, Seen
from ._quiet import poisoned
from ._view import View

__all__ = ["POISON", "failed_attempts", "next_attempt"]

log = logging.getLogger("dibs")
POISON = "poison"


def failed_attempts(seens: Mapping[int, Seen], below: int) -> int:
    """How many attempts failed, which is what ``retries`` counts: no lost ones, and no verdict over them."""
    records = [seen.record for k, seen in seens.items() if k < below and seen.record is not None]
    return sum(record.state == "failed" and record.reason != POISON for record in records)


def next_attempt(
    view: View,
    trial: Folded,
    terms: Terms,
    anew: Callable[[], Mapping[str, Any] | None],
    *,
    verdict: tuple[str, bool] | None = None,
    saw: Mapping[str, Any] | None = None,
) -> Attempt | None:
    """Claim ``trial.top.attempt + 1``; None if somebody else has it, or if the verdict was poison.

    Poison (3 quiet or 10 interrupted attempts since the last release) claims it in state failed. So does a
    ``verdict``, a reason and whether a retry is left, on a top attempt whose owner is certainly dead; it is returned.
    """
    n, attempt = trial.n, trial.top.attempt + 1
    if all(seen.record is None for seen in view.seens(n).values()):
        for lower in range(attempt):  # an old listing may have left out the one that reads
            view.look(n, lower)
    attempts = sorted(view.seens(n).values(), key=lambda seen: -seen.attempt)
    if not attempts:
        return None  # removed by hand meanwhile: its index is free again
    source = next((seen.record for seen in attempts if seen.record is not None), None)
    point = source.point if source is not None else anew()
    if point is None:
        return None
    closed = None
    poison = poisoned(attempts, view.released(n))
    if poison or verdict is not None:
        reason, again = verdict if verdict is not None and not poison else (POISON, False)
        closed = {"state": "failed", "reason": reason, "took_s": 0.0, "score": None, "step": None, "again": again}
    copied: dict[str, Any] = {"saw": saw} | (
        {"seed": source.seed, "wish": source.wish, "contract": source.contract} if source is not None else {}
    )
    claimed = claim_attempt(view.store, view.keys, n, attempt, point, terms, closed=closed, **copied)
    if claimed is None or closed is not None:
        view.look(n, attempt)
    else:
        view.own(claimed)
    if claimed is not None and poison:
        view.poisoned += 1
        log.warning(
            "%s ended %d attempts without a result: closed as failed (poison); `dibs %s` frees it",
            claimed.called, attempt, "retry" if claimed.called.startswith("trial") else "sweep retry",
        )  # fmt: skip
        return None
    return claimed
