"""What samplers see of a study: points with their scores, sorted by index.

A History is a sequence of (point, score or None) pairs with the numbers beside it as numpy columns.
It never changes; the points are shared, not copied, so nobody may write into them. The surprising part: one may be
put together only when somebody looks into it, so that a sampler which needs no history pays for none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from dibs.errors import UsageError

__all__ = ["STATES", "History", "Pair", "Row"]

#: the names behind the codes of the ``state`` column
STATES = ("running", "done", "pruned", "failed", "interrupted")

Point: TypeAlias = Mapping[str, Any]
Pair: TypeAlias = tuple[Point, float | None]
#: (index or -1 if it has none, point, score or None, state's name, last step or None)
Row: TypeAlias = tuple[int, Point, float | None, str, int | None]

_COLUMNS = ("n", "score", "state", "step", "_points")
_CODES = {name: code for code, name in enumerate(STATES)}


class History(Sequence[Pair]):
    """An immutable sequence of (point, score or None), sorted by index; rows of equal index keep their order.

    Columns, each read-only and as long as the history: ``n`` (int64, -1 = no index: attached results and plain
    pairs), ``score`` (float64, nan = none or not finite), ``state`` (int8, a code into ``STATES``), ``step`` (int64, -1 = none).
    """

    __slots__ = ("_depth", "_length", "_make", "_points", "n", "score", "state", "step")
    _depth: int  # sums that wait inside one another
    _length: int
    _make: Callable[[], History] | None  # puts it together; None = that is done
    _points: Sequence[Point]
    n: NDArray[np.int64]
    score: NDArray[np.float64]
    state: NDArray[np.int8]
    step: NDArray[np.int64]

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        kept = [
            (-1 if n is None else n, _score(score), _code(state), -1 if step is None else step, point)
            for n, point, score, state, step in rows
        ]
        kept.sort(key=lambda row: row[0])
        self._adopt(
            np.array([row[0] for row in kept], np.int64),
            np.array([row[1] for row in kept], np.float64),  # None becomes nan
            np.array([row[2] for row in kept], np.int8),
            np.array([row[3] for row in kept], np.int64),
            [row[4] for row in kept],
        )

    def _adopt(self, n: Any, score: Any, state: Any, step: Any, points: Sequence[Point]) -> None:
        for name, column in (("n", n), ("score", score), ("state", state), ("step", step)):
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
        """A history of rows (n, point, score, state, step), in any order."""
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
    ) -> History:
        """A history of columns that are sorted by n already; they and the points are taken over, not copied."""
        history = cls.__new__(cls)
        history._adopt(n, score, state, step, points)
        return history

    @classmethod
    def coerce(cls, history: Iterable[Pair] | History) -> History:
        """``history`` itself, or one of plain (point, score) pairs: None is running, nan or infinite failed."""
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

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Pair: ...
    @overload
    def __getitem__(self, at: slice) -> History: ...
    def __getitem__(self, at: int | slice) -> Pair | History:
        if not isinstance(at, slice):
            return self._points[at], _score(self.score[at])
        if at.step is not None and at.step < 0:
            raise UsageError("a history is sorted by index: reverse the list of it instead")
        return self.columns(self.n[at], self.score[at], self.state[at], self.step[at], self._points[at])

    def __iter__(self) -> Iterator[Pair]:
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
        points = [*self._points, *theirs._points]
        if self.n[-1] > theirs.n[0]:
            order = np.argsort(n, kind="stable")
            n, columns = n[order], [column[order] for column in columns]
            points = [points[i] for i in order.tolist()]
        return self.columns(n, columns[0], columns[1], columns[2], points)

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
            and list(self._points) == list(other._points)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.n, self.score, self.state, self.step, list(self._points))

    def __repr__(self) -> str:
        return f"<History of {len(self)}, {int(np.count_nonzero(~np.isnan(self.score)))} with a score>"


_NOTHING = History()
_DEEPEST = 32


def _waiting(history: History) -> int:
    """How many sums wait inside one another in it; -1 if it is put together."""
    return -1 if history._make is None else history._depth


def _unpickle(*columns: Any) -> History:
    return History.columns(*columns)


def _score(score: Any) -> float | None:
    if score is None:
        return None
    number = float(score)
    return number if math.isfinite(number) else None


def _state(given: Any, score: float | None) -> str:
    return "running" if given is None else "failed" if score is None else "done"


def _code(state: str) -> int:
    try:
        return _CODES[state]
    except (KeyError, TypeError):
        raise UsageError(f"state {state!r} is none of {', '.join(STATES)}") from None
