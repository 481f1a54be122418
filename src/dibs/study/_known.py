"""What is known of a study's attempts, and what it folds to. It reads nothing: a view fills it.

Trials settled by their attempt 0 are rows of the table; every other one is held attempt by attempt, folded
once and again only when something about it changed, so that what a worker asks costs the open ones alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import RLock
from typing import Any

from dibs.record import Closed
from dibs.store import BLOCK

from ._fold import Folded, Seen, fold
from ._names import Names
from ._notes import Notes
from ._rolls import whole
from ._table import Table, is_plain

__all__ = ["Known"]


class Known:
    """The attempts of one study as far as they were seen. Thread-safe through ``lock``."""

    def __init__(self, study: str, names: Names, notes: Notes) -> None:
        self.study, self.names, self.notes = study, names, notes
        self.lock = RLock()
        self._table = Table()
        self.carried: dict[str, int] = {}  # wish -> the trial that carries it
        self.of = 0  # the study's N: the largest any record asked for
        self._special: dict[int, dict[int, Seen]] = {}  # every trial that is not a plain row of the table
        self._open: dict[tuple[int, int], str] = {}  # attempts that may still change -> version
        self._unsettled: set[int] = set()
        self._folds: dict[int, Folded] = {}

    @property
    def table(self) -> Table:
        """The trials that were settled by their attempt 0, as columns."""
        with self.lock:
            self._catch_up()
            return self._table

    @property
    def attempts(self) -> Mapping[int, Mapping[int, Seen]]:
        """Every known trial's attempts, made up when asked for."""
        return _Attempts(self)

    def __len__(self) -> int:
        return len(self._table) + len(self._special)

    def seens(self, n: int) -> dict[int, Seen]:
        """The known attempts of one trial; empty if nobody is known to have claimed it."""
        with self.lock:
            self._catch_up()
            found = self._special.get(n)
            if found is not None:
                return found
            if n in self._table:
                return {0: Seen(n, 0, self._table.record(n, self.study), 0.0)}
            return {}

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
            self._catch_up_open()
            return [self._folds[n] for n in sorted(self._unsettled)] if self._unsettled else []

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
        with self.lock:
            self._catch_up()
            return sorted([*self._table, *self._special])

    # how it comes to be known

    def _knows(self, n: int, attempt: int) -> bool:
        known = self._special.get(n)
        return attempt in known if known is not None else attempt == 0 and n in self._table

    def _knows_closed(self, n: int, attempt: int) -> bool:
        known = self._special.get(n, {}).get(attempt)
        return known.closed if known is not None else attempt == 0 and n in self._table

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
            plain = record is not None and is_plain(record) and self._alone(n) and self._table.fits(n)
            if plain and record is not None and self._table.holds({record.goal}):
                if n not in self._table:
                    self._table.add(record)
                if known is not None:
                    del self._special[n]
                    self._changed(n)
                if self.names.full(n // BLOCK):
                    self._settle([n // BLOCK])
                return
        else:
            self._open[n, attempt] = seen.version
            self.names.watch(n // BLOCK)
        if known is None:
            known = self._special[n] = self._promoted(n)
        if known.get(attempt) != seen:
            known[attempt] = seen
            self._changed(n)

    def _settle(self, blocks: Iterable[int]) -> None:
        """A block that is full and in which nothing is open need never be looked at again."""
        full = [block for block in blocks if self.names.full(block)]
        if full:
            moving = {n // BLOCK for n, attempt in self._open if not attempt}
            for block in full:
                if block not in moving:
                    self.names.forget(block)

    def _alone(self, n: int) -> bool:
        """Nothing but attempt 0 is known of the trial, and nothing releases it."""
        known = self._special.get(n)
        return (known is None or not known.keys() - {0}) and n not in self.notes.released

    def _promoted(self, n: int) -> dict[int, Seen]:
        """The attempts of a trial that stops being a plain row."""
        if n not in self._table:
            return {}
        seens = {0: Seen(n, 0, self._table.record(n, self.study), 0.0)}
        self._table.drop(n)
        return seens

    def _changed(self, n: int) -> None:
        attempts = self._special.get(n)
        if not attempts:
            self._folds.pop(n, None)
            self._unsettled.discard(n)
            return
        folded = self._folds[n] = fold(list(attempts.values()), self.released(n))
        (self._unsettled.discard if folded.settled else self._unsettled.add)(n)

    def _catch_up(self) -> None:
        """Whatever was put off until somebody asks."""
        self._catch_up_open()

    def _catch_up_open(self) -> None:
        """What of it may leave a trial unsettled. Release notes count from when they were seen, whoever refreshed them."""
        for n in self.notes.take_changed():
            self._released(n)

    def _released(self, n: int) -> None:
        if n in self._table:
            self._special[n] = self._promoted(n)
        if n in self._special:
            self._changed(n)

    def _put_roll(self, records: Sequence[Closed]) -> None:
        """Records of a roll: the bulk goes straight to the columns, what is not alone is folded."""
        special, released = self._special, self.notes.released
        plain: dict[int, Closed] = {}  # overlaps and repetitions count once
        again = {record.n for record in records if record.attempt}  # not alone, whichever comes first
        for record in records:
            n = record.n
            if record.attempt == 0 and n not in again and n not in special and n not in released and is_plain(record):
                plain[n] = record
            elif not self._knows_closed(n, record.attempt):
                self._put(Seen(n, record.attempt, whole(record, self.study), 0.0))
        if not self._table.holds({record.goal for record in plain.values()}):
            for n in [n for n in plain if not self._table.goals or not self._table.holds({plain[n].goal})]:
                self._put(Seen(n, 0, whole(plain.pop(n), self.study), 0.0))
        top = max(plain, default=0)
        if plain and not self._table.fits(top):
            for n in [n for n in plain if not self._table.fits(n)]:
                self._put(Seen(n, 0, whole(plain.pop(n), self.study), 0.0))
        fresh = self._table.add_many(list(plain.values()))
        self.names.add_many([record.n for record in fresh])
        self.of = max([self.of, *[record.of for record in fresh]])
        for record in fresh:
            if record.wish:
                self.carried[record.wish] = record.n

    def _drop(self, n: int, attempt: int) -> bool:
        """The attempt's record is gone; its index is free again if it was the last. False if it was not known."""
        self._open.pop((n, attempt), None)
        known = self._special.get(n)
        gone = known.pop(attempt, None) if known else None
        if gone is None:
            return False
        self.names.untold(n, attempt)
        if not known:
            del self._special[n]
            self.names.discard(n)
            if gone.record is not None and gone.record.wish:
                self.carried.pop(gone.record.wish, None)
        self._changed(n)
        return True


class _Attempts(Mapping[int, Mapping[int, Seen]]):
    """n -> attempt -> what was seen of it."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def __getitem__(self, n: int) -> Mapping[int, Seen]:
        found = self._known.seens(n)
        if not found:
            raise KeyError(n)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self._known.indexes())

    def __len__(self) -> int:
        return len(self._known)
