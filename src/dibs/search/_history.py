"""What samplers see of a study: points with their scores, sorted by index.

A History is a sequence of (point, score or None) pairs with the numbers beside it as numpy columns. It has as many
scores to a row as its study has goals; several are a tuple in a pair. It never changes; the points are shared, not
copied, so nobody may write into them. The surprising part: one may be put together only when somebody looks into it, so
that a sampler which needs no history pays for none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from dibs.errors import UsageError

__all__ = ["STATES", "History", "Pair", "Row", "Score"]

#: the names behind the codes of the ``state`` column
STATES = ("running", "done", "pruned", "failed", "interrupted")

Point: TypeAlias = Mapping[str, Any]
Score: TypeAlias = float | tuple[float, ...]
Pair: TypeAlias = tuple[Point, Score | None]
#: (index or -1 if it has none, point, score, a tuple of several, or None, state's name, last step or None), and perhaps
#: the excess or None as a sixth
Row: TypeAlias = (
    tuple[int, Point, Score | None, str, int | None] | tuple[int, Point, Score | None, str, int | None, float | None]
)

_COLUMNS = ("n", "score", "state", "step", "_points", "_scores", "_excess")
_CODES = {name: code for code, name in enumerate(STATES)}


class History(Sequence[Pair]):
    """An immutable sequence of (point, score or None), sorted by index; rows of equal index keep their order.

    Columns, each read-only and as long as the history: ``n`` (int64, -1 = no index: attached results and plain
    pairs), ``score`` (float64, nan = none or not finite; all nan with several goals), ``state`` (int8, a code into
    ``STATES``), ``step`` (int64, -1 = none), ``scores`` (float64, one column for each goal) and ``excess`` (float64).
    """

    __slots__ = ("_depth", "_excess", "_length", "_make", "_points", "_scores", "n", "score", "state", "step")
    _depth: int  # sums that wait inside one another
    _length: int
    _make: Callable[[], History] | None  # puts it together; None = that is done
    _points: Sequence[Point]
    _scores: NDArray[np.float64] | None  # of several goals; None = one goal, and score has it
    _excess: NDArray[np.float64] | None  # None = nan everywhere
    n: NDArray[np.int64]
    score: NDArray[np.float64]
    state: NDArray[np.int8]
    step: NDArray[np.int64]

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        given: list[Any] = rows if isinstance(rows, list) else list(rows)
        kept: list[tuple[Any, ...]]
        limited = False
        try:
            kept = [
                (-1 if n is None else n, _score(score), _code(state), -1 if step is None else step, point)
                for n, point, score, state, step in given
            ]
        except ValueError:  # one has an excess, or is wrong and will say so again
            limited = True
            kept = [
                (-1 if n is None else n, _score(score), _code(state), -1 if step is None else step, point, *more)
                for n, point, score, state, step, *more in given
            ]
        kept.sort(key=lambda row: row[0])
        excess = [row[5] if len(row) > 5 else None for row in kept] if limited else []
        score, scores = _as_columns([row[1] for row in kept])
        self._adopt(
            np.array([row[0] for row in kept], np.int64),
            score,
            np.array([row[2] for row in kept], np.int8),
            np.array([row[3] for row in kept], np.int64),
            [row[4] for row in kept],
            scores,
            None if all(each is None for each in excess) else np.array(excess, np.float64),  # None becomes nan
        )

    def _adopt(
        self, n: Any, score: Any, state: Any, step: Any, points: Sequence[Point], scores: Any = None, excess: Any = None
    ) -> None:
        if scores is not None:  # what has one score in a history of several has none
            score = np.full(len(points), np.nan)
        for name, column in (
            ("n", n), ("score", score), ("state", state), ("step", step), ("_scores", scores), ("_excess", excess)
        ):  # fmt: skip
            if column is not None:
                column.flags.writeable = False
            object.__setattr__(self, name, column)
        object.__setattr__(self, "_points", points)
        object.__setattr__(self, "_length", len(points))
        object.__setattr__(self, "_depth", 0)
        object.__setattr__(self, "_make", None)

    def __getattr__(self, name: str) -> Any:
        """Only called for what is not there yet."""
        make = self._make if name in _COLUMNS else None
        if make is not None:  # else another thread was faster
            made = make()
            for column in _COLUMNS:
                object.__setattr__(self, column, getattr(made, column))
            object.__setattr__(self, "_make", None)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a history does not change: make another one")

    @classmethod
    def of(cls, rows: Iterable[Row]) -> History:
        """A history of rows (n, point, score, state, step) or (..., step, excess), in any order."""
        rows = list(rows)
        return cls(rows) if rows else _NOTHING

    @classmethod
    def later(cls, length: int, make: Callable[[], History]) -> History:
        """A history of so many rows, put together by ``make`` when somebody looks into it: always the same one."""
        history = cls.__new__(cls)
        object.__setattr__(history, "_length", length)
        object.__setattr__(history, "_depth", 0)
        object.__setattr__(history, "_make", make)
        return history

    @classmethod
    def columns(
        cls,
        n: NDArray[np.int64],
        score: NDArray[np.float64],
        state: NDArray[np.int8],
        step: NDArray[np.int64],
        points: Sequence[Point],
        scores: NDArray[np.float64] | None = None,
        excess: NDArray[np.float64] | None = None,
    ) -> History:
        """A history of columns that are sorted by n already; they and the points are taken over, not copied.

        ``scores``: shape (length, goals), for several goals only; ``score`` counts for nothing then.
        """
        history = cls.__new__(cls)
        history._adopt(n, score, state, step, points, scores, excess)
        return history

    @classmethod
    def coerce(cls, history: Iterable[Pair] | History) -> History:
        """``history`` itself, or one of plain (point, score) pairs: None is running, nan or infinite failed.

        A tuple or list of two or more is the scores of several goals.
        """
        if isinstance(history, History):
            return history
        try:
            pairs = [(point, score, _score(score)) for point, score in history]
        except (TypeError, ValueError):
            raise UsageError("a history is a History or a list of (point, score or None) pairs") from None
        return cls((-1, point, score, _state(given, score), None) for point, given, score in pairs)

    @property
    def points(self) -> tuple[Point, ...]:
        """The points alone."""
        return tuple(self._points)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Shape (length, goals), nan = none; read-only. With one goal a view of ``score``."""
        return self.score[:, None] if self._scores is None else self._scores

    @property
    def excess(self) -> NDArray[np.float64]:
        """How far each row is from keeping its constraints, read-only. nan = it reported none; above 0: the sum of the
        values above 0; otherwise, all being kept, the largest value."""
        return np.broadcast_to(np.nan, (self._length,)) if self._excess is None else self._excess

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Pair: ...
    @overload
    def __getitem__(self, at: slice) -> History: ...
    def __getitem__(self, at: int | slice) -> Pair | History:
        if not isinstance(at, slice):
            return self._points[at], _score(
                self.score[at] if self._scores is None else tuple(self._scores[at].tolist())
            )
        if at.step is not None and at.step < 0:
            raise UsageError("a history is sorted by index: reverse the list of it instead")
        more = (None if column is None else column[at] for column in (self._scores, self._excess))
        return self.columns(self.n[at], self.score[at], self.state[at], self.step[at], self._points[at], *more)

    def __iter__(self) -> Iterator[Pair]:
        if self._scores is not None:
            return zip(self._points, map(_score, map(tuple, self._scores.tolist())), strict=True)
        return zip(self._points, (None if score != score else score for score in self.score.tolist()), strict=True)

    def __add__(self, other: Iterable[Pair]) -> History:
        """Both together, sorted by index; ours first among equals."""
        theirs = History.coerce(other)
        if not len(theirs):
            return self
        if not len(self):
            return theirs
        depth = 1 + max(_waiting(self), _waiting(theirs))
        if depth == 0 or depth > _DEEPEST:  # nothing waits, or too many to be put together one inside the other
            return self._joined(theirs)
        joined = History.later(len(self) + len(theirs), lambda: self._joined(theirs))
        object.__setattr__(joined, "_depth", depth)
        return joined

    def _joined(self, theirs: History) -> History:
        n = np.concatenate([self.n, theirs.n])
        columns = [np.concatenate([getattr(self, name), getattr(theirs, name)]) for name in ("score", "state", "step")]
        more = [_both_scores(self, theirs), _both_excess(self, theirs)]
        points = [*self._points, *theirs._points]
        if self.n[-1] > theirs.n[0]:
            order = np.argsort(n, kind="stable")
            n, columns = n[order], [column[order] for column in columns]
            more = [None if column is None else column[order] for column in more]
            points = [points[i] for i in order.tolist()]
        return self.columns(n, columns[0], columns[1], columns[2], points, *more)

    def __radd__(self, other: Iterable[Pair]) -> History:
        return History.coerce(other) + self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return (
            np.array_equal(self.n, other.n)
            and np.array_equal(self.score, other.score, equal_nan=True)
            and np.array_equal(self.state, other.state)
            and np.array_equal(self.step, other.step)
            and np.array_equal(self.scores, other.scores, equal_nan=True)
            and np.array_equal(self.excess, other.excess, equal_nan=True)
            and list(self._points) == list(other._points)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.n, self.score, self.state, self.step, list(self._points), self._scores, self._excess)

    def __repr__(self) -> str:
        return f"<History of {len(self)}, {int(np.count_nonzero(~np.isnan(self.scores).any(axis=1)))} with a score>"


