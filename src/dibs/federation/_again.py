"""An average that somebody removed, made again: its updates are still there, and the same updates make the same bytes."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dibs.errors import DibsError, NotFound, RecordError, UsageError

from ._computing import compute
from ._files import Mapped, open_tensors
from ._look import Round
from ._room import room

__all__ = ["average_of"]

log = logging.getLogger("dibs")


def average_of(seen: Round) -> Mapped:
    """The tensors of a round that has an average, from its blob; made again if that is gone or damaged, and brought back.

    Raises NotFound (it cannot be made again, and which bytes are missing; or the round was put away), StoreError.
    """
    assert seen.end is not None
    assert seen.end.blob is not None
    try:
        with room() as folder:
            return open_tensors(seen.store.fetch(seen.end.blob, folder / "average"), write=True)
    except (NotFound, RecordError, UsageError) as wrong:
        if seen.refresh().forgotten:
            raise NotFound(
                f"round {seen.number} of {seen.run!r} was put away: go on with the newest (`latest`)"
            ) from None
        return _made_again(seen, str(wrong))


def _made_again(seen: Round, why: str) -> Mapped:
    store, end, terms, of = seen.store, seen.end, seen.terms, seen.of
    assert end is not None
    made: list[Mapped] = []

    def keep(path: Path) -> str:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest == end.blob:
            made.append(open_tensors(path, write=True))
            with suppress(DibsError):  # a store that is full, or read-only: this client has it all the same
                store.put(path)
        return digest

    where = f"round {seen.number} of {seen.run!r}"
    lost = list(_lost(seen))
    if not lost and terms is not None and of is not None:
        try:
            again = compute(store, seen.run, seen.number, terms, of, seen.updates, end.attempt, keep=keep)
        except (NotFound, RecordError, UsageError) as wrong:
            lost = [str(wrong)]
        else:
            if made:
                log.warning("%s: %s; its average was made again from its updates, the same bytes", where, why)
                return made[0]
            lost = [f"{client!r}: {said}" for client, said in again.rejected.items() if client not in end.rejected]
            lost = lost or [f"its updates make {again.blob or again.reason}, and {end.blob} was published"]
    raise NotFound(
        f"the average of {where} is lost ({why}) and cannot be made again: {'; '.join(lost)}. A client that still has its "
        "update brings it back by the same call"
    )


def _lost(seen: Round) -> Iterator[str]:
    """What an average would have to be made of, and is not there any more."""
    store, terms, of = seen.store, seen.terms, seen.of
    if terms is None or of is None:
        yield "its terms, or whose updates went in, are not there"
        return
    for client in seen.end.weights if seen.end is not None else ():
        update = seen.updates.get(client)
        if update is None or update.digest != of.get(client):
            yield f"the record of the update of {client!r} is not there"
        elif update.blob is None or not store.has(update.blob):
            yield f"the update of {client!r} (blob {update.blob}) is not there"
    for what, blob in (("the layout of its tensors", terms.layout), ("the base of its clipping", terms.base)):
        if blob is not None and not store.has(blob):
            yield f"{what} (blob {blob}) is not there"
