"""The records of a round, checked: whatever lies under a name is one of these or a RecordError. Pure but for its types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

from dibs._canon import dumps
from dibs.errors import RecordError, UsageError
from dibs.record import TrialRecord, Who, decode, decode_who

from ._rules import Rule

State = Literal["running", "done", "failed", "interrupted"]
POISON = "everybody who averaged it died over it (poison)"  # the reason of such an end, in every version
__all__ = ["POISON", "End", "Terms", "Try", "Update", "end_of", "terms_of", "try_of", "update_of"]


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """What everybody in a round agrees on: who is in, how many are enough (None: all), the rule, the tensors' layout.

    ``layout`` and ``base`` are digests of blobs; ``sized``: whether updates have sizes; ``nested``: node by node.
    """

    clients: tuple[str, ...]
    quorum: int | None
    rule: Mapping[str, Any]
    layout: str
    sized: bool
    base: str | None = None
    nested: bool = False

    def to_json(self) -> dict[str, Any]:
        """In the order in which one is told what is different."""
        return {
            "clients": list(self.clients), "quorum": self.quorum, "rule": dict(self.rule), "layout": self.layout,
            "nested": self.nested, "sized": self.sized, "base": self.base,
        }  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class Update:
    """A client's answer. ``blob``: None if its own client saw that it cannot be averaged, and then ``fault`` says why."""

    client: str
    digest: str
    blob: str | None
    size: float | None
    fault: str | None = None
    me: str = ""


@final
@dataclass(frozen=True, slots=True)
class Try:
    """An attempt at averaging: whose updates go in (client -> digest; None: it does not read), and how it is."""

    attempt: int
    state: State
    of: Mapping[str, str] | None
    modified: float
    version: str
    who: Who
    beat_s: float = 60.0
    reason: str | None = None

    @property
    def closed(self) -> bool:
        return self.state != "running"

    def as_trial(self, run: str, round: int) -> TrialRecord:
        """What the rules of trials need to know of it: an averaging is rescued as a trial is."""
        return TrialRecord(
            v=1, kind="trial", study=run, n=round, attempt=self.attempt, nonce="", point={}, beat_s=self.beat_s, who=self.who,
            state=self.state,
        )  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class End:
    """How a round ended. ``blob``: of the average, None if there is none, and then ``reason`` says why.

    ``weights``: client -> its part (None: nobody was weighed) of those that are in; ``rejected``: client -> why it is not;
    ``missing``: who had not answered.
    """

    blob: str | None
    weights: Mapping[str, float | None]
    rejected: Mapping[str, str]
    missing: tuple[str, ...]
    reason: str | None = None
    attempt: int = 0
    me: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "state": "done" if self.blob is not None else "failed", "blob": self.blob, "weights": dict(self.weights),
            "rejected": dict(self.rejected), "missing": list(self.missing), "reason": self.reason, "attempt": self.attempt,
        }  # fmt: skip


def terms_of(data: bytes, key: str) -> Terms:
    body = _body(data, key, "round-terms")
    clients, quorum, rule = body.get("clients"), body.get("quorum"), body.get("rule")
    if not _texts(clients) or not clients or not isinstance(rule, dict) or type(quorum) not in (int, type(None)):
        raise _wrong(key, "the terms of a round")
    layout, base = body.get("layout"), body.get("base")
    if not isinstance(layout, str) or not isinstance(base, str | None):
        raise _wrong(key, "the terms of a round")
    try:
        Rule(**rule)
    except (TypeError, UsageError) as wrong:
        raise RecordError(f"{key} has a rule that nobody can follow ({wrong})", key=key) from None
    return Terms(tuple(clients), quorum, rule, layout, body.get("sized") is True, base, body.get("nested") is True)


def update_of(data: bytes, key: str, client: str) -> Update:
    body = _body(data, key, "round-update")
    digest, blob, size, fault = (body.get(name) for name in ("digest", "blob", "size", "fault"))
    # decode has no NaN and no infinity: JSON has neither
    if body.get("client") != client or not isinstance(digest, str) or not isinstance(blob, str | None):
        raise _wrong(key, f"an update of {client!r}")
    if type(size) not in (int, float, type(None)) or not isinstance(fault, str | None) or (blob is None and not fault):
        raise _wrong(key, f"an update of {client!r}")
    return Update(client, digest, blob, size, fault, _me(body))


def try_of(data: bytes, key: str, attempt: int, modified: float, version: str) -> Try:
    """Never raises: an attempt that does not read is running since its stamp, as everywhere."""
    try:
        body = _body(data, key, "averaging")
    except RecordError:
        # one that is claimed and not written yet has nobody who beats: writing takes no time
        return Try(attempt, "running", None, modified, version, Who(), 60.0 if data else 5.0)
    of, state, beat_s = body.get("of"), body.get("state"), body.get("beat_s")
    good = isinstance(of, dict) and all(isinstance(value, str) for value in of.values())
    return Try(
        attempt,
        state if state == "done" or state == "failed" or state == "interrupted" else "running",
        of if good else None,
        modified,
        version,
        decode_who(dumps(body.get("who"))),
        float(beat_s) if isinstance(beat_s, int | float) else 60.0,
        body.get("reason") if isinstance(body.get("reason"), str) else None,
    )


def end_of(data: bytes, key: str) -> End:
    body = _body(data, key, "average")
    blob, weights, rejected, missing = (body.get(name) for name in ("blob", "weights", "rejected", "missing"))
    reason, attempt = body.get("reason"), body.get("attempt")
    if not isinstance(weights, dict) or not all(isinstance(value, int | float | None) for value in weights.values()):
        raise _wrong(key, "the end of a round")
    if not isinstance(rejected, dict) or not isinstance(missing, list) or not isinstance(blob, str | None):
        raise _wrong(key, "the end of a round")
    if not isinstance(reason, str | None) or type(attempt) is not int or (blob is None) != bool(reason):
        raise _wrong(key, "the end of a round")
    told = {client: str(why) for client, why in rejected.items()}
    return End(blob, weights, told, tuple(map(str, missing)), reason, attempt, _me(body))


def _body(data: bytes, key: str, kind: str) -> dict[str, Any]:
    body = decode(data, key)
    if body.get("kind") != kind:
        raise RecordError(f"{key} is no record of kind {kind!r}", key=key)
    return body


def _wrong(key: str, what: str) -> RecordError:
    return RecordError(f"{key} does not read as {what}", key=key)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _me(body: Mapping[str, Any]) -> str:
    who = body.get("who")
    return str(who.get("me", "")) if isinstance(who, dict) else ""
