"""The best trial of all processes: which it is, which artefact goes with it, and what is said about both. Writes nothing.

The global best ran in exactly one process, where it was also that process's best, so its file is among those read.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from dibs._passing import interrupts

from ._reading import Entry, load, read
from ._values import pack, same

__all__ = ["SinkRecord", "best_of"]

log = logging.getLogger("dibs")
_LOOKS = 5  # while workers go on, a blob may be replaced between its metadata and itself


class SinkRecord(NamedTuple):
    """The best trial that workers recorded: ``score``, ``params`` and ``scalars`` are the winner's.

    ``artifact`` is the winner's if ``artifact_is_winner``; else that of the best trial that has one (the winner carried
    none, or ``artifact_error`` says why it is not there). ``artifact_score``, ``artifact_params`` and ``artifact_scalars``
    are always those of the trial that the artefact is of, and None where there is no artefact.

    ``tied_count``: trials that share the score, the winner included, as far as they are kept (``Sink.record``); of a process that
    began when 32 had it, none.
    ``matched_best_params``: whether the winner's parameters are the preferred ones; None if none were preferred, or the
    winner's were not recorded. ``skipped``: files that could not be read and were passed over.
    """

    score: float
    params: Any
    scalars: dict[str, Any]
    artifact: Any
    artifact_error: str | None
    matched_best_params: bool | None
    tied_count: int
    artifact_is_winner: bool
    artifact_score: float | None
    artifact_params: Any
    artifact_scalars: dict[str, Any] | None
    skipped: int


def best_of(folder: str, maximize: bool, preferred: Any) -> SinkRecord | None:
    """The best trial in the folder, or None if there is none. StoreError if the folder is not there."""
    packed = pack(preferred)
    for look in range(_LOOKS):
        entries, skipped = read(folder)
        if not entries:
            break
        tied = _tied(entries, maximize)
        winner = _chosen(tied, packed)
        holders = [winner] if winner.blob else _tied([each for each in entries if each.blob], maximize)
        holder = _chosen(holders, packed) if holders else None
        artifact, error = None, None
        try:
            if holder:
                artifact, error = load(folder, holder)
        except OSError as unread:  # FileNotFoundError as a rule: its owner has a better one by now
            if interrupts(unread):
                raise
            error = f"could not be read: {unread}"
            if look < _LOOKS - 1:
                continue
        _warn(skipped, folder)
        of = holder if error is None else None
        return SinkRecord(
            score=winner.score,
            params=winner.params,
            scalars=winner.scalars,
            artifact=artifact,
            artifact_error="; ".join(filter(None, [winner.error, error])) or None,
            matched_best_params=None if preferred is None or winner.packed is None else same(winner.packed, packed),
            tied_count=len(tied),
            artifact_is_winner=of is winner,
            artifact_score=of.score if of else None,
            artifact_params=of.params if of else None,
            artifact_scalars=of.scalars if of else None,
            skipped=len(skipped),
        )
    _warn(skipped, folder)
    return None


def _tied(entries: list[Entry], maximize: bool) -> list[Entry]:
    """Those with the best score."""
    best = (max if maximize else min)((each.score for each in entries), default=0.0)
    return [each for each in entries if each.score == best]


def _chosen(tied: list[Entry], preferred: Any) -> Entry:
    """The earliest of those whose parameters are the preferred ones, else the earliest.

    By the clock that never runs backwards where one machine wrote all of them since it was started, else by the wall.
    """
    matching = [each for each in tied if preferred is not None and same(each.packed, preferred)]
    among = matching or tied
    steady = bool(among[0].boot) and len({each.boot for each in among}) == 1
    return min(among, key=lambda each: (each.tick if steady else each.wall, each.trial))


def _warn(skipped: list[str], folder: str) -> None:
    if skipped:
        count = f"{len(skipped)} files" if len(skipped) > 1 else "a file"
        log.warning("%s in %s could not be read and are passed over: %s", count, folder, ", ".join(skipped[:3]))
