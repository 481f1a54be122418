"""Curves: the running one as its owner last showed it, the closed one from its blob."""

from __future__ import annotations

from typing import Any, NamedTuple

from dibs.errors import DibsError, RecordError
from dibs.record import TrialRecord, decode
from dibs.store import Store
from dibs.study._scoring import score_in

from ._source import Source

__all__ = ["Curve", "Live", "Told", "live_of", "told_of"]

Curve = tuple[tuple[int, float], ...]


class Live(NamedTuple):
    """What a running attempt showed last, and when (the store's stamp)."""

    curve: Curve
    modified: float


class Told(NamedTuple):
    """What the blob of a closed attempt holds, or why it does not read."""

    curve: Curve
    traceback: str | None
    verdict: dict[str, Any] | None = None
    wrong: str | None = None
    ended: dict[str, Any] | None = None


def live_of(source: Source, record: TrialRecord) -> Live | None:
    """The curve a running attempt has shown; None if it has shown none (or what is there is another's)."""
    key = source.view.keys.live(record.n, record.attempt)
    there = source.store.backend.read(key)
    if there is None:
        return None
    try:
        body = decode(there.data, key)
        if body.get("nonce") != record.nonce:
            return None
        return Live(_curve(body.get("curve"), key), there.modified)
    except RecordError:  # best effort: rewritten within a second or dropped at close
        return Live((), there.modified)


def told_of(store: Store, record: TrialRecord) -> Told:
    """The curve, the traceback, the verdict and the evidence of a closed attempt; a single value needs no blob."""
    if record.blob is None:
        alone = score_in(record) is not None
        return Told(((record.step or 0, record.score or 0.0),) if alone else (), None)
    try:
        body = decode(store.get(record.blob), f"blob {record.blob}")
        trace, verdict, ended = body.get("traceback"), body.get("verdict"), body.get("ended")
        return Told(
            _curve(body.get("curve"), f"blob {record.blob}"),
            trace if isinstance(trace, str) else None,
            verdict if isinstance(verdict, dict) else None,
            ended=ended if isinstance(ended, dict) else None,
        )
    except DibsError as wrong:
        return Told((), None, wrong=str(wrong))


def _curve(pairs: Any, key: str) -> Curve:
    try:
        return tuple((int(step), float(value)) for step, value in pairs)  # float() reads "nan" and "inf" too
    except (TypeError, ValueError, OverflowError) as wrong:
        raise RecordError(f"{key} holds no curve ({wrong})", key=key) from None
