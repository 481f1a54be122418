"""The curves of a study's trials, for its pruner: each read once, and again only when it has changed.

A closed curve is in its blob (or is one value, in the record), a running one under ``live/``. Nobody but a pruner
that compares causes a single read here, and no more than a draw of what it needs (``_voters``), so that who joins late is
soon at work. What does not read is counted and left out; an outage leaves what is known.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from threading import RLock
from typing import Any
from weakref import WeakSet

from dibs.backend import Object
from dibs.errors import DibsError, RecordError, StoreError
from dibs.record import TrialRecord, decode
from dibs.search import Curve, Pruner

from ._attempt import LIVE_EVERY_BUCKET_S, LIVE_EVERY_S, Attempt
from ._view import View
from ._voters import Voters

__all__ = ["Curves", "curves_of"]

log = logging.getLogger("dibs")
AT_ONCE = 256  # blobs read at once
MOST = Pruner.most
_At = tuple[int, int]  # (trial, attempt)


class Curves:
    """Every trial's curve as far as it was seen. Thread-safe; shared by all who use one store object."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._begin()
        _curves.add(self)

    def _begin(self) -> None:
        """Know nothing yet."""
        self.lock = RLock()
        self.unreadable: dict[str, str] = {}  # what would hold a curve -> why it does not read
        self._attempts: dict[int, dict[int, Curve]] = {}  # n -> attempt -> what that one reported
        self._trials: dict[int, Curve] = {}
        self._final: set[_At] = set()  # closed, and never read again
        self._wanted: dict[_At, TrialRecord] = {}  # closed, and not read yet
        self._shown: dict[_At, str] = {}  # running -> the version of its live curve that was read
        self._table, self._rows, self._epoch = self.view.table, 0, self.view.table.epoch
        self._voters = Voters()  # the rows of the table
        self._draws: dict[tuple[int, int], list[int]] = {}  # as of the last look
        self._open: set[int] = set()  # no rows: running, or of several attempts
        self._looked = float("-inf")

    def forked(self) -> None:
        """In a process just forked: a thread of the parent's that was at work in here is not there to finish it."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self._begin()

    def others(self, n: int, least: int = 0, most: int = MOST) -> list[Curve]:
        """The curves of trials other than n, as of the last look: all that are open, and a draw of the closed ones.

        ``least``: of those alone that got to that step; ``most``: at most so many.
        """
        with self.lock:
            asked = self._open.union(self._draws.get((least, most), ()))
            return [self._trials[k] for k in sorted(asked) if k != n and k in self._trials]

    def earlier(self, n: int, attempt: int) -> list[tuple[int, float]]:
        """What the attempts of trial n below that one have reported, by step, as of the last look."""
        with self.lock:
            found = self._attempts.get(n, {})
            return _joined(found[k] for k in sorted(found) if k < attempt)

    def look(self, own: _At, *, rung: bool = False, least: int = 0, most: int = MOST) -> None:
        """Look again, if the last look is a second ago; on a bucket half a minute, or if this is a rung.

        ``own``: the attempt that asks, which need not be read. ``least``, ``most``: which closed ones are asked for;
        these are read even if it is not yet time for another look. Never raises StoreError.
        """
        with self.lock:
            now, folder = self.view.store.machine.clock.monotonic(), self.view.store.backend.traits.touch
            every_s = LIVE_EVERY_S if folder else LIVE_EVERY_BUCKET_S
            due = now - self._looked >= every_s or (rung and not folder)
            if not due and (least, most) in self._draws:
                return
            try:
                running: dict[_At, TrialRecord] = {}
                if due:
                    self._looked = now
                    self.view.refresh()
                    running = self._find()
                self._draw(least, most)
                self._fetch()
                running.pop(own, None)
                self._follow(running)
            except StoreError as wrong:
                log.warning("curves could not be read, the pruner judges by those it knows: %s", wrong)

    def keep(self, attempt: Attempt) -> None:
        """This process has closed the attempt: its curve need not be read back."""
        if not self.lock.acquire(blocking=False):
            return  # somebody is looking, perhaps at a store that hangs: then it is read back
        try:
            at = attempt.n, attempt.attempt
            self._wanted.pop(at, None)
            self._open.add(attempt.n)  # until the next look finds it among the rows
            self._put(at, Curve(attempt.n, attempt.state, sorted(attempt.curve.items())), closed=True)
        finally:
            self.lock.release()

    # which there are

    def _find(self) -> dict[_At, TrialRecord]:
        """Note what has closed since the last look; returns what is running."""
        running: dict[_At, TrialRecord] = {}
        view = self.view
        with view.lock:
            table = view.table
            if table is not self._table or table.epoch != self._epoch:  # the count no longer says what is new
                self._table, self._rows, self._epoch, self._voters = table, 0, table.epoch, Voters()
            self._voters.add(*table.came(self._rows))
            self._rows = len(table)
            self._draws.clear()
            seens = [seen for trial in view.specials() for seen in view.seens(trial.n).values()]
            self._open = {seen.n for seen in seens}
        for seen in seens:
            at, record = (seen.n, seen.attempt), seen.record
            if record is None or at in self._final:
                continue
            (self._wanted if record.closed else running)[at] = record
        return running

    # closed ones

    def _draw(self, least: int, most: int) -> None:
        """Note which of the rows are asked for, and want those of them that were not read."""
        draw = self._draws[least, most] = self._voters.drawn(least, most)
        with self.view.lock:
            table = self.view.table
            for n in draw:
                if (n, 0) not in self._final and n in table:
                    self._wanted[n, 0] = table.record(n, self.view.study)

    def _fetch(self) -> None:
        """Read what has closed, a few at a time so that memory is bounded. Raises StoreError for an outage."""
        for at, record in [*self._wanted.items()]:
            if record.blob is None:
                del self._wanted[at]
                if record.step is not None and record.score is not None:
                    self._put(at, Curve(record.n, record.state, [(record.step, record.score)]), closed=True)
                else:  # interrupted, say, after one report
                    self._closed_as_shown(at, record.state)
        left = [*self._wanted.items()]
        for start in range(0, len(left), AT_ONCE):
            part = left[start : start + AT_ONCE]
            bodies = self.view.store.backend.at_once(self._body, [record.blob or "" for _, record in part])
            for (at, record), body in zip(part, bodies, strict=True):
                self._take_blob(at, record, body)

    def _take_blob(self, at: _At, record: TrialRecord, body: dict[str, Any] | Exception) -> None:
        if isinstance(body, StoreError) and not isinstance(body, RecordError):
            raise body  # an outage: the next look tries again
        key = f"blob {record.blob}"
        try:
            if isinstance(body, Exception):
                raise body
            self._put(at, _curve(record.n, record.state, body, key), closed=True)
        except DibsError as wrong:
            self.unreadable[key] = str(wrong)
            self._closed_as_shown(at, record.state)
        del self._wanted[at]

    def _body(self, digest: str) -> dict[str, Any] | Exception:
        try:
            return decode(self.view.store.get(digest), f"blob {digest}")
        except DibsError as wrong:  # told by whoever asked: these run at the same time
            return wrong

    def _closed_as_shown(self, at: _At, state: str) -> None:
        shown = self._attempts.get(at[0], {}).get(at[1])
        self._put(at, Curve(at[0], state, shown.pairs if shown is not None else ()), closed=True)

    # running ones

    def _follow(self, running: Mapping[_At, TrialRecord]) -> None:
        keys = {at: self.view.keys.live(*at) for at in running}
        versions = self._versions(keys)
        moved = [at for at in running if versions.get(at) is not None and versions[at] != self._shown.get(at)]
        for at, found in zip(moved, self.view.store.backend.read_many([keys[at] for at in moved]), strict=True):
            self._take_live(at, running[at], keys[at], found)

    def _versions(self, keys: Mapping[_At, str]) -> dict[_At, str | None]:
        """Where a version costs a request, one listing tells them all."""
        backend = self.view.store.backend
        if backend.traits.touch or not keys:
            return {at: backend.version(key) for at, key in keys.items()}
        listed = {entry.key: entry.version for entry in backend.list(self.view.keys.lives(), details=True)}
        return {at: listed.get(key) for at, key in keys.items()}

    def _take_live(self, at: _At, record: TrialRecord, key: str, found: Object | RecordError | None) -> None:
        if found is None:
            return  # closed meanwhile: the next look finds its blob
        try:
            if isinstance(found, RecordError):
                raise found
            self._shown[at] = found.version
            body = decode(found.data, key)
            if body.get("nonce") == record.nonce:
                self._put(at, _curve(record.n, "running", body, key))
            self.unreadable.pop(key, None)
        except RecordError as wrong:
            self.unreadable[key] = str(wrong)

    def _put(self, at: _At, curve: Curve, *, closed: bool = False) -> None:
        if closed:
            self._final.add(at)
            self._shown.pop(at, None)
            self.unreadable.pop(self.view.keys.live(*at), None)
        attempts = self._attempts.setdefault(at[0], {})
        attempts[at[1]] = curve
        if len(attempts) > 1:
            states = [attempts[k].state for k in sorted(attempts)]
            state = next((word for word in ("done", "pruned") if word in states), states[-1])  # as a trial folds
            curve = Curve(at[0], state, _joined(attempts[k] for k in sorted(attempts)))
        self._trials[at[0]] = curve


def curves_of(view: View) -> Curves:
    """The curves that all pruners of this store object share, so that nothing is read twice."""
    key = "curves", view.study
    found: Curves | None = view.store.kept.get(key)
    if found is None:
        found = view.store.kept.setdefault(key, Curves(view))
    return found


def _joined(attempts: Iterable[Curve]) -> list[tuple[int, float]]:
    """One curve of several attempts: each goes on where it begins, and what was beyond that was reported in vain."""
    joined: list[tuple[int, float]] = []
    for curve in attempts:
        if len(curve):
            joined = [pair for pair in joined if pair[0] < curve.steps[0]] + curve.pairs
    return joined


def _curve(n: int, state: str, body: Mapping[str, Any], key: str) -> Curve:
    try:
        pairs = {int(step): float(value) for step, value in body["curve"]}  # float() reads "nan" and "inf" too
        return Curve(n, state, sorted(pairs.items()))
    except (KeyError, TypeError, ValueError, OverflowError) as wrong:
        raise RecordError(f"{key} holds no curve ({wrong})", key=key) from None


_curves: WeakSet[Curves] = WeakSet()


def _forked() -> None:
    for curves in list(_curves):
        curves.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
