"""What a reader knows of a study: attempts, notes, and what they fold to. It reads, and writes nothing.

A closed record is read once and kept (it never changes again); running ones are read at each refresh.
A view may be behind (a listing is not a snapshot), never wrong: whoever acts on it claims, and the name decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock
from typing import Any

from dibs._canon import from_json
from dibs.errors import NewerFormat, RecordError
from dibs.record import decode, decode_trial
from dibs.store import Store

from ._fold import Folded, Seen, fold
from ._notes import Notes

__all__ = ["View", "view_of"]


class View:
    """The attempts of one study, refreshed on demand. Thread-safe."""

    def __init__(self, store: Store, study: str) -> None:
        self.store, self.study = store, study
        self.keys = store.keys(study)
        self.lock = RLock()
        self.attempts: dict[int, dict[int, Seen]] = {}
        self.problems: dict[str, str] = {}  # key -> why it does not read: records, notes and attached results
        self.notes = Notes(store, self.keys, self.problems)
        self.carried: dict[str, int] = {}  # wish -> the trial that carries it
        self.given: dict[str, tuple[dict[str, Any], float]] = {}
        self.of = 0  # the study's N: the largest any record asked for
        self.newest = 0.0  # the newest stamp seen: a lower bound of the store's now
        self._open: set[tuple[int, int]] = set()
        self._folds: dict[int, Folded] = {}
        self._low = 0

    def refresh(self) -> None:
        """Look again: new names, running records, notes. Raises StoreError when the store does not answer."""
        with self.lock:
            for at in sorted(self._open):
                self._read(*at)
            for prefix in (self.keys.trials(), self.keys.agains()):
                for entry in self.store.backend.list(prefix):
                    found = self.keys.parse(entry.key)
                    if found is not None and found[1] not in self.attempts.get(found[0], ()):
                        self._read(*found)
            self.notes.refresh()
            self._read_given()

    def look(self, n: int, attempt: int) -> Seen | None:
        """Read one attempt now, whatever is known of it; None if it does not exist."""
        with self.lock:
            self._read(n, attempt)
            return self.attempts.get(n, {}).get(attempt)

    # what it amounts to

    def trial(self, n: int) -> Folded | None:
        """The trial's fold, or None if nobody has claimed it."""
        with self.lock:
            for changed in self.notes.take_changed():
                self._folds.pop(changed, None)
            found = self._folds.get(n)
            if found is None:
                attempts = self.attempts.get(n)
                if not attempts:
                    return None
                found = self._folds[n] = fold(list(attempts.values()), self.released(n))
            return found

    def trials(self) -> Iterator[Folded]:
        """Every known trial by index."""
        with self.lock:
            return iter([folded for n in sorted(self.attempts) if (folded := self.trial(n)) is not None])

    def unsettled(self) -> list[Folded]:
        """The trials that are not settled, by index."""
        return [folded for folded in self.trials() if not folded.settled]

    def released(self, n: int) -> set[int]:
        """The attempts of the trial that have a release note."""
        return self.notes.released.get(n, set())

    def running(self) -> list[Seen]:
        """Running attempts of trials that are not settled, by index: the highest attempt of each."""
        return [folded.top for folded in self.unsettled() if not folded.top.closed]

    def low(self) -> int:
        """The lowest index nobody is known to have claimed."""
        with self.lock:
            while self._low in self.attempts:
                self._low += 1
            return self._low

    def wishes(self) -> dict[str, dict[str, Any]]:
        """The wishes that no known record carries yet: digest -> point."""
        return {digest: point for digest, point in self.notes.wishes.items() if digest not in self.carried}

    # reading

    def _read(self, n: int, attempt: int) -> None:
        key = self.keys.attempt(n, attempt)
        newer = False
        modified, version = 0.0, ""  # of what is no file at all: it will never move
        try:
            there = self.store.backend.read(key)
            if there is None:
                self._forget(n, attempt)
                return
            modified, version = there.modified, there.version
            record = decode_trial(there.data, key)
            if (record.n, record.attempt, record.study) != (n, attempt, self.study):
                raise RecordError(f"{key} holds another trial ({record.study} {record.n}-{record.attempt})", key=key)
            self.problems.pop(key, None)
        except RecordError as wrong:
            record = None
            newer = isinstance(wrong, NewerFormat)
            self.problems[key] = str(wrong)
        seen = Seen(n, attempt, record, modified, version, newer)
        known = self.attempts.setdefault(n, {})
        if known.get(attempt) != seen:
            known[attempt] = seen
            self._folds.pop(n, None)
        self.newest = max(self.newest, modified)
        (self._open.discard if seen.closed else self._open.add)((n, attempt))
        if record is not None:
            self.of = max(self.of, record.of)
            if record.wish:
                self.carried[record.wish] = n

    def _forget(self, n: int, attempt: int) -> None:
        """A record that is gone: removed by hand, or lost in a power cut. Its index is free again."""
        self._open.discard((n, attempt))
        self._folds.pop(n, None)
        self.problems.pop(self.keys.attempt(n, attempt), None)
        gone = self.attempts.get(n, {}).pop(attempt, None)
        if gone is not None and not self.attempts[n]:
            del self.attempts[n]
            self._low = min(self._low, n)
            if gone.record is not None and gone.record.wish:
                self.carried.pop(gone.record.wish, None)

    def _read_given(self) -> None:
        seen: set[str] = set()
        for entry in self.store.backend.list(self.keys.given):
            seen.add(entry.key)
            if entry.key in self.given:
                continue
            try:
                there = self.store.backend.read(entry.key)
                if there is None:
                    continue
                body = decode(there.data, entry.key)
                point = {str(name): from_json(value) for name, value in body["point"].items()}
                if type(body["score"]) not in (int, float):
                    raise TypeError("the score is no number")
                self.given[entry.key] = (point, float(body["score"]))
                self.problems.pop(entry.key, None)
            except RecordError as wrong:
                self.problems[entry.key] = str(wrong)
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as wrong:
                self.problems[entry.key] = f"{entry.key} is not an attached result ({wrong!r:.120})"
        for key in [key for key in self.problems if key.startswith(self.keys.given) and key not in seen]:
            del self.problems[key]


def view_of(store: Store, study: str) -> View:
    """The view of a study that all readers of this store object share, so that nothing is read twice."""
    view: View | None = store.kept.get(("view", study))
    if view is None:
        view = store.kept.setdefault(("view", study), View(store, study))
    return view
