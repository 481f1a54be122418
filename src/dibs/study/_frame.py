"""Results as a table for pandas or polars, whichever is there: one row per trial, one column per field and parameter."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from dibs.errors import UsageError

from ._results import TrialResult

__all__ = ["columns_of", "frame_of"]

_LIBRARIES = ("pandas", "polars")


def columns_of(results: Sequence[TrialResult], names: Sequence[str] = (), goals: int = 1) -> dict[str, list[Any]]:
    """The table's columns, in order; ``names``: the parameters, whether a trial has them or not. Pure.

    A parameter that is not in a point is None, and a tuple is the text it is written as. With several goals each score
    is a column, ``score.0`` the first; constraints are columns where any trial reported them.
    """
    found = list(dict.fromkeys([*names, *sorted({name for result in results for name in result.point})]))
    table: dict[str, list[Any]] = {
        "n": [result.n for result in results],
        "attempt": [result.attempt for result in results],
        "state": [result.state for result in results],
    }
    if goals == 1:
        table["score"] = [result.score for result in results]
    for at in range(goals) if goals > 1 else ():
        table[f"score.{at}"] = [result.scores[at] if len(result.scores) == goals else None for result in results]
    for name in sorted({name for result in results for name in result.constraints or ()}):
        table[f"constraint.{name}"] = [(result.constraints or {}).get(name) for result in results]
    for name in found:
        table[f"point.{name}"] = [_cell(result.point.get(name)) for result in results]
    table["me"] = [result.who.me for result in results]
    table["host"] = [result.who.host for result in results]
    table["started"] = [result.started for result in results]
    table["took_s"] = [result.took for result in results]
    table["reason"] = [_writable(result.reason) for result in results]
    return table


def frame_of(columns: dict[str, list[Any]]) -> Any:
    """The columns as a pandas DataFrame, else a polars one. Raises UsageError if neither is installed."""
    for library in _LIBRARIES:
        try:
            module = import_module(library)
        except ImportError:
            continue
        if library == "pandas":
            return module.DataFrame({name: _series(module, name, column) for name, column in columns.items()})
        return module.DataFrame(
            {name: column if not _mixed(column) else list(map(_text, column)) for name, column in columns.items()}
        )
    raise UsageError("study.frame() needs pandas or polars, and neither is installed: pip install pandas (or polars)")


def _series(pandas: Any, name: str, column: list[Any]) -> Any:
    """Values keep their types: what is not a column of one kind stays a column of objects, and None is no NaN there."""
    if _mixed(column) or (None in column and not any(isinstance(value, float) for value in column)):
        return pandas.Series(column, dtype=object, name=name)
    return pandas.Series(column, name=name)


def _mixed(column: list[Any]) -> bool:
    return len({type(value) for value in column if value is not None}) > 1


def _cell(value: Any) -> Any:
    return repr(value) if isinstance(value, tuple) else value


def _writable(text: str | None) -> str | None:
    """Half a surrogate pair, as an exception may hold it, is what neither polars nor a file takes."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _text(value: Any) -> str | None:
    return None if value is None else repr(value)