_DEEPEST = 32


def _waiting(history: History) -> int:
    """How many sums wait inside one another in it; -1 if it is put together."""
    return -1 if history._make is None else history._depth


def _unpickle(*columns: Any) -> History:
    return History.columns(*columns)


def _score(score: Any) -> Score | None:
    """As a history has it; of several, one that is missing or not finite means that there is none."""
    if type(score) is float:
        return score if math.isfinite(score) else None
    if score is None:
        return None
    if isinstance(score, tuple | list):
        if len(score) < 2:
            raise TypeError("a tuple of scores has two at least")
        numbers = tuple(map(float, score))
        return numbers if all(map(math.isfinite, numbers)) else None
    number = float(score)
    return number if math.isfinite(number) else None


def _as_columns(scores: list[Score | None]) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The column of scores, and a column for each goal if there are several, nan where there is none."""
    try:
        column = np.array(scores, np.float64)  # None becomes nan
        if column.ndim == 1:
            return column, None
    except (TypeError, ValueError):
        pass  # tuples, and others beside them
    rows = [score if isinstance(score, tuple) else () for score in scores]
    goals = max(map(len, rows))
    # one number too many in one row must not cost the others theirs
    table = np.array([row + (math.nan,) * (goals - len(row)) for row in rows])
    return np.full(len(rows), math.nan), table


def _both_scores(ours: History, theirs: History) -> NDArray[np.float64] | None:
    if ours._scores is None and theirs._scores is None:
        return None
    tables = ours.scores, theirs.scores
    goals = max(table.shape[1] for table in tables)
    return np.concatenate(
        [np.pad(table, ((0, 0), (0, goals - table.shape[1])), constant_values=np.nan) for table in tables]
    )


def _both_excess(ours: History, theirs: History) -> NDArray[np.float64] | None:
    if ours._excess is None and theirs._excess is None:
        return None
    return np.concatenate([ours.excess, theirs.excess])


def _state(given: Any, score: Score | None) -> str:
    return "running" if given is None else "failed" if score is None else "done"


def _code(state: str) -> int:
    try:
        return _CODES[state]
    except (KeyError, TypeError):
        raise UsageError(f"state {state!r} is none of {', '.join(STATES)}") from None


_NOTHING = History()
