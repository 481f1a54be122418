"""The curves of a study's trials, for its pruner: each read once, and again only when it has changed.

A closed curve is in its blob (or is one value, in the record), a running one under ``live/``. Nobody but a pruner
that compares causes a single read here. What does not read is counted and left out; an outage leaves what is known.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from threading import RLock
from typing import Any

from dibs.backend import Object
from dibs.errors import DibsError, RecordError, StoreError
from dibs.record import TrialRecord, decode
from dibs.search import Curve

from ._attempt import LIVE_EVERY_BUCKET_S, LIVE_EVERY_S, Attempt
from ._view import View

__all__ = ["Curves", "curves_of"]

log = logging.getLogger("dibs")
AT_ONCE = 256  # blobs read at once
_At = tuple[int, int]  # (trial, attempt)


class Curves:
    """Every trial's curve as far as it was seen. Thread-safe; shared by all who use one store object."""

    def __init__(self, view: View) -> None:
        self.view, self.lock = view, RLock()
        self.unreadable: dict[str, str] = {}  # what would hold a curve -> why it does not read
        self._attempts: dict[int, dict[int, Curve]] = {}  # n -> attempt -> what that one reported
        self._trials: dict[int, Curve] = {}
        self._final: set[_At] = set()  # closed, and never read again
        self._wanted: dict[_At, TrialRecord] = {}  # closed, and not read yet
        self._shown: dict[_At, str] = {}  # running -> the version of its live curve that was read
        self._rows, self._epoch = 0, view.table.epoch
        self._looked = float("-inf")

    def others(self, n: int) -> list[Curve]:
        """The curves of all trials but n, as of the last look."""
        with self.lock:
            return [curve for curve in self._trials.values() if curve.n != n]

    def earlier(self, n: int, attempt: int) -> list[tuple[int, float]]:
        """What the attempts of trial n below that one have reported, by step, as of the last look."""
        with self.lock:
            found = self._attempts.get(n, {})
            return _joined(found[k] for k in sorted(found) if k < attempt)

    def look(self, own: _At, *, rung: bool = False) -> None:
        """Look again, if the last look is a second ago; on a bucket half a minute, or if this is a rung.

        ``own``: the attempt that asks, which need not be read. Never raises StoreError.
        """
        with self.lock:
            now, folder = self.view.store.machine.clock.monotonic(), self.view.store.backend.traits.touch
            every_s = LIVE_EVERY_S if folder else LIVE_EVERY_BUCKET_S
            if now - self._looked < every_s and not (rung and not folder):
                return
            self._looked = now
            try:
                self.view.refresh()
                running = self._find()
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
            if table.epoch != self._epoch:  # a row was dropped, so the count no longer says what is new
                self._rows, self._epoch = 0, table.epoch
            for n, *_ in table.since(self._rows):
                if (n, 0) not in self._final:
                    self._wanted[n, 0] = table.record(n, view.study)
            self._rows = len(table)
            seens = [seen for trial in view.specials() for seen in view.seens(trial.n).values()]
        for seen in seens:
            at, record = (seen.n, seen.attempt), seen.record
            if record is None or at in self._final:
                continue
            (self._wanted if record.closed else running)[at] = record
        return running

    # closed ones

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
