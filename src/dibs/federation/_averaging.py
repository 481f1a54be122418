"""One attempt at averaging a round: claimed, with beats, and closed whatever happens.

Whoever averages computes the same bytes, so that two at once are one too many and nothing else. Only its claim on the
round's end counts.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Iterator, Mapping
from functools import partial

from dibs._clock import iso
from dibs._passing import interrupts
from dibs.errors import DibsError, NotOwner, StoreError
from dibs.store import Held, RoundKeys, Store
from dibs.study._quiet import beat_s_of

from ._computing import compute
from ._decided import decide
from ._look import Round
from ._peace import ending_in_peace
from ._records import POISON, End

__all__ = ["average_round"]

log = logging.getLogger("dibs")


def average_round(round: Round, attempt: int, stale_s: float, me: str | None, *, poison: bool) -> bool:
    """Claim that attempt and bring the round to its end; False if somebody else has the attempt.

    ``poison``: too many have died over it, so it ends without an average.
    Raises StoreError (the attempt is then free for others at once); SystemExit if told to end by a signal that nobody handles.
    """
    store = round.store
    of = round.of
    if of is None:
        of = {client: update.digest for client, update in sorted(round.updates.items())}
    beat_s = beat_s_of(stale_s, folder=store.backend.traits.touch)
    body = {
        **store.head("averaging", me), "run": round.run, "round": round.number, "attempt": attempt, "of": of,
        "state": "running", "reason": None, "beat_s": beat_s, "started_at": iso(store.machine.clock.wall()),
    }  # fmt: skip
    begun: list[Held] = []
    with ending_in_peace():
        try:
            held = store.settler.claim(
                RoundKeys(round.run).averaging(round.number, attempt), body, begun=begun.append
            )  # fmt: skip
        except BaseException as wrong:  # as Ctrl-C, when the claim may be there and nobody averages
            with contextlib.suppress(DibsError):
                if begun and store.settler.settled(begun[0]):
                    _close(store, begun[0], "interrupted", _said(wrong))
            raise
        if held is None:
            round.look_at_try(attempt)  # an old listing may have left it out; and a folder of that name is never in one
            return False
        _average(round, of, held, stale_s, me, poison=poison)
    return True


def _average(round: Round, of: Mapping[str, str], held: Held, stale_s: float, me: str | None, *, poison: bool) -> None:
    """Bring the round to its end, and close the attempt whatever happens."""
    store, terms, attempt = round.store, round.terms, held.body["attempt"]
    assert terms is not None
    try:
        for client in of:
            round.look_at(client)  # an old listing may have left it out
        with _beating(store, held, held.body["beat_s"]):
            if poison:
                end = End(None, {}, {}, tuple(c for c in terms.clients if c not in of), POISON, attempt)
            else:
                end = compute(store, round.run, round.number, terms, of, round.updates, attempt)
            for client, why in end.rejected.items():
                log.warning("round %d of %r: the update of %r is rejected: %s", round.number, round.run, client, why)
            _publish(store, round.run, round.number, end, stale_s, me)
    except BaseException as wrong:
        # what the updates did to it counts against them; no store, no disk, a signal, an alarm do not
        own = isinstance(wrong, Exception) and not isinstance(wrong, DibsError) and not interrupts(wrong)
        with contextlib.suppress(DibsError):  # a dead store: then it is found quiet
            _close(store, held, "failed" if own else "interrupted", _said(wrong))
        raise
    with contextlib.suppress(NotOwner):
        _close(store, held, "failed" if poison else "done", "poison" if poison else None)


def _publish(store: Store, run: str, number: int, end: End, stale_s: float, me: str | None) -> None:
    """Claim the round's end, if it has none. Then there is one, and it is durable. Raises StoreError."""
    body = {**store.head("average", me), "run": run, "round": number, **end.to_json()}
    decide(store, partial(RoundKeys(run).average, number), body, stale_s=stale_s, within_s=math.inf)


def _said(wrong: BaseException) -> str:
    return f"{type(wrong).__name__}: {wrong}"[:500]


def _close(store: Store, held: Held, state: str, reason: str | None) -> None:
    store.settler.rewrite(held, {**held.body, "state": state, "reason": reason}, durable=True)


@contextlib.contextmanager
def _beating(store: Store, held: Held, beat_s: float) -> Iterator[None]:
    """A thread that shows, while this lasts, that the process lives."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(beat_s):
            try:
                if store.backend.traits.touch:
                    store.backend.touch(held.key)
                else:
                    store.settler.rewrite(held, held.body)
            except StoreError as wrong:  # the next one may do; without any it is found quiet
                log.debug("a beat of %s went wrong: %s", held.key, wrong)
            except NotOwner:
                return

    thread = threading.Thread(target=beat, name="dibs-averaging", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
