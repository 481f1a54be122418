"""Settled trials as columns: what a reader keeps of a hundred thousand of them. Pure.

Most trials are settled by their attempt 0 and never change again. For those a few bytes in numpy columns
indexed by n, and the point, are kept; anything else (rescued, open, retried) lives elsewhere as ``Seen``.
Columns for several goals and for constraints are made when the first row has any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dibs.record import STATES, Closed, TrialRecord, Who, decode_who
from dibs.search import Goals, History

from ._scoring import excess_of, scores_in

__all__ = ["FAR", "Table", "is_plain"]

FAR = 1 << 20  # an index this far beyond the count is no column's business
_CODE = {state: code for code, state in enumerate(STATES, start=1)}  # 0 = nothing there
_DONE = _CODE["done"]


def is_plain(record: TrialRecord | Closed) -> bool:
    """Whether this attempt settles its trial all by itself: attempt 0, done, pruned, or failed for good."""
    return record.attempt == 0 and (
        record.state == "done" or record.state == "pruned" or (record.state == "failed" and not record.again)
    )


class _Points(Sequence[Any]):
    """The points of some rows, looked up when asked for: a history of 100,000 costs its columns only."""

    __slots__ = ("_ns", "_points")

    def __init__(self, points: list[dict[str, Any] | None], ns: NDArray[np.int64]) -> None:
        self._points, self._ns = points, ns

    def __len__(self) -> int:
        return len(self._ns)

    def __getitem__(self, at: Any) -> Any:
        return _Points(self._points, self._ns[at]) if isinstance(at, slice) else self._points[self._ns[at]]

    def __iter__(self) -> Iterator[Any]:
        points = self._points
        return (points[n] for n in self._ns.tolist())


class Table:
    """Grows in place; ``add`` overwrites nothing, ``drop`` forgets one row."""

    def __init__(self) -> None:
        self._state = np.zeros(256, np.int8)
        self._score = np.full(256, np.nan)
        self._step = np.full(256, -1, np.int64)
        self._seed = np.zeros(256, np.int64)
        self._of = np.zeros(256, np.int64)
        self._took = np.full(256, np.nan)
        self._scores: NDArray[np.float64] | None = None  # (rows, goals), where there are several
        self._excess: NDArray[np.float64] | None = None  # where there are constraints
        self._points: list[dict[str, Any] | None] = [None] * 256
        self._who: list[Any] = [None] * 256
        self._started: list[str | None] = [None] * 256
        self._rare: dict[int, dict[str, Any]] = {}  # n -> reason, wish, contract, constraints where there are any
        self._blobs: dict[int, bytes] = {}  # n -> the digest of its curve, where there is more than one value
        self._whos: dict[bytes | Who, Who] = {}
        self._last: Who | None = None
        self.goals: set[Goals] = set()  # what the rows say: one at most, a record of another is no row
        self._top = 0  # no row at or above
        self._order = np.zeros(256, np.int64)  # the rows in the order they came
        self._count = self._dones = 0
        self.epoch = 0  # how often a row was dropped, which moves those that came later
        self._shared = False  # a history may still look into the columns, as far as they reach now

    def __len__(self) -> int:
        return self._count

    def __contains__(self, n: int) -> bool:
        return 0 <= n < self._top and self._state[n] != 0

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._state[: self._top]).tolist())

    def fits(self, n: int) -> bool:
        """Whether n is near enough to what is there to be worth a row."""
        return 0 <= n < FAR + 4 * self._count

    def holds(self, goals: Set[Goals | None]) -> bool:
        """Whether records of these goals can all be rows here: as a rule, but for what was written by hand."""
        return len({*self.goals, *goals} - {None}) <= 1

    def add_many(self, records: Sequence[Closed]) -> Sequence[Closed]:
        """Rows of a roll, all plain, each index once, of one goal; returns those that were not here yet."""
        if not records:
            return records
        ns = np.array([record.n for record in records], np.int64)
        self._grow(int(ns.max()) + 1)
        if self._state[ns].any():
            records = [record for record in records if self._state[record.n] == 0]
            ns = np.array([record.n for record in records], np.int64)
        self._state[ns] = [_CODE[record.state] for record in records]
        self._score[ns] = np.array([record.score for record in records], np.float64)  # None becomes nan
        self._step[ns] = [-1 if record.step is None else record.step for record in records]
        self._seed[ns] = [record.seed for record in records]
        self._of[ns] = [record.of for record in records]
        self._took[ns] = np.array([record.took_s for record in records], np.float64)
        self._came(ns, len(records), int(np.count_nonzero(self._state[ns] == _DONE)))
        goal = next((record.goal for record in records if record.goal), None)
        if goal is not None:
            self.goals.add(goal)
        if isinstance(goal, tuple):
            for record in records:
                self._keep_scores(record)
        points, whos, started, known = self._points, self._who, self._started, self._whos
        for record in records:
            n = record.n
            points[n] = record.point
            started[n] = record.started_at
            raw = bytes(record.who)
            who = known.get(raw)
            if who is None:
                who = known[raw] = self._one(decode_who(raw))
            whos[n] = who
            if record.blob:
                self._blobs[n] = _raw(record.blob)
            if record.reason or record.wish or record.contract or record.constraints:
                self._keep_rare(record)
        return records

    def add(self, record: TrialRecord) -> None:
        """One row, plain, not here yet."""
        n = record.n
        self._grow(n + 1)
        self._state[n] = _CODE[record.state]
        self._score[n] = np.nan if record.score is None else record.score
        self._step[n] = -1 if record.step is None else record.step
        self._seed[n], self._of[n] = record.seed, record.of
        self._took[n] = np.nan if record.took_s is None else record.took_s
        self._points[n], self._started[n], self._who[n] = record.point, record.started_at, self._one(record.who)
        if record.goal:
            self.goals.add(record.goal)
            if isinstance(record.goal, tuple):
                self._keep_scores(record)
        self._came(n, 1, int(record.state == "done"))
        if record.blob:
            self._blobs[n] = _raw(record.blob)
        if record.reason or record.wish or record.contract or record.constraints:
            self._keep_rare(record)

    def drop(self, n: int) -> None:
        """Forget a row."""
        if self._shared:
            self._state, self._score, self._step = self._state.copy(), self._score.copy(), self._step.copy()
            self._scores = None if self._scores is None else self._scores.copy()
            self._excess = None if self._excess is None else self._excess.copy()
            self._points = self._points.copy()
            self._shared = False
        order = self._order[: self._count]
        self._order = order[order != n]
        self._dones -= int(self._state[n] == _DONE)
        self._count -= 1
        self.epoch += 1
        self._state[n] = 0
        self._score[n] = np.nan
        for column in (self._scores, self._excess):
            if column is not None:
                column[n] = np.nan
        self._who[n] = self._started[n] = self._points[n] = None
        self._rare.pop(n, None)
        self._blobs.pop(n, None)

    def parts(self) -> dict[Who, tuple[int, int]]:
        """Who closed rows: (all of them, those done)."""
        all_of: Counter[Who] = Counter()
        done: Counter[Who] = Counter()
        states = self._state[: self._top].tolist()
        for state, who in zip(states, self._who, strict=False):
            if state:
                all_of[who] += 1
                done[who] += state == _DONE
        return {who: (count, done[who]) for who, count in all_of.items()}

    def record(self, n: int, study: str) -> TrialRecord:
        """The row as a record (without nonce and files: those are read again where they are needed)."""
        rare = self._rare.get(n, {})
        score, took, step = float(self._score[n]), float(self._took[n]), int(self._step[n])
        scores = None if self._scores is None else tuple(self._scores[n].tolist())
        return TrialRecord(
            v=1, kind="trial", study=study, n=n, attempt=0, state=STATES[self._state[n] - 1], nonce="",
            point=self._points[n] or {}, goal=next(iter(self.goals), None), of=int(self._of[n]), seed=int(self._seed[n]),
            score=None if score != score else score, step=None if step < 0 else step,
            took_s=None if took != took else took, started_at=self._started[n], who=self._who[n] or Who(),
            reason=rare.get("reason"), wish=rare.get("wish"), contract=rare.get("contract"), blob=self._blob(n),
            scores=None if scores is None or scores[0] != scores[0] else scores, constraints=rare.get("constraints"),
        )  # fmt: skip

    def _blob(self, n: int) -> str | None:
        raw = self._blobs.get(n)
        return None if raw is None else raw.hex() if len(raw) == 32 else raw.decode()

    def counts(self) -> dict[str, int]:
        """How many rows are in each state."""
        found = np.bincount(self._state[: self._top], minlength=len(STATES) + 1)
        return {state: int(found[code]) for state, code in _CODE.items() if found[code]}

    def failures(self) -> Iterator[str | None]:
        """The reasons of the failed rows."""
        failed = np.flatnonzero(self._state[: self._top] == _CODE["failed"]).tolist()
        return (self._rare.get(n, {}).get("reason") for n in failed)

    def since(self, count: int) -> list[tuple[int, dict[str, Any], bool]]:
        """(index, point, whether it is done) of the rows that came after the first ``count``; valid for one ``epoch``."""
        state, points = self._state, self._points
        return [(n, points[n] or {}, bool(state[n] == _DONE)) for n in self._order[count : self._count].tolist()]

    def came(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(indexes, last steps, -1 = none) of the same rows."""
        ns = self._order[count : self._count]
        return ns, self._step[ns]

    def history(
        self, *, done_only: bool, but: NDArray[np.bool_] | None = None, fewer: int = 0, goals: int = 1
    ) -> History:
        """The rows there are now as a history of so many goals, by index; it costs nothing until somebody looks into it.

        ``but``: without those marked in there, which are ``fewer``; of the rows there are now no mark changes any more.
        """
        top, count, order = self._top, self._count, self._order
        state, score, step, points = self._state, self._score, self._step, self._points
        scores, excess = self._scores, self._excess
        self._shared = True

        def make() -> History:
            there = np.zeros(top, np.bool_)
            there[order[:count]] = True
            if but is not None:
                there[: len(but)] &= ~but[:top]
            ns = np.flatnonzero(there & (state[:top] == _DONE) if done_only else there)
            return History.columns(
                ns, score[ns], state[ns] - 1, step[ns], _Points(points, ns),
                scores=_rows(scores, ns, goals) if goals > 1 else None, excess=None if excess is None else excess[ns],
            )  # fmt: skip

        return History.later((self._dones if done_only else count) - fewer, make)

    def ranked(self, sign: float, k: int) -> list[int]:
        """The k rows with the best done scores that break no constraint, best first, ties by index."""
        ns = np.flatnonzero(self._state[: self._top] == _DONE)
        if self._excess is not None:
            ns = ns[~(self._excess[ns] > 0)]
        order = np.lexsort((ns, sign * self._score[ns]))
        return [int(n) for n in ns[order[:k]]]

    def done(self, goals: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The done rows that have so many scores and break no constraint, and the scores: shape (rows, goals)."""
        top = self._top
        scores = self._score[:, None] if goals == 1 else self._scores
        if scores is None or scores.shape[1] != goals:
            return np.zeros(0, np.int64), np.zeros((0, goals))
        there = (self._state[:top] == _DONE) & np.isfinite(scores[:top]).all(axis=1)
        if self._excess is not None:
            there &= ~(self._excess[:top] > 0)
        ns = np.flatnonzero(there)
        return ns, scores[ns]

    def nearest(self) -> int | None:
        """The done row that breaks its constraints least, None if none breaks any; ties by index."""
        if self._excess is None:
            return None
        over = np.where((self._state == _DONE) & (self._excess > 0), self._excess, np.inf)
        n = int(np.argmin(over))
        return n if over[n] < np.inf else None

    def whos(self) -> set[Who]:
        """Everybody who closed one of the rows."""
        return set(self._whos.values())

    def _one(self, who: Who) -> Who:
        if self._last is None or who != self._last:  # the same worker's again, as a rule
            self._last = self._whos.setdefault(who, who)
        return self._last

    def _keep_rare(self, record: TrialRecord | Closed) -> None:
        self._rare[record.n] = {"reason": record.reason, "wish": record.wish, "contract": record.contract}
        if record.constraints:
            self._rare[record.n]["constraints"] = record.constraints
            if self._excess is None:
                self._excess = np.full(len(self._state), np.nan)
            self._excess[record.n] = excess_of(record.constraints)

    def _keep_scores(self, record: TrialRecord | Closed) -> None:
        """Of a record with several goals."""
        scores = scores_in(record)
        self._score[record.n] = np.nan
        if scores:
            if self._scores is None:
                self._scores = np.full((len(self._state), len(scores)), np.nan)
            self._scores[record.n] = scores

    def _came(self, ns: Any, rows: int, dones: int) -> None:
        """A row, or an array of rows, has been filled in."""
        before, self._count = self._count, self._count + rows
        self._dones += dones
        if self._count > len(self._order):
            more = np.zeros(self._count + self._count // 2, np.int64)
            more[:before] = self._order[:before]
            self._order = more
        self._order[before : self._count] = ns

    def _grow(self, top: int) -> None:
        self._top = max(self._top, top)
        size = len(self._state)
        if top <= size:
            return
        more = max(top, size + size // 2) - size
        for name, fill in (
            ("_state", 0),
            ("_score", np.nan),
            ("_step", -1),
            ("_seed", 0),
            ("_of", 0),
            ("_took", np.nan),
            ("_scores", np.nan),
            ("_excess", np.nan),
        ):
            column: NDArray[Any] | None = getattr(self, name)
            if column is not None:
                setattr(self, name, np.concatenate([column, np.full((more, *column.shape[1:]), fill, column.dtype)]))
        for rows in (self._points, self._who, self._started):
            rows.extend([None] * more)


def _rows(scores: NDArray[np.float64] | None, ns: NDArray[np.int64], goals: int) -> NDArray[np.float64]:
    """The scores of some rows, nan where no row has as many."""
    return scores[ns] if scores is not None and scores.shape[1] == goals else np.full((len(ns), goals), np.nan)


def _raw(digest: str) -> bytes:
    """Half the room; what is no digest (a record written by hand) is kept as it is."""
    try:
        raw = bytes.fromhex(digest)
    except ValueError:
        raw = b""
    return raw if len(raw) == 32 and raw.hex() == digest else digest.encode("utf-8", "replace")
