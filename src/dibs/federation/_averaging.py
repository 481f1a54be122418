"""One attempt at averaging a round: claimed, with beats, and computed tensor by tensor from files.

Whoever averages fetches the same updates and computes the same bytes, so that two at once are one too many and nothing
else. Only its claim on the round's end counts.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from dibs._clock import iso
from dibs._passing import interrupts
from dibs.errors import DibsError, NotFound, NotOwner, RecordError, StoreError, UpdateError, UsageError
from dibs.store import Held, RoundKeys, Store
from dibs.study._quiet import beat_s_of

from ._decided import decide
from ._exports import Flat, difference, layout_of
from ._fedavg import averaged_pieces, demand_base, scales_of, unfit
from ._files import open_tensors, stream
from ._layouts import layout_in
from ._look import Round
from ._peace import ending_in_peace
from ._records import End, Terms, Update
from ._room import room
from ._rules import Rule, weights_of
from ._values import Array

__all__ = ["average_round", "compute"]

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
    with ending_in_peace():
        held = store.settler.claim(RoundKeys(round.run).averaging(round.number, attempt), body)
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
                reason = "everybody who averaged it died over it (poison)"
                end = End(None, {}, {}, tuple(c for c in terms.clients if c not in of), reason, attempt)
            else:
                end = compute(store, round.run, round.number, terms, of, round.updates, attempt)
            for client, why in end.rejected.items():
                log.warning("round %d of %r: the update of %r is rejected: %s", round.number, round.run, client, why)
            _publish(store, round.run, round.number, end, stale_s, me)
    except BaseException as wrong:
        # what the updates did to it counts against them; no store, no disk, a signal, an alarm do not
        own = isinstance(wrong, Exception) and not isinstance(wrong, DibsError) and not interrupts(wrong)
        with contextlib.suppress(DibsError):  # a dead store: then it is found quiet
            _close(store, held, "failed" if own else "interrupted", f"{type(wrong).__name__}: {wrong}"[:500])
        raise
    with contextlib.suppress(NotOwner):
        _close(store, held, "failed" if poison else "done", "poison" if poison else None)


def _publish(store: Store, run: str, number: int, end: End, stale_s: float, me: str | None) -> None:
    """Claim the round's end, if it has none. Then there is one, and it is durable. Raises StoreError."""
    body = {**store.head("average", me), "run": run, "round": number, **end.to_json()}
    decide(store, partial(RoundKeys(run).average, number), body, stale_s=stale_s, within_s=math.inf)


def compute(
    store: Store,
    run: str,
    number: int,
    terms: Terms,
    of: Mapping[str, str],
    updates: Mapping[str, Update],
    attempt: int,
    keep: Callable[[Path], str] | None = None,
) -> End:
    """The end that these updates make: always the same. ``keep``: what becomes of the file, and its digest; None: the store has it.

    Updates that cannot be read or averaged are rejected. Raises StoreError for an outage.
    """
    rule = Rule(**terms.rule)
    missing = tuple(client for client in terms.clients if client not in of)
    rejected: dict[str, str] = {}
    with room() as folder:
        files: dict[str, Flat] = {}
        for at, client in enumerate(sorted(of)):
            why = _bring(store, terms, updates.get(client), of[client], folder / f"{at}", files)
            if why is not None:
                rejected[client] = why
        why = _cannot(terms, rule, files, rejected)
        if why is None:
            try:
                weights = weights_of({client: _size(updates, client) for client in files}, rule)
            except UsageError as wrong:
                why = str(wrong)
        if why is not None:
            return End(None, {}, rejected, missing, why, attempt)
        base_file = store.fetch(terms.base, folder / "base") if terms.base is not None else None
        flats, result = list(files.values()), folder / "average"
        try:
            base = open_tensors(base_file) if base_file is not None else None
            if base is not None:
                demand_base(base, layout_of(flats[0]))
            scales = scales_of(flats, rule, base)

            def pieces(name: str) -> Iterator[Array]:
                return averaged_pieces(name, flats, rule, weights, scales, base)

            with result.open("xb") as file:
                file.writelines(stream(layout_of(flats[0]), {"run": run, "round": str(number)}, pieces))
        except UpdateError as wrong:
            return End(None, {}, rejected, missing, str(wrong), attempt)
        blob = (keep or store.put)(result)
        told = dict(zip(files, weights, strict=True)) if weights is not None else dict.fromkeys(files)
        return End(blob, told, rejected, missing, None, attempt)


def _bring(
    store: Store, terms: Terms, update: Update | None, digest: str, path: Path, files: dict[str, Flat]
) -> str | None:
    """Fetch and look at one update; why it cannot be averaged, or None and it is among the files."""
    if update is None or update.digest != digest:
        return "its record is not there any more, or another one is"
    if update.fault is not None or update.blob is None:
        return update.fault or "it has no blob"
    if (update.size is not None) != terms.sized:
        return (
            "it has a size, and others have none" if update.size is not None else "it has no size, and others have one"
        )
    if update.size is not None and not 0 <= update.size <= sys.float_info.max:  # an int may be longer than any float
        return f"its size is {update.size!r:.60}"
    try:
        store.fetch(update.blob, path)
    except (NotFound, RecordError) as wrong:
        return str(wrong)
    try:
        tensors = open_tensors(path)
    except UsageError as wrong:
        return f"its blob {str(wrong).removeprefix(f'{path.name} ')}"
    layout, _ = layout_in(store, terms.layout)
    found = difference(layout_of(tensors), layout)
    why = f"tensor {found[0]!r} {found[1]}" if found is not None else unfit(tensors)
    if why is None:
        files[update.client] = tensors
    return why


def _cannot(terms: Terms, rule: Rule, files: Mapping[str, Flat], rejected: Mapping[str, str]) -> str | None:
    if rejected and rule.bad == "stop":
        client, why = next(iter(rejected.items()))
        return f"the update of {client!r} was rejected: {why}"
    least = terms.quorum or 1
    if len(files) < least:
        return f"{len(files)} of {len(terms.clients)} updates can be averaged, and {least} are wanted"
    return None


def _size(updates: Mapping[str, Update], client: str) -> float | None:
    return updates[client].size


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
