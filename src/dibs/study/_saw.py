"""What an asker had seen: enough, in a few numbers, to ask again and get the same point. Pure.

Settled trials never change again, so their numbers stand for their scores; a trial counts by the attempt that counted
when it was seen. A history too patchy for a few numbers leaves a digest, which proves a guess and rebuilds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dibs._canon import digest
from dibs.errors import NotFound
from dibs.record import TrialRecord
from dibs.search import STATES, History, Row

from ._scoring import Attached, excess_of, scored

__all__ = ["LONGEST", "attached_row", "record_row", "rows_of", "saw_of"]

LONGEST = 256  # numbers in a record; more is a digest
_RUNNING = STATES.index("running")


def saw_of(
    history: History, attempts: Mapping[int, int], given: Sequence[str] | Mapping[str, Any] = ()
) -> dict[str, Any]:
    """``{"to", "not", "running", "attempts"}``: trials below ``to`` were seen settled, but for those in ``not`` and
    ``running``; ``attempts`` names the attempt that counted where it was not 0.

    ``given``: the attached results in the history, by their names or as ``{"count", "digest"}`` of these. More than
    ``LONGEST`` numbers become ``{"to", "digest"}``, the SHA-256 of the same in canonical form.
    """
    trials = history.n >= 0
    is_running = history.state == _RUNNING
    settled, running = history.n[trials & ~is_running], history.n[trials & is_running]
    to = int(settled[-1]) + 1 if len(settled) else 0
    there = np.zeros(to, np.bool_)
    there[settled] = True
    there[running[running < to]] = True
    seen = np.concatenate([settled, running])
    saw: dict[str, Any] = {
        "to": to,
        "not": np.flatnonzero(~there).tolist(),
        "running": running.tolist(),
        "attempts": {str(n): attempts[n] for n in sorted(attempts.keys() & set(seen.tolist()))} if attempts else {},
    }
    if given:
        saw["given"] = dict(given) if isinstance(given, Mapping) else list(given)
    if sum(len(part) for part in saw.values() if not isinstance(part, int)) > LONGEST:
        return {"to": to, "digest": digest(saw)}
    return saw


def rows_of(
    saw: Mapping[str, Any],
    record: Callable[[int, int], TrialRecord | None],
    given: Callable[[str], Attached | None],
    goals: int = 1,
) -> list[Row]:
    """The rows that were seen, from the records as they are now. Raises NotFound, in words, for what cannot be had again.

    ``record``: (n, attempt) -> what stands there; ``given``: an attached result by its name; ``goals``: how many.
    """
    if "digest" in saw:
        raise NotFound("what its asker had seen was too patchy to keep: only a digest of it is there")
    missing, running, attempts = set(saw["not"]), set(saw["running"]), saw["attempts"]
    rows: list[Row] = []
    for name in saw.get("given", ()):
        there = given(name)
        if there is None:
            raise NotFound(f"the attached result {name} is not there any more")
        rows.append(attached_row(there, goals))
    for n in sorted({*range(saw["to"])} - missing | running):
        attempt = attempts.get(str(n), 0)
        found = record(n, attempt)
        if found is None:
            raise NotFound(f"attempt {attempt} of trial {n}, which its asker had seen, does not read")
        if n in running:
            rows.append((n, found.point, None, "running", None))
        elif found.closed:
            rows.append(record_row(found, goals))
        else:
            raise NotFound(f"attempt {attempt} of trial {n}, which its asker had seen closed, is not closed")
    return rows


def record_row(record: TrialRecord, goals: int) -> Row:
    """An attempt as a row of a history of so many goals."""
    plain = goals == 1 and not isinstance(record.goal, tuple)  # as nearly always
    score = record.score if plain else scored(record, goals)
    if record.constraints:
        return record.n, record.point, score, record.state, record.step, excess_of(record.constraints)
    return record.n, record.point, score, record.state, record.step


def attached_row(found: Attached, goals: int) -> Row:
    """An attached result as a row of a history of so many goals."""
    score = found.score if goals == 1 else found.scores if len(found.scores) == goals else None
    return -1, found.point, score, "done", None, excess_of(found.constraints)
