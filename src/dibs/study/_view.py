"""What a reader knows of a study: attempts, notes, and what they fold to. It reads, and writes nothing.

The cost of a refresh grows with what is new: settled trials are kept as columns and never read again, open
ones are read when something moved. A view may be behind (a listing is not a snapshot), never wrong: whoever
acts on it claims, and the name decides.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from weakref import WeakSet

from dibs.backend import Object
from dibs.errors import NewerFormat, RecordError, StoreError
from dibs.record import TrialRecord, decode_trial
from dibs.store import BLOCK, Store, StudyKeys

from ._attempt import Attempt
from ._fold import Seen
from ._given import Given
from ._known import Known
from ._names import Names
from ._notes import Notes
from ._rolls import Rolls

__all__ = ["NEWEST", "View", "view_of"]

log = logging.getLogger("dibs")
MANY = 64  # so many new names at once are likely to be in a roll
NEWEST, OTHERS = 64, 8  # open records read per refresh where the backend gives no hint
AT_ONCE = 1024  # records read at once
SWEEP = 256  # unread records read at once, now and then

_views: WeakSet[View] = WeakSet()


class View(Known):
    """The attempts of one study, refreshed on demand. Thread-safe."""

    def __init__(self, store: Store, study: str, keys: StudyKeys | None = None) -> None:
        self.store = store
        self.keys = keys or store.keys(study)
        self._begin()
        _views.add(self)

    def _begin(self) -> None:
        """Know nothing yet."""
        self.problems: dict[str, str] = {}  # key -> why it does not read: records, notes and attached results
        super().__init__(self.keys.name, Names(self.store, self.keys), Notes(self.store, self.keys, self.problems))
        self.newest = 0.0  # the newest stamp seen: a lower bound of the store's now
        self.given = Given(self.store, self.keys, self.problems)
        self.rolls = Rolls(self.store, self.keys, self.problems)
        self._mine: dict[tuple[int, int], Attempt] = {}  # open ones that this process writes
        self._news: list[Attempt] = []  # those of them that nobody has asked about since they were claimed
        self._rows: list[Attempt] = []  # those that were done before anybody did: rows of the table, once somebody asks
        self._turn = 0
        self.partial = False  # of some trials only the name was seen
        self.poisoned = 0  # trials that were closed as poison from here

    def forked(self) -> None:
        """In a process just forked: a thread of the parent's that was at work in here is not there to finish it."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self._begin()  # whatever is half done, and the lock, are left behind

    def refresh(self, *, beats: bool = False, most: int | None = None, last: bool = False) -> None:
        """Look again: new names, moved records, notes. Raises StoreError when the store does not answer.

        Beats alone are not followed (a worker looks at what seems quiet once more) unless ``beats`` says so.
        ``most``: where every record is a request, read the newest so many and know the others as taken, no more
        (``partial``), until somebody refreshes without it. ``last``: what is seen now is the end of it, so that also
        what was not there is looked for (second attempts, notes), however lately it was.
        """
        with self.lock:
            if last:
                self.names.look_for_parts()
            try:
                self._refresh(self.store.machine.clock.monotonic(), beats, most)
            except BaseException:  # what was not read has to be looked at again, whatever the hints say
                for part in (self.names, self.notes, self.given):
                    part.look_again()
                raise

    def _refresh(self, now: float, beats: bool, most: int | None) -> None:
        self._catch_up_open()
        if self.store.backend.traits.stamps:
            most = None
        if not self.rolls.began:
            self._read_rolls()
        listed = self.names.new(now)
        if listed or self.partial:
            self._catch_up()
        new = []
        for at in listed:
            if self._knows(*at):
                self.names.told(*at)
            else:
                new.append(at)
        if most is not None:
            new = self._newest(new, most)
        elif self.partial:
            new = sorted({*new, *self._left()})
            self.partial = False
        if len(new) > MANY or (new and (self.rolls.torn or self.rolls.crowded)):
            self._read_rolls()
        if new:
            found = self._read_all([at for at in new if not self._knows(*at)])
            for at in new:
                if self._knows(*at) or at in found:
                    self.names.told(*at)
        if most != 0:
            self._reread(beats, NEWEST - (len(new) if most else 0))
        self.names.listed = {}  # of no use once it is read, and as long as the study
        if self.names.moved:
            self._settle(self.names.moved)
        if self.names.has("note") or self.notes.ours:
            self.notes.refresh(now, self.names.above)
        else:  # as far as the last listing told: a stop counts from now on all the same
            self.notes.probe_stop()
        if most != 0 and (self.names.has("given") or self.given.ours):
            self.given.refresh(now, self.names.above)
        if self.partial:
            self._read_all([(n, 0) for n in self.notes.released if n in self.names and not self._knows(n, 0)])
        self._catch_up_open()

    def sweep(self, word: int) -> None:
        """Read some of what was left unread, so that it gets into a roll: somebody has to, now and then."""
        with self.lock:
            self._read_rolls()
            left = self._left()
            start = word % len(left) if left else 0
            self._read_all((left[start:] + left[:start])[:SWEEP])

    def look(self, n: int, attempt: int) -> Seen | None:
        """Read one attempt now, whatever is known of it; None if it does not exist."""
        with self.lock:
            self._catch_up()
            if n not in self._table or attempt:
                if attempt == 0 and n not in self.names:
                    self.names.crowded(n)
                self._read(n, attempt)
            return self.seens(n).get(attempt)

    def own(self, attempt: Attempt) -> None:
        """This process has just claimed the attempt: while it writes it, it need not read it back."""
        with self.lock:
            attempt.watcher = self
            self._mine[attempt.n, attempt.attempt] = attempt
            if attempt.attempt or attempt.wish:
                self._put(Seen(attempt.n, attempt.attempt, attempt.record(), self.newest))
            else:
                self._news.append(attempt)
                self.names.add(attempt.n)
                self.of = max(self.of, attempt.of)
            self._moved(attempt)

    def after_close(self, attempt: Attempt) -> None:
        """Take over what this process has just written, unless a refresh is on its way (then that will)."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            unseen = attempt in self._news  # nobody has seen it run, so nobody need forget that
            if unseen:
                self._news.remove(attempt)
            if unseen and attempt.state == "done":  # settled, whatever else comes to be known of the trial
                self._rows.append(attempt)
            else:
                self._take_mine(attempt)
            self._moved(attempt)
        finally:
            self.lock.release()

    def _moved(self, attempt: Attempt) -> None:
        """We have moved the attempt's block; while others have trials open, every move may be one of theirs."""
        if attempt.attempt == 0 and self._open.keys() <= self._mine.keys():
            self.names.moved_by_us(attempt.n)

    def publish(self, me: str | None) -> None:
        """Write a roll if enough closed records are in none. Never raises StoreError: it is only a cache."""
        if len(self.rolls.unrolled) + len(self._rows) < self.rolls.threshold:
            return
        with self.lock:
            try:
                self._read_rolls()
                self.rolls.publish(me)
            except StoreError as wrong:
                log.debug("no roll of study %s: %s", self.study, wrong)

    def whole(self, n: int) -> list[Seen]:
        """The trial's attempts with everything their files hold (a kept copy has no files), by attempt."""
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

    def __len__(self) -> int:
        return super().__len__() + len(self._news) + len(self._rows)

    def _catch_up(self) -> None:
        if self._rows:  # many in a row cost half of what each would between two system calls
            rows, self._rows = self._rows, []
            for mine in rows:
                self._take_mine(mine)
        super()._catch_up()

    def _catch_up_open(self) -> None:
        while self._news:
            mine = self._news.pop()
            if mine.closed and not mine.lost and mine.ours:  # and the close found a refresh on its way
                self._take_mine(mine)
            else:
                self._put(Seen(mine.n, mine.attempt, mine.record(), self.newest))
        super()._catch_up_open()

    # reading

    def _newest(self, new: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
        """Later attempts are few and always read; of the others all but the newest are only known to be taken."""
        first = [at for at in new if not at[1]]
        read = set(sorted({*first, *self._open})[-most:] if most else ()).intersection(first)
        unread = [n for n, attempt in first if (n, attempt) not in read]
        if unread:
            self.names.add_many(unread)
            self.partial = True
        return sorted(at for at in new if at[1] or at in read)

    def _left(self) -> list[tuple[int, int]]:
        """The trials of which only the name was seen."""
        return [(n, 0) for n in self.names.all() if not self._knows(n, 0)]

    def _reread(self, beats: bool, newest: int = NEWEST) -> None:
        """Read the open attempts that may have changed."""
        moved = self.names.moved
        if beats:
            self._read_all(sorted(self._open))
            return
        if not self.store.backend.traits.stamps:
            self._read_all(self._by_turns(max(0, newest)))
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
        self._catch_up()
        for records in self.rolls.new():
            self.rolls.found(records)
            self._put_roll(records)

    def _by_turns(self, count: int) -> list[tuple[int, int]]:
        """Without hints: the newest open attempts that the listing does not show unchanged, and 8 others in rotation."""
        listed = self.names.listed
        moved = [at for at, version in self._open.items() if listed.get(at) != version]
        others = sorted(at for at in moved if not self._is_mine(at))
        first = max(0, len(others) - count)
        newest, old = others[first:], others[:first]
        if old:
            start = self._turn % len(old)
            self._turn += OTHERS
            newest += (old[start:] + old[:start])[:OTHERS]
        return newest

    def _read(self, n: int, attempt: int) -> bool:
        """Read the attempt now; False if there is nothing under its name (any more, or as far as is seen here)."""
        return bool(self._read_all([(n, attempt)]))

    def _read_all(self, ats: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
        """Read attempts, at once where that is faster, so many that memory is bounded; returns those that are there."""
        got: set[tuple[int, int]] = set()
        for start in range(0, len(ats), AT_ONCE):
            some = ats[start : start + AT_ONCE]
            there = self.store.backend.read_many([self.keys.attempt(*at) for at in some])
            got |= {at for at, found in zip(some, there, strict=True) if self._received(*at, found)}
        return got

    def _received(self, n: int, attempt: int, found: Object | RecordError | None) -> bool:
        key = self.keys.attempt(n, attempt)
        if isinstance(found, RecordError):  # a link, a FIFO, something huge under a record's name
            self.problems[key] = str(found)
            self._put(Seen(n, attempt, None, 0.0, self.store.backend.version(key) or "?"))
            return True
        if found is None:
            self._forget(n, attempt)
            return False
        self._take(n, attempt, found.data, found.modified, found.version)
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
        self._put(Seen(n, attempt, record, modified, version, newer, record is None and not data))

    def _forget(self, n: int, attempt: int) -> None:
        """A record that is gone: removed by hand, or lost in a power cut. Its index is free again."""
        self._mine.pop((n, attempt), None)
        if not self._knows_closed(n, attempt) and self._drop(n, attempt):  # the copy of a closed one is the record
            self.problems.pop(self.keys.attempt(n, attempt), None)


def view_of(store: Store, study: str, keys: StudyKeys | None = None) -> View:
    """The view of a study that all readers of this store object share, so that nothing is read twice.

    ``keys``: where its records lie, if not with the studies.
    """
    at = ("view", study) if keys is None else ("view at", keys.base)
    view: View | None = store.kept.get(at)
    if view is None:
        view = store.kept.setdefault(at, View(store, study, keys))
    return view


def _forked() -> None:
    for view in list(_views):
        view.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
