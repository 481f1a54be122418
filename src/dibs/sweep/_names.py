"""What a cell is called: its folder's name on every file system, the tracker's run, the word one types. Pure.

A template of the row's columns and ``{stem}``, the config's name without folder and last ending.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import PurePosixPath

from dibs.cell._environ import text_of  # not of the package, which reaches the machine
from dibs.cell._template import Template, parse
from dibs.errors import UsageError

from ._models import Value
from ._queue import Row

__all__ = ["MOST_BYTES", "check_apart", "check_name", "name_of", "naming_of"]

MOST_BYTES = 100
_LEGAL = re.compile(r"[A-Za-z0-9._-]+")
_DEVICE = re.compile(r"(con|nul|aux|prn|com[0-9]|lpt[0-9])(\..*)?", re.I)
_TRIED = 3  # columns in a template that is proposed


def naming_of(text: str) -> Template:
    """The template of names. Raises UsageError for a lone brace, and for one that calls all cells the same."""
    template = parse(text)
    if not template.names:
        raise UsageError(
            f"--name {text!r:.80} calls every cell the same: put a column into it, such as '{{task}}-{{stem}}'"
        )
    return template


def name_of(row: Row, naming: Template) -> str:
    """The name of a row's cell. ValueError says what is wrong with it and what to do."""
    if row.name is not None:
        return check_name(row.name, "the column name")
    fields = _fields(row)
    missing = next((name for name in naming.names if name not in fields), None)
    if missing == "stem":
        fit = [f"{{{column}}}" for column, text in fields.items() if _LEGAL.fullmatch(text)][:2]
        raise ValueError(
            "there is no cfg that the cell could be called after: give the config's column that name, add a column name, or say "
            f"--name with a template of columns, such as '{'-'.join(fit or ['{column}'])}'"
        )
    if missing is not None:
        there = ", ".join(f"{{{name}}}" for name in sorted(fields))
        raise ValueError(f"{{{missing}}} of --name {naming.text!r:.80} has no value here; there is {there}")
    return check_name(naming.fill(fields) or "", f"--name {naming.text!r:.80}")


def check_name(name: str, by: str = "") -> str:
    """The name, if it can be a folder anywhere. ValueError says why not, and ``by`` what made it."""
    whence = f" (from {by})" if by else ""
    if not _LEGAL.fullmatch(name):
        odd = next((char for char in name if not _LEGAL.fullmatch(char)), "")
        what = f"there is {odd!r} in it" if odd else "it is empty"
        raise ValueError(
            f"{name!r:.120} cannot be the name of a cell{whence}, {what}: letters, digits and . _ - can; say another --name"
        )
    if len(name) > MOST_BYTES:
        raise ValueError(
            f"{name[:40]!r}... cannot be the name of a cell{whence}: it has {len(name)} bytes, over {MOST_BYTES}"
        )
    if name.startswith((".", "-")) or name.endswith("."):
        raise ValueError(f"{name!r} cannot be the name of a cell{whence}: it begins with . or -, or ends with a dot")
    if _DEVICE.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of a cell{whence}: Windows keeps that name for a device")
    return name


def check_apart(named: Iterable[tuple[str, str, Row | None]], naming: Template) -> None:
    """UsageError if two of (name, place, row) are called the same, capitals aside; a row of None is a cell of before."""
    seen: dict[str, tuple[str, str, Row | None]] = {}
    whole = list(named)
    for each in whole:
        name, place, row = each
        other = seen.setdefault(name.lower(), each)
        if other is each:
            continue
        one = f"both are {name!r}" if other[0] == name else f"{other[0]!r} and {name!r} are one name but for capitals"
        raise UsageError(f"{other[1]} and {place}: {one}; {_cure(row, other[2], whole, naming)}")


def _cure(row: Row | None, other: Row | None, named: Sequence[tuple[str, str, Row | None]], naming: Template) -> str:
    if row is None or other is None:
        return (
            "that cell is in the sweep already: uncomment its line, if it is a comment now, or give the new one a name of its own, "
            "by that of its config or a column name"
        )
    if row.name is not None or other.name is not None:
        return "give one of them another name in the column name"
    if row.fields == other.fields:
        return "they say the same: remove one of them"
    rows = [each for _, _, each in named if each is not None]
    columns = sorted({column for each in rows for column in _fields(each)} - {"cfg", *naming.names}, key=_rank)
    for count in range(1, _TRIED + 1):
        for more in combinations(columns, count):
            words = "-".join(f"{{{column}}}" for column in more)
            template = parse(f"{words}-{naming.text}" if count == 1 else f"{words}-{{stem}}")
            if _tells_apart(template, rows):
                return f"tell them apart with --name '{template.text}'"
    return f"tell them apart with --name and a template of columns, such as '{{task}}-{naming.text}'"


def _rank(column: str) -> tuple[int, str]:
    return (("task", "epochs").index(column) if column in ("task", "epochs") else 2, column)


def _tells_apart(template: Template, rows: Sequence[Row]) -> bool:
    try:
        names = [name_of(row, template).lower() for row in rows]
    except ValueError:
        return False
    return len(set(names)) == len(names)


def _fields(row: Row) -> dict[str, str]:
    """What a template of names may name."""
    fields = {name: text_of(value) for name, value in row.fields.items()}
    cfg: Value = row.fields.get("cfg")
    return fields | ({"stem": PurePosixPath(cfg).stem} if isinstance(cfg, str) else {})
