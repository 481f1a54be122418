"""What samplers see of a study: points with their scores, sorted by index.

A History is a sequence of (point, score or None) pairs with the numbers beside it as numpy columns.
It never changes; the points are shared, not copied, so nobody may write into them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

_CODES = {name: code for code, name in enumerate(STATES)}


class History(Sequence[Pair]):
    """An immutable sequence of (point, score or None), sorted by index; rows of equal index keep their order.

    Columns, each read-only and as long as the history: ``n`` (int64, -1 = no index: attached results and plain
    pairs), ``score`` (float64, nan = none or not finite), ``state`` (int8, a code into ``STATES``), ``step`` (int64, -1 = none).
    """

    __slots__ = ("_columns", "_points", "_rows")
    _rows: tuple[tuple[int, float | None, int, int], ...]
    _points: tuple[Point, ...]
    _columns: dict[str, NDArray[Any]]

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        kept = [
            (-1 if n is None else n, _score(score), _code(state), -1 if step is None else step, point)
            for n, point, score, state, step in rows
        ]
        kept.sort(key=lambda row: row[0])
        self._adopt(tuple(row[:4] for row in kept), tuple(row[4] for row in kept))

    def _adopt(self, rows: tuple[tuple[int, float | None, int, int], ...], points: tuple[Point, ...]) -> None:
        self._rows, self._points, self._columns = rows, points, {}

    @classmethod
    def _made(cls, rows: tuple[tuple[int, float | None, int, int], ...], points: tuple[Point, ...]) -> History:
        history = cls.__new__(cls)
        history._adopt(rows, points)
        return history

    @classmethod
    def of(cls, rows: Iterable[Row]) -> History:
        """A history of rows (n, point, score, state, step), in any order."""
        return cls(rows)

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
    def n(self) -> NDArray[np.int64]:
        return self._column("n", 0, np.int64)

    @property
    def score(self) -> NDArray[np.float64]:
        return self._column("score", 1, np.float64)

    @property
    def state(self) -> NDArray[np.int8]:
        return self._column("state", 2, np.int8)

    @property
    def step(self) -> NDArray[np.int64]:
        return self._column("step", 3, np.int64)

    @property
    def points(self) -> tuple[Point, ...]:
        """The points alone."""
        return self._points

    def _column(self, name: str, at: int, dtype: Any) -> NDArray[Any]:
        column = self._columns.get(name)
        if column is None:
            column = np.array([row[at] for row in self._rows], dtype=dtype)  # None becomes nan
            column.flags.writeable = False
            self._columns[name] = column
        return column

    def __len__(self) -> int:
        return len(self._points)

    @overload
    def __getitem__(self, at: int) -> Pair: ...
    @overload
    def __getitem__(self, at: slice) -> History: ...
    def __getitem__(self, at: int | slice) -> Pair | History:
        if not isinstance(at, slice):
            return self._points[at], self._rows[at][1]
        if at.step is not None and at.step < 0:
            raise UsageError("a history is sorted by index: reverse the list of it instead")
        return self._made(self._rows[at], self._points[at])

    def __iter__(self) -> Iterator[Pair]:
        return zip(self._points, (row[1] for row in self._rows), strict=True)

    def __add__(self, other: Iterable[Pair]) -> History:
        """Both together, sorted by index; ours first among equals."""
        theirs = History.coerce(other)
        rows, points = self._rows + theirs._rows, self._points + theirs._points
        if not self._rows or not theirs._rows or self._rows[-1][0] <= theirs._rows[0][0]:
            return self._made(rows, points)
        order = sorted(range(len(rows)), key=lambda i: rows[i][0])
        return self._made(tuple(rows[i] for i in order), tuple(points[i] for i in order))

    def __radd__(self, other: Iterable[Pair]) -> History:
        return History.coerce(other) + self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self._rows == other._rows and self._points == other._points

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        scored = sum(row[1] is not None for row in self._rows)
        return f"<History of {len(self)}, {scored} with a score>"


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
