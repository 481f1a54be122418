"""Rosters with any columns: TOML tables, CSV, YAML. Text in, rows out, each with the physical line it begins on.

A value is text, a number or a truth value; an empty field of a CSV and a null are absent, so that the cell has no such column.
"""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from dibs.errors import UsageError

from ._models import Value
from ._queue import Row, is_comment, refused, whole_epochs

__all__ = ["DEFAULTS", "RESERVED", "header_of", "read_csv", "read_toml", "read_yaml"]

#: what a roster may say besides its cells; the command line wins
DEFAULTS = {
    "command": (str, list), "shell": (bool,), "artifacts": (list,), "epochs": (int,), "naming": (str,), "goal": (str,),
    "out": (str,), "final": (str,), "group": (str,), "freeze": (list,), "time_limit": (str, int, float),
    "memory": (str, int), "checkpoint_size": (str, int), "scratch": (str, int), "isolate": (bool,),
    "writable": (list,), "deny_read": (list,),
}  # fmt: skip
RESERVED = ("out", "previous", "result", "sweep", "here", "attempt", "stem")
_HEADER = re.compile(r"\s*\[\[\s*(cell|\"cell\"|'cell')\s*\]\]\s*(#.*)?")
_COLUMN = re.compile(r"[^\W\d][\w.-]*")


def read_toml(
    source: str, lines: Sequence[str], epochs: int | None = None
) -> tuple[tuple[Row, ...], Mapping[str, Any]]:
    """(rows, defaults) of ``[[cell]]`` tables. Raises UsageError: the file, the line, what is wrong and what to write."""
    try:
        body = tomllib.loads("".join(f"{line}\n" for line in lines))
    except (ValueError, RecursionError) as wrong:
        raise UsageError(f"{source} is not valid TOML: {wrong}") from None
    cells = body.pop("cell", None)
    if not isinstance(cells, list):
        raise UsageError(f"{source} has no cells: write each of them as a table, [[cell]]")
    heads = [number for number, line in enumerate(lines, 1) if _HEADER.fullmatch(line)]
    if len(heads) != len(cells):
        raise UsageError(f"{source}: write each of its {len(cells)} cells as a table of its own, [[cell]] on a line")
    defaults = _defaults(source, body)
    return _rows(source, zip(heads, cells, strict=True), _epochs(epochs, defaults)), defaults


def read_csv(
    source: str, lines: Sequence[str], epochs: int | None = None, delimiter: str = ","
) -> tuple[tuple[Row, ...], Mapping[str, Any]]:
    """(rows, nothing) of a table whose first line names the columns; blank lines and ``#`` lines are none of it."""
    header: list[str] | None = None
    found: list[tuple[int, Mapping[str, Any]]] = []
    wrong: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or is_comment(line):
            continue
        try:
            fields = [field.strip() for field in _fields_of(line, delimiter)]
        except ValueError as why:
            wrong.append((number, str(why)))
            continue
        if header is None:
            header = _header(source, number, fields)
        elif len(fields) != len(header):
            wrong.append(
                (number, f"{len(fields)} fields, and the header has {len(header)}: quotes around a field with a comma")
            )
        else:
            found.append((number, {name: field for name, field in zip(header, fields, strict=True) if field}))
    if wrong:
        raise refused(source, wrong)
    return _rows(source, found, epochs), {}


def header_of(lines: Iterable[str], delimiter: str = ",") -> tuple[str, ...]:
    """The first line of a CSV, which names its columns whether or not any cell has a value there."""
    first = next((line for line in lines if line.strip() and not is_comment(line)), "")
    return tuple(field.strip() for field in _fields_of(first, delimiter)) if first else ()


def read_yaml(
    source: str, lines: Sequence[str], epochs: int | None = None
) -> tuple[tuple[Row, ...], Mapping[str, Any]]:
    """(rows, defaults) of a list of mappings, or of a mapping whose ``cell`` is that list. YAML 1.2; the extra ``yaml``."""
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise UsageError(
            f"{source} needs a YAML parser: pip install 'dibs[yaml]', or write it in TOML or CSV"
        ) from None
    text = "".join(f"{line}\n" for line in lines)
    try:
        body, node = YAML(typ="safe", pure=True).load(text), YAML(typ="safe", pure=True).compose(text)
    except (YAMLError, ValueError, RecursionError) as why:
        raise UsageError(f"{source} is not valid YAML: {' '.join(str(why).split())[:300]}") from None
    defaults: Mapping[str, Any] = {}
    if isinstance(body, dict):
        at = next((value for key, value in node.value if key.value == "cell"), None)
        defaults, body, node = {k: v for k, v in body.items() if k != "cell"}, body.get("cell"), at
    if not isinstance(body, list):
        raise UsageError(
            f"{source} has no cells: write a list of mappings, such as - {{cfg: a.toml, task: t}}, or put one under cell"
        )
    heads = [each.start_mark.line + 1 for each in node.value]
    defaults = _defaults(source, defaults)
    return _rows(source, zip(heads, body, strict=True), _epochs(epochs, defaults)), defaults


