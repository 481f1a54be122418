"""What a copy does about one record, given both sides' bytes, and which blobs it names. Pure.

A record is replaced only by a later state of itself: the same nonce, and never an open one over a closed one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from dibs.errors import RecordError
from dibs.record import decode, is_closed

from ._layout import digests_in, is_digest

__all__ = ["Rule", "final", "named_blobs", "rule_of"]

Rule = Literal["create", "same", "replace", "keep", "other", "closed twice"]
#: kinds that have no closing state of their own but are rewritten by who claimed them
_REWRITTEN = ("name", "slot", "place")


def rule_of(data: bytes, body: Mapping[str, Any], there: bytes | None, *, exclusive: bool) -> Rule:
    """``there``: what the copy holds. ``exclusive``: no other copier can write between our look and our write.

    "keep": the copy's is later, or may not be touched without exclusion; "other": another owner's; "closed twice":
    two different ends of one attempt, which nobody writes but by hand.
    """
    if there is None:
        return "create"
    if there == data:
        return "same"
    closed = is_closed(body.get("state"))
    try:
        held = decode(there, "")
    except RecordError:
        return "replace" if closed or exclusive else "keep"  # torn on its way: ours to mend
    if held.get("nonce") != body.get("nonce"):
        return "other"
    if is_closed(held.get("state")):
        return "closed twice" if closed else "keep"
    return "replace" if closed or exclusive else "keep"


def final(kind: str, body: Mapping[str, Any]) -> bool:
    """Whether the record will never change again."""
    return is_closed(body["state"]) if "state" in body else kind not in _REWRITTEN


def named_blobs(kind: str, body: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """(digest, certainly a blob's) of what must be there before the record is."""
    if kind in ("trial", "again"):
        yield from ((digest, True) for digest in _of_trial(body))
    elif kind == "roll":
        records = body.get("records")
        for record in records.values() if isinstance(records, dict) else ():
            if isinstance(record, dict):
                yield from ((digest, False) for digest in _of_trial(record))
    else:
        yield from ((digest, False) for digest in digests_in(body))


def _of_trial(body: Mapping[str, Any]) -> Iterator[str]:
    files = body.get("files")
    named = [body.get("blob"), body.get("contract"), *(files.values() if isinstance(files, dict) else ())]
    yield from filter(is_digest, named)
