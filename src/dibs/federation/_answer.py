"""A client's answer to a round: agreed terms, then its update, once. What is published first counts, whoever starts again."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, final

from dibs.errors import RefusedError
from dibs.store import RoundKeys, Store

from ._decided import decide
from ._exports import Flat, difference
from ._fedavg import unfit
from ._files import chunks_of
from ._layouts import layout_in
from ._look import Round
from ._records import Terms, terms_of, update_of

__all__ = ["Export", "Standing", "agree", "answer", "demand_same", "say_late"]

log = logging.getLogger("dibs")
Standing = Literal["new", "same", "first", "late", "none"]


@final
@dataclass(frozen=True, slots=True)
class Export:
    """What a client brings to a round, ready to be streamed."""

    client: str
    tensors: Flat
    nested: bool
    size: float | None
    metadata: Mapping[str, str]

    def digest(self) -> str:
        hasher = hashlib.sha256()
        for chunk in chunks_of(self.tensors, self.metadata):
            hasher.update(chunk)
        return hasher.hexdigest()


def agree(round: Round, ours: Terms, stale_s: float, within_s: float, me: str | None) -> None:
    """Ours are the terms if nobody was first. Raises RefusedError, which says in what we differ from those that are; RoundTimeout."""
    store, keys, number = round.store, RoundKeys(round.run), round.number
    if round.terms is None:
        body = {**store.head("round-terms", me), "run": round.run, "round": number, **ours.to_json()}
        there, _ = decide(store, partial(keys.terms, number), body, stale_s=stale_s, within_s=within_s)
        round.terms = terms_of(there.data, keys.terms(number))
    demand_same(round, ours.to_json())


def demand_same(round: Round, here: Mapping[str, Any]) -> None:
    """RefusedError for the first field of ours in which the round's terms differ; who has no export knows only some."""
    theirs = round.terms
    assert theirs is not None
    there = theirs.to_json()
    for field in here:
        if there[field] == here[field]:
            continue
        where = f"round {round.number} of {round.run!r}"
        if field == "layout":
            said = _layouts(round.store, theirs.layout, here[field])
        elif field == "sized":
            said = (
                "others give a size and this client none"
                if theirs.sized
                else "this client gives a size and others none"
            )
        else:
            said = f"it was begun with {field} = {there[field]}, and this client has {here[field]}"
        raise RefusedError(
            f"{where}: {said}; all clients of a round must agree (or begin another run)",
            field=field, theirs=there[field], ours=here[field],
        )  # fmt: skip


def _layouts(store: Store, theirs: str, ours: str) -> str:
    (there, by_node), (here, ours_by_node) = layout_in(store, theirs), layout_in(store, ours)
    found = difference(here, there)
    if found is None:
        return "it is node by node" if by_node and not ours_by_node else "it is not node by node"
    return f"tensor {found[0]!r} of this client {found[1]}"


def answer(round: Round, export: Export, digest: str, stale_s: float, within_s: float, me: str | None) -> Standing:
    """Publish the update if the client has none yet. "same": it had published these very bytes; "first": others, which count;
    "late": the round is being averaged without it. Raises RoundTimeout, StoreError."""
    round.look_at(export.client)
    mine = round.updates.get(export.client)
    if mine is None:
        if round.refresh().of is not None or round.end is not None:
            return "late"  # nothing is sent that nobody will look at; the caller says so in the store
        fault = unfit(export.tensors)
        blob = round.store.put(chunks_of(export.tensors, export.metadata)) if fault is None else None
        if fault is not None:
            log.warning("round %d of %r: this client's update cannot be averaged: %s", round.number, round.run, fault)
        body = {
            **round.store.head("round-update", me), "run": round.run, "round": round.number, "client": export.client,
            "digest": digest, "blob": blob, "size": export.size, "fault": fault,
        }  # fmt: skip
        keys, number, client = RoundKeys(round.run), round.number, export.client
        there, ours = decide(
            round.store, partial(keys.update, number, client), body, stale_s=stale_s, within_s=within_s
        )
        if ours:
            return "new"
        mine = update_of(there.data, keys.update(number, client), client)
    if mine.digest == digest:
        if mine.blob is not None and _is_needed(round) and not round.store.has(mine.blob):  # somebody removed it
            round.store.put(chunks_of(export.tensors, export.metadata))
        return "same"
    log.warning(
        "client %r has published another update for round %d of %r before: that one counts", export.client, round.number, round.run
    )  # fmt: skip
    return "first"


def _is_needed(round: Round) -> bool:
    """Whether anybody will still look at an update: there is no average yet, or it was removed and has to be made again."""
    if round.end is None:
        return True
    return round.end.blob is not None and not round.forgotten and not round.store.has(round.end.blob)


def say_late(round: Round, client: str, digest: str, me: str | None) -> None:
    """Record that an update came too late to go in; once."""
    body = {
        **round.store.head("round-late", me), "run": round.run, "round": round.number, "client": client, "digest": digest,
    }  # fmt: skip
    if round.store.settler.claim(RoundKeys(round.run).late(round.number, client), body) is not None:
        log.warning(
            "round %d of %r: the update of %r came too late and does not go in", round.number, round.run, client
        )