def _fields_of(line: str, delimiter: str) -> list[str]:
    if "\0" in line:
        raise ValueError("there is a zero byte: this is no text file")
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as wrong:
        raise ValueError(f"{wrong}: a quoted field must end on its line") from None


def _header(source: str, line: int, names: Sequence[str]) -> list[str]:
    if len(names) == 1 and any(between in names[0] for between in ";|\t,"):
        raise UsageError(
            f"{source}:{line}: {names[0]!r:.80} is one column: there is a comma between two, in a .tsv a tab"
        )
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise UsageError(f"{source}:{line}: two columns are called {twice!r}: rename one")
    for name in names:
        _check_column(source, line, name)
    return list(names)


def _check_column(source: str, line: int, name: object) -> None:
    if not isinstance(name, str) or not _COLUMN.fullmatch(name):
        raise UsageError(f"{source}:{line}: {name!r:.80} cannot be the name of a column: letters, digits and _ . - can")
    if name in RESERVED:
        raise UsageError(
            f"{source}:{line}: a column cannot be called {name!r}, which is something else in a command: rename it"
        )


def _rows(source: str, cells: Iterable[tuple[int, Any]], epochs: int | None) -> tuple[Row, ...]:
    rows, wrong = [], []
    seen: set[int] = set()
    for line, cell in cells:
        if line in seen:  # a cell is its line: of two on one, the plan could keep but one
            wrong.append(
                (line, "two cells begin on this line, or one of them is an alias: give each a line of its own")
            )
        seen.add(line)
        if not isinstance(cell, dict):
            wrong.append((line, f"a cell is a mapping of columns to values, not {cell!r:.80}"))
            continue
        for name in cell:
            _check_column(source, line, name)
        try:
            rows.append(_row(line, {name: value for name, value in cell.items() if value is not None}, epochs))
        except ValueError as why:
            wrong.append((line, str(why)))
    if wrong:
        raise refused(source, wrong)
    return tuple(rows)


def _row(line: int, cell: dict[str, Any], epochs: int | None) -> Row:
    name, cost = cell.pop("name", None), cell.pop("cost", None)
    if not cell:
        raise ValueError("this cell has no columns: give it a cfg and a task, or any others")
    if name is not None and not isinstance(name, str):
        raise ValueError(f"name must be a text, not {name!r:.80}")
    if "epochs" in cell:
        cell["epochs"] = whole_epochs(cell["epochs"])
    elif epochs is not None:
        cell["epochs"] = epochs
    for column, value in cell.items():
        if not isinstance(value, bool | int | float | str) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"{column} must be a text, a finite number or true or false, not {value!r:.80}")
    fields: dict[str, Value] = cell
    return Row(line, fields, name, None if cost is None else _cost(cost))


def _cost(value: object) -> float:
    try:
        cost = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        cost = math.nan
    if not (math.isfinite(cost) and cost > 0):
        raise ValueError(f"cost must be a number above 0, not {value!r:.80}")
    return cost


def _defaults(source: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, value in body.items():
        kinds = DEFAULTS.get(name)
        if kinds is None:
            near = get_close_matches(str(name), DEFAULTS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(sorted(DEFAULTS))}"
            raise UsageError(f"{source}: unknown {name!r:.80} beside the cells; {hint}")
        good = isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
        if not good or (isinstance(value, list) and not (value and all(isinstance(each, str) for each in value))):
            raise UsageError(f"{source}: {name} must be {_kinds_text(kinds)}, not {value!r:.80}")
        if name == "epochs" and value < 1:
            raise UsageError(f"{source}: epochs must be a whole number of at least 1, not {value!r:.80}")
    return body


def _epochs(given: int | None, defaults: Mapping[str, Any]) -> int | None:
    return given if given is not None else defaults.get("epochs")


def _kinds_text(kinds: Iterable[Callable[..., Any]]) -> str:
    words = {str: "a text", list: "a list of texts", bool: "true or false", int: "a whole number", float: "a number"}
    return " or ".join(words[kind] for kind in kinds)  # type: ignore[index]
