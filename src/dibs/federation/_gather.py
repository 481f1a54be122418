"""A federated round as one call: publish, wait, average if it is one's turn, and return what everybody gets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

from dibs.errors import RoundStopped, UsageError
from dibs.store import Store

from ._again import average_of
from ._answer import Export, Standing, agree, answer
from ._checks import check_rules, check_size, check_times, number_of
from ._exports import flatten, layout_of, unflatten
from ._fedavg import demand_base
from ._files import chunks_of
from ._forgetting import forget
from ._layouts import keep_layout
from ._look import Round, rounds_in
from ._participation import client_list, participants
from ._records import Terms
from ._room import room
from ._rules import Rule
from ._waiting import wait_for_end

__all__ = ["Gathered", "gather", "latest"]


@final
@dataclass(frozen=True, slots=True)
class Gathered:
    """A round's average, and how it came about.

    ``tensors``: as the exports were; the arrays are mapped from a file that is gone, and writing to them changes nothing else.
    ``weights``: client -> its part (None: nobody was weighed); ``rejected``: client -> why; ``missing``: who had not
    answered when it began; ``update``: what became of one's own: "new", "same" (published before, these bytes), "first"
    (published before, other bytes, and those count), "late" (not in), "none" (one was not asked).
    """

    tensors: dict[str, Any]
    run: str
    round: int
    digest: str
    weights: dict[str, float | None]
    rejected: dict[str, str]
    missing: tuple[str, ...]
    update: Standing = "none"


def gather(
    store: Store | str | os.PathLike[str],
    export: Mapping[str, Any] | None,
    *,
    run: str,
    round: int,
    clients: Iterable[str],
    client: str | None,
    size: float | None = None,
    quorum: int | None = None,
    within: float = 600.0,
    grace: float = 30.0,
    share: float = 1.0,
    seed: int = 0,
    robust: str | None = None,
    clip: float | None = None,
    base: Mapping[str, Any] | None = None,
    bad: Literal["stop", "drop"] = "stop",
    others: Literal["first", "max"] = "first",
    keep: int | None = None,
    stale_s: float = 60.0,
    me: str | None = None,
) -> Gathered:
    """Bring a client's export to a round and return the average; the same for all, bit for bit, whoever computed it.

    At most one average of a round is ever published, and it never changes. ``export``: ``{tensor: array}`` or ``{node:
    {tensor: array}}``; None for a client that is not in the round (``participants`` with this ``share`` and ``seed``), or
    whose update is there already. ``client``: None for who only wants to know the average. ``size``: what it weighs; all give one, or none. The round is averaged once all that are in
    have answered, or ``quorum`` have and ``grace`` seconds more have gone by, or ``within`` seconds are over and there is a
    quorum; who waits for somebody that averages waits ``within`` seconds more, once. ``robust``, ``clip``, ``base``, ``bad``, ``others``: as for ``fedavg``. ``keep``: blobs of the rounds before the last k are put away.
    An average that was removed is made again, the same bytes, as long as its updates are there.
    ``stale_s``: after so long without a beat another one averages in its place (at once, if it is certainly dead).

    Raises RefusedError (another client has other terms), RoundStopped (there is no average and never will be),
    RoundTimeout (who is missing; call again to go on), NotFound (the average is lost, and of what to make it again), UpdateError and UsageError before anything is published, StoreError;
    SystemExit if SIGTERM or SIGHUP comes while it averages and nobody handles it.
    """
    opened = store if isinstance(store, Store) else Store(store)
    rule = Rule(robust, clip, bad, others)
    names = client_list(clients)
    asked = participants(names, run, number_of(round), share, seed)
    if client is not None and client not in names:
        raise UsageError(f"{client!r} is none of the clients: {', '.join(map(repr, names[:20]))}")
    check_times(within=within, grace=grace, stale_s=stale_s)
    check_rules(quorum, len(asked), keep, base, rule)
    seen = Round(opened, run, round).refresh()
    if size is not None and rule.robust is not None:
        raise UsageError(f"robust={rule.robust!r} weighs nobody: leave size out")
    own = None
    if client is None and export is not None:
        raise UsageError("who is no client of the round has nothing to export: name the client, or give None for both")
    if client is not None and client in asked and export is not None:
        tensors, nested = flatten(export, client)
        own = Export(
            client, tensors, nested, check_size(size, client), {"run": run, "round": str(round), "client": client}
        )
    with room():
        pass  # who averages needs one: better told now than when all wait for it
    standing: Standing = "none"
    agreed = {"clients": asked, "quorum": quorum, "rule": rule.to_json()} if own is None and client is not None else {}
    digest = None
    if own is not None:
        digest = own.digest()  # and so its header can be made
        agree(seen, _terms(opened, asked, quorum, rule, own, base, run, round), stale_s, within, me)
        standing = answer(seen.refresh(), own, digest, stale_s, within, me)
    elif client in asked and client not in seen.updates:
        raise UsageError(f"{client!r} is in round {round} of {run!r} and has published nothing: give its export")
    elif client in asked:
        standing = "same"
    wait_for_end(
        seen,
        client if standing != "none" else None,
        digest if standing == "late" else None,
        within,
        grace,
        stale_s,
        me,
        agreed,
    )
    if keep is not None:
        forget(opened, run, round - keep, me)
    if standing != "none" and seen.of is not None and client not in seen.of:
        standing = "late"
    return gathered(seen, standing)


def latest(store: Store | str | os.PathLike[str], run: str) -> Gathered | None:
    """The average of the newest round that has one, None if there is none: a run goes on with the round after it."""
    opened = store if isinstance(store, Store) else Store(store, create=False)
    for number in reversed(rounds_in(opened, run)):
        seen = Round(opened, run, number).refresh()
        if seen.end is not None and seen.end.blob is not None and not seen.forgotten:
            return gathered(seen, "none")
    return None


def gathered(seen: Round, standing: Standing) -> Gathered:
    """The round's average from the store. Raises RoundStopped, NotFound, StoreError."""
    end, terms = seen.end, seen.terms
    assert end is not None
    if end.blob is None:
        raise RoundStopped(
            f"round {seen.number} of {seen.run!r} ended without an average: {end.reason}; go on in another run",
            run=seen.run, round=seen.number, rejected=dict(end.rejected),
        )  # fmt: skip
    tensors = average_of(seen)
    nested = terms is not None and terms.nested
    return Gathered(
        unflatten(tensors, nested), seen.run, seen.number, end.blob, dict(end.weights), dict(end.rejected), end.missing, standing
    )  # fmt: skip


def _terms(
    store: Store,
    asked: list[str],
    quorum: int | None,
    rule: Rule,
    own: Export,
    base: Mapping[str, Any] | None,
    run: str,
    round: int,
) -> Terms:
    layout, digest = layout_of(own.tensors), None
    if base is not None:
        origin, _ = flatten(base, "base")
        demand_base(origin, layout)
        digest = store.put(chunks_of(origin, {"run": run, "round": str(round), "client": ""}))
    kept = keep_layout(store, layout, own.nested)
    return Terms(tuple(asked), quorum, rule.to_json(), kept, own.size is not None, digest, own.nested)
