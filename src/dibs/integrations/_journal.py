"""A log that many processes append to and all read in one order: its entries are claimed consecutive numbers.

Whoever appends has read every entry before, and claims the first number that nobody has; so all readers see the same
entries in the same order, and a number is never given twice. An entry is whole when it is there: a writer that dies
leaves either all of it or nothing. The surprising part: an entry that somebody damaged later is left out, and told.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dibs.backend import Object
from dibs.errors import NewerFormat, RecordError, RefusedError, StoreError
from dibs.record import decode
from dibs.store import JournalKeys, Store

__all__ = ["Journal"]

log = logging.getLogger("dibs")
Texts = list[str]

_AT_ONCE = 64  # entries read at once, where that is faster
_ROLLS_AT_ONCE = 16  # rolls are a hundred times as large
_PAUSES_S = (0.05, 0.2, 0.5)  # an entry that does not read is looked at again: some mounts are late
_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.03  # after losses in a row
_LATE = 100  # so many entries later somebody else writes the roll of a full block
_LIMIT_BYTES = 16 << 20  # a larger roll would be a burden to whoever reads it


class Journal:
    """One reader's and writer's way through the journal ``name`` of a store. Not thread-safe: its user has a lock.

    Raises RefusedError in a store that claims by mkdir, where a name can be there before what it says.
    """

    def __init__(self, store: Store, name: str, me: str | None = None) -> None:
        if store.backend.traits.claim == "mkdir":
            raise RefusedError(
                f"{store.url} claims by mkdir, and a journal needs names that appear together with what they say: "
                "use a folder on another file system, or a bucket",
                field="claim",
            )
        self.store, self.keys, self.me = store, JournalKeys(name), store.me(me)
        self.next = 0  # the first entry that was not read
        self.skipped: dict[str, str] = {}  # key of an entry that was left out -> why
        self._width = self._rolls_width = 1
        self._rolls: deque[Object | RecordError | None] = deque()  # fetched ahead, the first is the next block's
        self._due: set[int] = set()  # full blocks that were not read from a roll

    # reading

    def read(self) -> list[Texts] | None:
        """The texts of the next entries that are there, some of them at a time; None where there is none (yet)."""
        if self.next % JournalKeys.PER_ROLL == 0:
            rolled = self._from_roll()
            if rolled is not None:
                self.next += JournalKeys.PER_ROLL
                return rolled
        return self._from_entries()

    def _from_entries(self) -> list[Texts] | None:
        end = min(self.next + self._width, (self.next // JournalKeys.PER_ROLL + 1) * JournalKeys.PER_ROLL)
        keys = [self.keys.entry(number) for number in range(self.next, end)]
        found: list[Texts] = []
        for key, there in zip(keys, self.store.backend.read_many(keys), strict=True):
            if there is None:
                break
            found.append(self._texts(key, there))
        self._width = min(2 * self._width, _AT_ONCE) if len(found) == len(keys) else 1
        self._passed(len(found))
        return found or None

    def _passed(self, count: int) -> None:
        """So many entries were read one by one."""
        self.next += count
        if count and self.next % JournalKeys.PER_ROLL == 0:
            self._due.add(self.next // JournalKeys.PER_ROLL - 1)  # whose task it was may be dead

    def _texts(self, key: str, there: Object | RecordError) -> Texts:
        """What an entry says; nothing if it does not read, which is told."""
        for pause_s in (*_PAUSES_S, None):
            try:
                return self._entry(key, there)
            except NewerFormat:
                raise  # to leave out what a later version says would be to tell another story than it does
            except RecordError as wrong:
                if pause_s is None:
                    self._skip(key, str(wrong))
                    return []
                self.store.machine.clock.sleep(pause_s)
                there = next(iter(self.store.backend.read_many([key]))) or there
        raise AssertionError("the last pause is None")

    def _entry(self, key: str, there: Object | RecordError) -> Texts:
        """What an entry says. Raises RecordError."""
        return _texts_of(self._body(key, there).get("logs"), key)

    def _body(self, key: str, there: Object | RecordError) -> dict[str, Any]:
        if isinstance(there, RecordError):
            raise there
        body = decode(there.data, key)
        if body.get("log") != self.keys.name:
            raise RecordError(f"{key} belongs to the journal {body.get('log')!r:.80}, not {self.keys.name!r}", key=key)
        return body

    def _skip(self, key: str, why: str) -> None:
        self.skipped[key] = why
        log.warning("%s is left out of the journal: %s", key, why)

    def _from_roll(self) -> list[Texts] | None:
        """The entries of the next block, if they lie in one piece."""
        block = self.next // JournalKeys.PER_ROLL
        if not self._rolls:
            keys = [self.keys.roll(block + at) for at in range(self._rolls_width)]
            self._rolls.extend(self.store.backend.read_many(keys))
            self._rolls_width = min(2 * self._rolls_width, _ROLLS_AT_ONCE) if None not in self._rolls else 1
        there, key = self._rolls.popleft(), self.keys.roll(block)
        if there is None:
            self._rolls.clear()  # older than the next look
            return None
        try:
            entries = self._body(key, there).get("entries")
            if not isinstance(entries, list) or len(entries) != JournalKeys.PER_ROLL:
                raise RecordError(f"{key} does not hold {JournalKeys.PER_ROLL} entries", key=key)
            return [[] if entry is None else _texts_of(entry, key) for entry in entries]
        except NewerFormat:
            raise
        except RecordError as wrong:
            log.warning("%s (a roll is only a cache: its entries are read one by one)", wrong)
            self._rolls.clear()
            return None

    # writing

    def append(self, texts: Sequence[str], seen: Callable[[list[Texts]], None]) -> None:
        """Add an entry with these texts, behind all others; durable, and before every later one, when it returns.

        ``seen`` is told the entries that are before it and were not read yet, and then it. Raises StoreError, and
        UnsureError: then it may be there.
        """
        body = {**self.store.head("optuna", self.me), "log": self.keys.name, "logs": list(texts)}

        losses = 0

        def lost(key: str, data: bytes) -> None:
            nonlocal losses
            losses += 1
            self._step_aside(losses)
            self._passed(1)
            seen([self._texts(key, Object(data, "", 0.0))])
            while (found := self.read()) is not None:  # perhaps there are many more
                seen(found)

        keys = (self.keys.entry(self.next) for _ in itertools.count())
        self.store.settler.claim_first(keys, body, lost, durable=True)
        self._passed(1)
        seen([list(texts)])
        if self.next % JournalKeys.PER_ROLL == 0:
            self._publish(self.next // JournalKeys.PER_ROLL - 1)
        for block in [block for block in self._due if self.next >= self._late(block)]:
            self._due.discard(block)
            self._publish(block)

    def _step_aside(self, losses: int) -> None:
        """Many that try for each number at once spend most of their time losing: after a loss or two, wait a moment."""
        if losses > 1:
            part = self.store.machine.entropy(1)[0] / 256
            self.store.machine.clock.sleep(part * min(_LONGEST_PAUSE_S, _PAUSE_S * 2**losses))

    def _late(self, block: int) -> int:
        """At which number a full block that still has no roll is taken to have lost its writer."""
        return (block + 1) * JournalKeys.PER_ROLL + _LATE

    def _publish(self, block: int) -> None:
        """Put the entries of a full block into one piece, unless somebody has; a failure costs nothing but time."""
        key, backend = self.keys.roll(block), self.store.backend
        try:
            if backend.version(key) is None and (entries := self._block(block)) is not None:
                body = {**self.store.head("optuna-roll", self.me), "log": self.keys.name, "entries": entries}
                self.store.settler.claim(key, body)
        except StoreError as wrong:
            log.info("no roll was written: %s", wrong)

    def _block(self, block: int) -> list[Texts | None] | None:
        """The entries of a block, None for one that does not read; None if there should be no roll of them."""
        entries: list[Texts | None] = []
        for start in range(block * JournalKeys.PER_ROLL, (block + 1) * JournalKeys.PER_ROLL, _AT_ONCE):
            keys = [self.keys.entry(number) for number in range(start, start + _AT_ONCE)]
            for key, there in zip(keys, self.store.backend.read_many(keys), strict=True):
                if there is None:
                    return None  # removed by hand: to say it was empty would make that final
                try:
                    entries.append(self._entry(key, there))
                except NewerFormat:
                    raise
                except RecordError:
                    entries.append(None)
        return entries if sum(len(text) for entry in entries for text in entry or ()) < _LIMIT_BYTES else None


def _texts_of(found: Any, key: str) -> Texts:
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise RecordError(f"{key} holds something else than texts", key=key)
    return found
