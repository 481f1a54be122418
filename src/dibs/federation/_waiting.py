"""Waiting for a round's end, and bringing it about when it is one's turn: the loop around ``_steps``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal

from dibs.errors import RecordError, RoundTimeout, StoreError
from dibs.study._fold import Seen
from dibs.study._quiet import Watch, counts, is_quiet

from ._answer import demand_same, say_late
from ._averaging import average_round
from ._look import Round
from ._records import Try
from ._steps import Sight, enough, is_poison, next_step

__all__ = ["wait_for_end"]

log = logging.getLogger("dibs")
_FIRST_PAUSE_S = 0.02
_LONGEST_S = {True: 1.0, False: 5.0}  # between two looks: on a folder, and where a look is a request that costs


def wait_for_end(
    round: Round,
    client: str | None,
    digest: str | None,
    within: float,
    grace: float,
    stale_s: float,
    me: str | None,
    terms: Mapping[str, Any],
) -> None:
    """Return once the round has its end. ``client``: whose update must not be late unsaid; ``digest``: of its bytes, where none were sent;
    ``terms``: what one takes to be agreed, as far as one knows.

    Raises RefusedError, RoundTimeout, StoreError.
    """
    store, clock = round.store, round.store.machine.clock
    began = clock.monotonic()
    enough_since: float | None = None
    averaging_since: float | None = None
    watch, pause_s, told_late = Watch(), _FIRST_PAUSE_S, False
    trouble_since: float | None = None
    while True:
        now = clock.monotonic()
        try:
            round.refresh()
            trouble_since = None
        except RecordError:
            raise
        except StoreError as wrong:  # who waits for minutes does not end for one answer that was lost
            trouble_since = now if trouble_since is None else trouble_since
            if now - trouble_since > min(store.settler.patience_s, within):
                raise
            log.debug("round %d of %r could not be looked at: %s", round.number, round.run, wrong)
            clock.sleep(min(_LONGEST_S[True], within))
            continue
        if round.terms is not None and terms:
            demand_same(round, terms)
            terms = {}
        top = round.top
        if client is not None and not told_late and round.of is not None and client not in round.of:
            mine = round.updates.get(client)
            say_late(round, client, digest or (mine.digest if mine else ""), me)
            told_late = True
        if top is not None and averaging_since is None:
            averaging_since = now
        # anew when somebody begins, once: a quorum at the last moment has to have time, and a call has to have an end
        waited_s = now - (began if averaging_since is None else averaging_since)
        sight = _sight(round, stale_s, watch, over=waited_s >= within)
        if enough_since is None and enough(sight):
            enough_since = now
        step = next_step(
            sight, waited_s, None if enough_since is None else now - enough_since, within_s=within, grace_s=grace
        )  # fmt: skip
        if step == "end":
            return
        if step == "over":
            raise _timeout(round, within)
        if step == "average":
            attempt = top.attempt + 1 if top is not None else 0
            # one that was never written has read no update
            poison = is_poison([each.state for each in round.tries.values() if each.of is not None])
            if average_round(round, attempt, stale_s, me, poison=poison):
                continue
            pause_s = _FIRST_PAUSE_S
        clock.sleep(pause_s * (0.5 + store.machine.entropy(1)[0] / 256))
        pause_s = min(_LONGEST_S[store.backend.traits.touch], 1.5 * pause_s)


def _sight(round: Round, stale_s: float, watch: Watch, *, over: bool) -> Sight:
    terms = round.terms
    top: Literal["alive", "free"] | None = None
    watch_s = 0.0
    if round.end is None and round.top is not None:
        free, watch_s = _freedom(round, round.top, stale_s, watch, over=over)
        top = "free" if free else "alive"
    good = [client for client, update in round.updates.items() if update.fault is None]
    return Sight(
        terms.clients if terms is not None else (" nobody yet",), round.updates, good,
        terms.quorum if terms is not None else None, round.end is not None, top,
        watch_s,
    )  # fmt: skip


def _seen(round: Round) -> list[Seen]:
    return [
        Seen(round.number, k, each.as_trial(round.run, round.number), each.modified, each.version)
        for k, each in sorted(round.tries.items())
    ]


def _freedom(round: Round, top: Try, stale_s: float, watch: Watch, *, over: bool) -> tuple[bool, float]:
    """Whether somebody else may average in its place: it is closed, its process is certainly dead, or it is quiet.

    Some file systems stamp with the client's clock, so a quiet one has also been watched, unchanged for two beats. How long
    that takes, if it seems quiet and the time is ``over`` before it was done; else 0.
    """
    store = round.store
    if top.closed or store.machine.gone(top.who):
        return True, 0.0
    seen = _seen(round)
    watched = watch.still_s(seen[-1], store.machine.clock.monotonic()) >= 2 * top.beat_s
    if not watched and not over:
        return False, 0.0  # and nobody has to ask the store for the time
    quiet = is_quiet(seen[-1], store.now(), counts(seen, ())[0], stale_s)
    return quiet and watched, 2 * top.beat_s if quiet and not watched else 0.0


def _timeout(round: Round, within: float) -> RoundTimeout:
    where = f"round {round.number} of {round.run!r} was not over in {within:g} s"
    missing = tuple(round.missing)
    if round.terms is None:
        said = "no client has begun it"
    elif round.top is not None:
        missing = ()
        said = f"nobody is missing, and {round.top.who.me or 'somebody'!r} has been averaging"
        said += f" (attempt {round.top.attempt})" if round.top.attempt else ""
    else:
        faulty = [client for client, update in round.updates.items() if update.fault is not None]
        said = f"missing: {', '.join(map(repr, missing))}"
        said += f"; not to be averaged: {', '.join(map(repr, faulty))}" if faulty else ""
        said += f"; these do not read: {', '.join(round.unreadable)}" if round.unreadable else ""
    return RoundTimeout(
        f"{where}: {said}; the same call goes on with it", run=round.run, round=round.number, missing=missing
    )
