"""Rolls: caches of closed attempts, each created by a claim and never rewritten. Nothing depends on them.

Whoever finds enough closed records that no roll holds publishes the next sequence number; 32 of level 0 are
joined into one of level 1. A lost race, an overlap, a gap or a torn roll is harmless: originals are never
deleted. A copy in a roll is the record, even if somebody removed the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dibs.backend import Object
from dibs.errors import NewerFormat, RecordError
from dibs.record import Closed, TrialRecord, decode_roll, decode_trial, decode_who, records_of, verbatim
from dibs.store import Store, StudyKeys

__all__ = ["Rolls", "whole"]

T = 64  # closed records that make a roll worth its name
MOST = 256  # in one roll
JOIN = 32  # rolls of level 0 in one of level 1
AT_ONCE = (32, 4)  # rolls of each level that are read at once, where waiting is most of the work: all are in memory
KEPT_BYTES = 8 << 20  # of records that no roll holds; what is more is read again by whoever publishes it
BIG_BYTES = 128 << 10  # a record that is larger is in no roll
JOINED_BYTES = 32 << 20  # what would be larger is not joined: no reader could read it


class Rolls:
    """The rolls of one study as one reader goes through them, and the one writer's side of them."""

    def __init__(self, store: Store, keys: StudyKeys, problems: dict[str, str]) -> None:
        self.store, self.keys, self._problems = store, keys, problems
        self._next = 0  # the first level-0 sequence number nobody was seen to have
        self._joined: set[int] = set()  # level-1 numbers known to be there
        self.torn: dict[str, str] = {}  # key -> version of what did not read; by mkdir it may only be young
        self.began = False
        self.threshold = T + int.from_bytes(store.machine.entropy(2), "big") % T
        self.unrolled: dict[tuple[int, int], bytes] = {}  # closed, in no roll seen: published by somebody some day
        self._kept = 0  # bytes of them; what is beyond KEPT_BYTES is b"" here

    def new(self) -> Iterator[list[Closed]]:
        """The records of every roll not told before. A fresh reader lists ``roll/`` once, so a gap hides nothing."""
        yield from self._mended()
        if not self.began:
            yield from self._all()
            # not before: a look that failed on its way would leave a gap that hides what is behind it
            self.began = True
        while True:
            records = self._read(0, self._next)
            if records is not None:
                self._next += 1
            else:  # the last one, or a gap below what is joined: a fresh reader looks at nothing that is numbered so low
                k = self._next // JOIN
                records = self._read(1, k)
                if not records:
                    return
                self._joined.add(k)
                self._next = (k + 1) * JOIN
            yield records

    @property
    def crowded(self) -> bool:
        """So much is unrolled that others must have published some of it."""
        return len(self.unrolled) > MOST

    def note(self, at: tuple[int, int], data: bytes) -> None:
        """A closed record was read from its own file: no roll that was seen holds it."""
        if len(data) > BIG_BYTES:
            return
        self._rolled(at)
        kept = data if self._kept + len(data) <= KEPT_BYTES else b""
        self.unrolled[at] = kept
        self._kept += len(kept)

    def found(self, records: Sequence[Closed]) -> None:
        """They are in a roll."""
        for record in records if self.unrolled else ():
            self._rolled((record.n, record.attempt))

    def _rolled(self, at: tuple[int, int]) -> None:
        self._kept -= len(self.unrolled.pop(at, b""))

    def publish(self, me: str | None) -> bool:
        """Write the next roll if enough is unrolled; True if one was written. Raises StoreError."""
        if len(self.unrolled) < self.threshold:
            return False
        chosen = sorted(self.unrolled)[:MOST]
        records = {f"{n}-{attempt}": verbatim(data) for (n, attempt), data in self._data(chosen)}
        seq = self._next
        body = {**self.store.head("roll", me), "study": self.keys.name, "records": records}
        if self.store.settler.claim(self.keys.roll(0, seq), body) is None:
            return False  # somebody was faster; the next refresh reads theirs
        self._next = seq + 1
        for at in chosen:
            self._rolled(at)
        self._join(seq // JOIN - 1 if (seq + 1) % JOIN else seq // JOIN, me)
        return True

    def _data(self, ats: Sequence[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], bytes]]:
        """Records that are in no roll, those that were not kept read again; without those that do not read any more."""
        again = [at for at in ats if not self.unrolled[at]]
        there = dict(zip(again, self.store.backend.read_many([self.keys.attempt(*at) for at in again]), strict=True))
        for at in ats:
            found = there.get(at)
            data = self.unrolled[at] or (found.data if isinstance(found, Object) else b"")
            if self.unrolled[at] or is_closed(data, self.keys.attempt(*at)):
                yield at, data

    def _join(self, k: int, me: str | None) -> None:
        """Concatenate 32 rolls into one of level 1, if nobody has; what does not read is left out."""
        if k < 0 or k in self._joined:
            return
        self._joined.add(k)
        key = self.keys.roll(1, k)
        if self.store.backend.version(key) is not None:
            return
        records: dict[str, Any] = {}
        size = 0
        for seq in range(k * JOIN, (k + 1) * JOIN):
            try:
                there = self.store.backend.read(self.keys.roll(0, seq))
                if there is None:
                    continue
                size += len(there.data)
                if size > JOINED_BYTES:
                    return
                decode_roll(there.data, key, self.keys.name)
                records.update(records_of(there.data, key))
            except RecordError:
                continue
        body = {**self.store.head("roll", me), "study": self.keys.name, "records": records}
        self.store.settler.claim(key, body)

    def _mended(self) -> Iterator[list[Closed]]:
        """Torn ones that read now; what was removed is no problem any more."""
        for key, version in list(self.torn.items()):
            now = self.store.backend.version(key)
            if now == version:
                continue
            del self.torn[key]
            self._problems.pop(key, None)
            if now is not None:
                yield self._decoded(key, *self.store.backend.read_many([key])) or []

    def _all(self) -> Iterator[list[Closed]]:
        joined = self._numbers(1)
        for k, records in zip(joined, self._read_many(1, joined), strict=True):
            if records:
                self._joined.add(k)
                yield records
        numbers = self._numbers(0)
        for records in self._read_many(0, [seq for seq in numbers if seq // JOIN not in self._joined]):
            yield records or []
        # above what is joined, too, even if somebody removed it: whoever comes next reads no number that a join covers
        self._next = max(max(numbers, default=-1) + 1, (max(self._joined, default=-1) + 1) * JOIN)

    def _numbers(self, level: int) -> list[int]:
        stems = (name.removesuffix(".json") for name in self.store.backend.names(self.keys.rolls(level)))
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit() and len(stem) >= 8)

    def _read(self, level: int, seq: int) -> list[Closed] | None:
        """The roll's records, [] if it does not read (it is skipped, and told), None if there is none."""
        return next(self._read_many(level, [seq]))

    def _read_many(self, level: int, seqs: Sequence[int]) -> Iterator[list[Closed] | None]:
        """The same of several, at once where that is faster, a few at a time so that memory is bounded."""
        count = 1 if self.store.backend.traits.stamps else AT_ONCE[level]
        for start in range(0, len(seqs), count):
            keys = [self.keys.roll(level, seq) for seq in seqs[start : start + count]]
            for key, there in zip(keys, self.store.backend.read_many(keys), strict=True):
                yield self._decoded(key, there)

    def _decoded(self, key: str, there: Object | RecordError | None) -> list[Closed] | None:
        if there is None:
            return None
        try:
            if isinstance(there, RecordError):
                raise there
            records = decode_roll(there.data, key, self.keys.name)
        except RecordError as wrong:  # torn, of another version, or no file at all
            self._problems[key] = f"{wrong} (a roll is only a cache: nothing is lost)"
            if self.store.backend.traits.stamps and not isinstance(wrong, NewerFormat):  # what was put is never mended
                version = there.version if isinstance(there, Object) else self.store.backend.version(key)
                self.torn[key] = version or "?"
            return []
        return records


def whole(closed: Closed, study: str) -> TrialRecord:
    """A roll's record as the record it is a copy of (without nonce and files)."""
    return TrialRecord(
        v=1, kind="trial", study=study, n=closed.n, attempt=closed.attempt, state=closed.state, nonce="",
        point=closed.point, goal=closed.goal, of=closed.of, seed=closed.seed, score=closed.score, step=closed.step,
        reason=closed.reason, again=closed.again, wish=closed.wish, contract=closed.contract, blob=closed.blob,
        took_s=closed.took_s, started_at=closed.started_at, who=decode_who(bytes(closed.who)),
        scores=closed.scores, constraints=closed.constraints,
    )  # fmt: skip


def is_closed(data: bytes, key: str) -> bool:
    """Whether the bytes are a closed attempt's record."""
    try:
        return decode_trial(data, key).closed
    except RecordError:
        return False
