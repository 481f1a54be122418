"""What a reader knows of a study: attempts, notes, and what they fold to. It reads, and writes nothing.

The cost of a refresh grows with what is new: settled trials are kept as columns and never read again, open
ones are read when something moved. A view may be behind (a listing is not a snapshot), never wrong: whoever
acts on it claims, and the name decides.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from threading import RLock
from typing import Any

from dibs.errors import NewerFormat, RecordError, StoreError
from dibs.record import Closed, TrialRecord, decode_trial
from dibs.store import BLOCK, Store

from ._attempt import Attempt
from ._fold import Folded, Seen, fold
from ._given import Given
from ._names import Names
from ._notes import Notes
from ._rolls import Rolls, whole
from ._table import Table, is_plain

__all__ = ["View", "view_of"]

log = logging.getLogger("dibs")
MANY = 64  # so many new names at once are likely to be in a roll
NEWEST, OTHERS = 64, 8  # open records read per refresh where the backend gives no hint


class View:
    """The attempts of one study, refreshed on demand. Thread-safe."""

    def __init__(self, store: Store, study: str) -> None:
        self.store, self.study = store, study
        self.keys = store.keys(study)
        self.lock = RLock()
        self.problems: dict[str, str] = {}  # key -> why it does not read: records, notes and attached results
        self.notes = Notes(store, self.keys, self.problems)
        self.carried: dict[str, int] = {}  # wish -> the trial that carries it
        self.of = 0  # the study's N: the largest any record asked for
        self.newest = 0.0  # the newest stamp seen: a lower bound of the store's now
        self.given = Given(store, self.keys, self.problems)
        self.names = Names(store, self.keys)
        self.rolls = Rolls(store, self.keys, self.problems)
        self.table = Table()
        self._special: dict[int, dict[int, Seen]] = {}  # every trial that is not a plain row of the table
        self._open: dict[tuple[int, int], str] = {}  # attempts that may still change -> version
        self._mine: dict[tuple[int, int], Attempt] = {}  # open ones that this process writes
        self._unsettled: set[int] = set()
        self._folds: dict[int, Folded] = {}
        self._turn = 0

    def refresh(self, *, beats: bool = False) -> None:
        """Look again: new names, moved records, notes. Raises StoreError when the store does not answer.

        Beats alone are not followed (a worker looks at what seems quiet once more) unless ``beats`` says so.
        """
        with self.lock:
            try:
                self._refresh(self.store.machine.clock.monotonic(), beats)
            except BaseException:  # what was not read has to be looked at again, whatever the hints say
                for part in (self.names, self.notes, self.given):
                    part.look_again()
                raise

    def _refresh(self, now: float, beats: bool) -> None:
        if not self.rolls.began:
            self._read_rolls()
        new = []
        for at in self.names.new(now):
            if self._knows(*at):
                self.names.told(*at)
            else:
                new.append(at)
        if len(new) > MANY:
            self._read_rolls()
        for at in new:
            if self._knows(*at) or self._read(*at):
                self.names.told(*at)
        self._reread(beats)
        self.notes.refresh(now, self.names.above)
        self.given.refresh(now, self.names.above)
        self._catch_up()

    def look(self, n: int, attempt: int) -> Seen | None:
        """Read one attempt now, whatever is known of it; None if it does not exist."""
        with self.lock:
            if n not in self.table or attempt:
                self._read(n, attempt)
            return self.seens(n).get(attempt)

    def own(self, attempt: Attempt) -> None:
        """This process has just claimed the attempt: while it writes it, it need not read it back."""
        with self.lock:
            attempt.watcher = self
            self._mine[attempt.n, attempt.attempt] = attempt
            self._put(Seen(attempt.n, attempt.attempt, attempt.record(), self.newest))
            if attempt.attempt == 0:
                self.names.moved_by_us(attempt.n, self.store.machine.clock.monotonic())

    def before_close(self, attempt: Attempt) -> bool:
        """Whether nobody else has moved the attempt's block since it was looked at."""
        return attempt.attempt == 0 and self.names.alone(attempt.n)

    def after_close(self, attempt: Attempt, alone: bool) -> None:
        """Take over what this process has just written, unless a refresh is on its way (then that will)."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            self._take_mine(attempt)
            if alone:
                self.names.moved_by_us(attempt.n, self.store.machine.clock.monotonic())
        finally:
            self.lock.release()

    def publish(self, me: str | None) -> None:
        """Write a roll if enough closed records are in none. Never raises StoreError: it is only a cache."""
        if len(self.rolls.unrolled) < self.rolls.threshold:
            return
        with self.lock:
            try:
                self._read_rolls()
                self.rolls.publish(me)
            except StoreError as wrong:
                log.debug("no roll of study %s: %s", self.study, wrong)

    # what it amounts to

    @property
    def attempts(self) -> Mapping[int, Mapping[int, Seen]]:
        """Every known trial's attempts, made up when asked for."""
        return _Attempts(self)

    def __len__(self) -> int:
        return len(self.table) + len(self._special)

    def seens(self, n: int) -> dict[int, Seen]:
        """The known attempts of one trial; empty if nobody is known to have claimed it."""
        with self.lock:
            found = self._special.get(n)
            if found is not None:
                return found
            if n in self.table:
                return {0: Seen(n, 0, self.table.record(n, self.study), 0.0)}
            return {}

    def whole(self, n: int) -> list[Seen]:
        """The trial's attempts with everything their files hold (a kept copy has no blob and no files), by attempt."""
        with self.lock:
            return [self._whole_of(seen) for _, seen in sorted(self.seens(n).items())]

    def _whole_of(self, seen: Seen) -> Seen:
        if not seen.closed:
            return seen
        key = self.keys.attempt(seen.n, seen.attempt)
        try:
            there = self.store.backend.read(key)
            record = decode_trial(there.data, key) if there is not None else None
        except RecordError:
            return seen  # damaged since: the copy is the record
        if there is None or record is None or (record.n, record.attempt) != (seen.n, seen.attempt) or not record.closed:
            return seen
        return seen._replace(record=record, modified=there.modified, version=there.version)

    def trial(self, n: int) -> Folded | None:
        """The trial's fold, or None if nobody has claimed it."""
        with self.lock:
            self._catch_up()
            found = self._folds.get(n)
            if found is None:
                attempts = self.seens(n)
                if not attempts:
                    return None
                found = fold(list(attempts.values()), self.released(n))
                if n in self._special:
                    self._folds[n] = found
            return found

    def trials(self) -> Iterator[Folded]:
        """Every known trial by index."""
        with self.lock:
            return iter([folded for n in self.indexes() if (folded := self.trial(n)) is not None])

    def specials(self) -> list[Folded]:
        """The trials that are no plain rows of the table, by index."""
        with self.lock:
            self._catch_up()
            return [folded for n in sorted(self._special) if (folded := self.trial(n)) is not None]

    def unsettled(self) -> list[Folded]:
        """The trials that are not settled, by index."""
        with self.lock:
            self._catch_up()
            return [folded for n in sorted(self._unsettled) if (folded := self.trial(n)) is not None]

    def released(self, n: int) -> set[int]:
        """The attempts of the trial that have a release note."""
        return self.notes.released.get(n, set())

    def running(self) -> list[Seen]:
        """Running attempts of trials that are not settled, by index: the highest attempt of each."""
        return [folded.top for folded in self.unsettled() if not folded.top.closed]

    def low(self) -> int:
        """The lowest index nobody is known to have claimed."""
        return self.names.low

    def wishes(self) -> dict[str, dict[str, Any]]:
        """The wishes that no known record carries yet: digest -> point."""
        return {digest: point for digest, point in self.notes.wishes.items() if digest not in self.carried}

    def indexes(self) -> list[int]:
        """Every known trial's index, sorted."""
        return sorted([*self.table, *self._special])

    # reading

    def _knows(self, n: int, attempt: int) -> bool:
        known = self._special.get(n)
        return attempt in known if known is not None else attempt == 0 and n in self.table

    def _reread(self, beats: bool) -> None:
        """Read the open attempts that may have changed."""
        moved = self.names.moved
        if beats:
            for at in sorted(self._open):
                self._read(*at)
            return
        if not self.store.backend.traits.stamps:
            for at in self._by_turns():
                self._read(*at)
            return
        for n, attempt in sorted(self._open):
            version = self._open.get((n, attempt), "")
            if self._is_mine((n, attempt)) or (attempt == 0 and n // BLOCK not in moved):
                continue
            if self.store.backend.version(self.keys.attempt(n, attempt)) != version:
                self._read(n, attempt)

    def _is_mine(self, at: tuple[int, int]) -> bool:
        """Whether this process still writes it; what it has written when it closed is taken over unread."""
        mine = self._mine.get(at)
        if mine is None:
            return False
        if mine.lost or not mine.ours:
            del self._mine[at]
            return False
        if mine.closed:
            self._take_mine(mine)
        return True

    def _take_mine(self, mine: Attempt) -> None:
        at = (mine.n, mine.attempt)
        if self._mine.pop(at, None) is mine:
            self.rolls.note(at, mine.written)
            self._put(Seen(*at, mine.record(), self.newest))

    def _read_rolls(self) -> None:
        for records in self.rolls.new():
            self._take_roll(records)

    def _by_turns(self) -> list[tuple[int, int]]:
        """Without hints: the newest 64 open attempts, and 8 of the others in rotation."""
        others = sorted(at for at in list(self._open) if not self._is_mine(at))
        newest, old = others[-NEWEST:], others[:-NEWEST]
        if old:
            start = self._turn % len(old)
            self._turn += OTHERS
            newest += (old[start:] + old[:start])[:OTHERS]
        return newest

    def _read(self, n: int, attempt: int) -> bool:
        """Read the attempt now; False if there is nothing under its name (any more, or as far as is seen here)."""
        key = self.keys.attempt(n, attempt)
        try:
            there = self.store.backend.read(key)
        except RecordError as wrong:  # a link, a FIFO, something huge under a record's name
            self.problems[key] = str(wrong)
            self._put(Seen(n, attempt, None, 0.0, self.store.backend.version(key) or "?"))
            return True
        if there is None:
            self._forget(n, attempt)
            return False
        self._take(n, attempt, there.data, there.modified, there.version)
        return True

    def _take(self, n: int, attempt: int, data: bytes, modified: float, version: str) -> None:
        key = self.keys.attempt(n, attempt)
        record: TrialRecord | None = None
        newer = False
        try:
            record = decode_trial(data, key)
            if (record.n, record.attempt, record.study) != (n, attempt, self.study):
                raise RecordError(f"{key} holds another trial ({record.study} {record.n}-{record.attempt})", key=key)
            self.problems.pop(key, None)
        except RecordError as wrong:
            record = None
            newer = isinstance(wrong, NewerFormat)
            self.problems[key] = str(wrong)
        self.newest = max(self.newest, modified)
        if record is not None and record.closed and not self._knows_closed(n, attempt):
            self.rolls.note((n, attempt), data)
        self._put(Seen(n, attempt, record, modified, version, newer))

    def _knows_closed(self, n: int, attempt: int) -> bool:
        known = self._special.get(n, {}).get(attempt)
        return known.closed if known is not None else attempt == 0 and n in self.table

    def _put(self, seen: Seen) -> None:
        n, attempt, record = seen.n, seen.attempt, seen.record
        if record is not None:
            self.of = max(self.of, record.of)
            if record.wish:
                self.carried[record.wish] = n
        if attempt == 0:
            self.names.add(n)
        known = self._special.get(n)
        if seen.closed:
            self._open.pop((n, attempt), None)
            if record is not None and is_plain(record) and self._alone(n) and self.table.fits(n):
                if known is not None:
                    del self._special[n]
                if n not in self.table:
                    self.table.add(record)
                self._changed(n)
                self.names.settle(n // BLOCK)
                return
        else:
            self._open[n, attempt] = seen.version
            self.names.watch(n // BLOCK)
        if known is None:
            known = self._special[n] = self._promoted(n)
        if known.get(attempt) != seen:
            known[attempt] = seen
            self._changed(n)

    def _alone(self, n: int) -> bool:
        """Nothing but attempt 0 is known of the trial, and nothing releases it."""
        return not self._special.get(n, {}).keys() - {0} and not self.released(n)

    def _promoted(self, n: int) -> dict[int, Seen]:
        """The attempts of a trial that stops being a plain row."""
        if n not in self.table:
            return {}
        seens = {0: Seen(n, 0, self.table.record(n, self.study), 0.0)}
        self.table.drop(n)
        return seens

    def _changed(self, n: int) -> None:
        self._folds.pop(n, None)
        attempts = self._special.get(n)
        folded = self.trial(n) if attempts else None
        (self._unsettled.add if folded is not None and not folded.settled else self._unsettled.discard)(n)

    def _catch_up(self) -> None:
        """Release notes count from when they were seen, whoever refreshed them."""
        for n in self.notes.take_changed():
            self._released(n)

    def _released(self, n: int) -> None:
        if n in self.table:
            self._special[n] = self._promoted(n)
        if n in self._special:
            self._changed(n)

    def _take_roll(self, records: list[Closed]) -> None:
        """Records of a roll: the bulk goes straight to the columns, what is not alone is folded."""
        unrolled, special, released = self.rolls.unrolled, self._special, self.notes.released
        if unrolled:
            for record in records:
                unrolled.pop((record.n, record.attempt), None)
        plain: dict[int, Closed] = {}  # overlaps and repetitions count once
        again = {record.n for record in records if record.attempt}  # not alone, whichever comes first
        for record in records:
            n = record.n
            if record.attempt == 0 and n not in again and n not in special and n not in released and is_plain(record):
                plain[n] = record
            elif not self._knows_closed(n, record.attempt):
                self._put(Seen(n, record.attempt, whole(record, self.study), 0.0))
        top = max(plain, default=0)
        if plain and not self.table.fits(top):
            for n in [n for n in plain if not self.table.fits(n)]:
                self._put(Seen(n, 0, whole(plain.pop(n), self.study), 0.0))
        fresh = self.table.add_many(list(plain.values()))
        self.names.add_many(fresh)
        self.of = max([self.of, *[record.of for record in fresh]])
        for record in fresh:
            if record.wish:
                self.carried[record.wish] = record.n

    def _forget(self, n: int, attempt: int) -> None:
        """A record that is gone: removed by hand, or lost in a power cut. Its index is free again."""
        self._open.pop((n, attempt), None)
        self._mine.pop((n, attempt), None)
        known = self._special.get(n)
        gone = known.pop(attempt, None) if known else None
        if gone is None:
            return
        self.names.untold(n, attempt)
        self.problems.pop(self.keys.attempt(n, attempt), None)
        if not known:
            del self._special[n]
            self.names.discard(n)
            if gone.record is not None and gone.record.wish:
                self.carried.pop(gone.record.wish, None)
        self._changed(n)


class _Attempts(Mapping[int, Mapping[int, Seen]]):
    """n -> attempt -> what was seen of it."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __getitem__(self, n: int) -> Mapping[int, Seen]:
        found = self._view.seens(n)
        if not found:
            raise KeyError(n)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self._view.indexes())

    def __len__(self) -> int:
        return len(self._view)


def view_of(store: Store, study: str) -> View:
    """The view of a study that all readers of this store object share, so that nothing is read twice."""
    view: View | None = store.kept.get(("view", study))
    if view is None:
        view = store.kept.setdefault(("view", study), View(store, study))
    return view
