"""A round's average computed once more, from the same updates, and held against what was published. Writes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from dibs.errors import NotFound, RecordError, UsageError
from dibs.store import Store

from ._computing import compute
from ._look import Round, rounds_in, runs_in
from ._records import POISON, End
from ._room import room

__all__ = ["Verified", "verify"]

State = Literal["same", "differs", "open", "put away"]


@final
@dataclass(frozen=True, slots=True)
class Verified:
    """What became of one round. ``"open"``: it has no end yet; ``"put away"``: its updates are not kept any more."""

    run: str
    round: int
    state: State
    why: str = ""


def verify(store: Store, run: str, rounds: list[int] | None = None) -> Iterator[Verified]:
    """Each round in turn, in order; ``rounds``: only these. Bit for bit: the same updates make the same file.

    Raises NotFound (no such run, or no such round), StoreError for an outage.
    """
    there = rounds_in(store, run)
    if not there:
        known = ", ".join(map(repr, runs_in(store)[:20])) or "none"
        raise NotFound(f"there is no run {run!r} of federated rounds in {store.url}; there is: {known}")
    for number in there if rounds is None else rounds:
        if number not in there:
            raise NotFound(f"run {run!r} has no round {number}: it has {there[0]} to {there[-1]}")
        yield _one(Round(store, run, number))


def _one(seen: Round) -> Verified:
    def told(state: State, why: str = "") -> Verified:
        return Verified(seen.run, seen.number, state, why)

    try:
        seen.refresh()
    except RecordError as wrong:
        return told("differs", str(wrong))
    if seen.end is None:
        return told("open")
    if seen.forgotten:
        return told("put away")
    of = seen.of
    if seen.terms is None or of is None:
        return told("differs", "its terms, or whose updates went in, are not there any more")
    if seen.end.reason == POISON:
        return told("same", seen.end.reason)
    try:
        again = compute(
            seen.store, seen.run, seen.number, seen.terms, of, seen.updates, seen.end.attempt, keep=_digest
        )  # fmt: skip
    except (RecordError, NotFound, UsageError, TypeError) as wrong:  # the layout or the base; a rule that nobody wrote
        return told("differs", str(wrong))
    why = _difference(seen.end, again)
    if why is None and seen.end.blob is not None:
        why = _damage(seen.store, seen.end.blob)
    return told("same", seen.end.reason or "") if why is None else told("differs", why)


def _difference(end: End, again: End) -> str | None:
    for client in sorted({*end.rejected, *again.rejected}):
        if (client in end.rejected) != (client in again.rejected):
            now = again.rejected.get(client)
            return f"{client!r} is rejected now: {now}" if now else f"{client!r} was rejected and need not have been"
    if dict(end.weights) != dict(again.weights):
        return f"the weights were {dict(end.weights)} and are {dict(again.weights)}"
    if end.blob != again.blob:
        return f"its updates make {again.blob or again.reason}, and {end.blob or end.reason} was published"
    return None


def _damage(store: Store, blob: str) -> str | None:
    try:
        with room() as folder:
            store.fetch(blob, folder / "average")
    except (NotFound, RecordError) as wrong:
        return str(wrong)
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
