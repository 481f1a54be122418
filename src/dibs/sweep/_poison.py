"""What is known of the attempts after which a cell was given up: how each ended as far as anybody saw, and what its log says.

The verdict itself (``poison``) has no evidence of its own: who would have written it was killed together with the program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from dibs._clock import iso
from dibs.cell import Cause, Evidence, classify, tail_of
from dibs.cell._causes import detail_of
from dibs.study._succession import POISON

from ._runs import Run

__all__ = ["with_evidence"]

LogOf = Callable[[Run], Path]
_SHOWN = 3  # different reasons


def with_evidence(runs: Sequence[Run], log_of: LogOf) -> tuple[Run, ...]:
    """The attempts, in their order; a verdict says what is known of those it is over. ``log_of``: where one's log would be."""
    return tuple(
        replace(run, reason=_told(_over(runs[:at]), log_of)) if run.reason == POISON else run
        for at, run in enumerate(runs)
    )


def _over(before: Sequence[Run]) -> list[Run]:
    """The attempts that came to nothing since the last one that came to something, or was released."""
    found: list[Run] = []
    for run in reversed(before):
        if run.state not in ("running", "interrupted"):
            break
        found.insert(0, run)
    return found


def _told(runs: Sequence[Run], log_of: LogOf) -> str:
    parts = []
    lost = [run for run in runs if run.state == "running"]
    if lost:
        where = ", ".join(_where(list(found)) for _, found in groupby(lost, lambda run: (run.me, run.host)))
        parts.append(f"nobody saw how {where} ended, as if cell and worker had been killed at once, for memory perhaps")
    closed = Counter(run.reason or run.cause or "no reason was given" for run in runs if run.state == "interrupted")
    if closed:
        said = [f"{why} ({count} times)" if count > 1 else why for why, count in closed.most_common(_SHOWN)]
        more = f", and {len(closed) - _SHOWN} reasons more" if len(closed) > _SHOWN else ""
        parts.append(f"{closed.total()} interrupted: {', '.join(said)}{more}")
    return "; ".join([POISON + ": " + "; ".join(parts) if parts else POISON, *_log(runs, log_of)])


def _where(runs: Sequence[Run]) -> str:
    numbers = [str(run.attempt) for run in runs]
    which = f"attempt {numbers[0]}" if len(numbers) == 1 else f"attempts {', '.join(numbers[:-1])} and {numbers[-1]}"
    last = "the last " if len(runs) > 1 else ""
    since = f" ({last}begun {runs[-1].since}, last seen {iso(runs[-1].moved)})" if runs[-1].since else ""
    return f"{which} by {runs[-1].me} on {runs[-1].host}{since}"


def _log(runs: Sequence[Run], log_of: LogOf) -> list[str]:
    """The newest log that can be read from here, and what its last lines amount to."""
    for run in reversed(runs):
        path = log_of(run)
        if path.is_file() and not path.is_symlink():
            return [f"the log of attempt {run.attempt} is {path}, {_says(Evidence(tail=tail_of(path)))}"]
    hosts = sorted({run.host for run in runs if run.host})
    return [f"no log of theirs is on this machine: look on {', '.join(hosts)}"] if hosts else []


def _says(seen: Evidence) -> str:
    if not seen.tail:
        return "which is empty"
    cause = classify(seen)
    return (
        f"which ends with: {seen.tail[-1].strip()[:200]}"
        if cause is Cause.VANISHED
        else f"which says {detail_of(cause, seen)}"
    )
