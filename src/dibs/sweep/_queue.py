"""Queue files: one cell per line, ``<cfg> <task> [epochs]``. Pure: text in, rows out.

Lines are physical lines, counted from 1, whatever is on them, so that a place in the file stays a place. A comment is a
whole line whose first mark is ``#``; anywhere else ``#`` belongs to its word, because a config may be called like that.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dibs.errors import UsageError

from ._models import Cell, Value

__all__ = ["Roster", "Row", "is_comment", "lines_of", "read_queue", "refused", "whole_epochs", "written"]

_EPOCHS = re.compile(r"[0-9]{1,9}")
_BETWEEN = " \t"
_PLAIN = re.compile(r"[^\s'\"\\#]+")
_COLUMNS = ("cfg", "task", "epochs")


@dataclass(frozen=True)
class Row:
    """One cell as a file has it. ``line``: its first physical line; ``name`` and ``cost``: what columns of that name say."""

    line: int
    fields: Mapping[str, Value]
    name: str | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Roster:
    """One file. ``source``: as it was given; ``lines``: all of them; ``defaults``: what else it says (a TOML roster)."""

    source: str
    lines: tuple[str, ...]
    rows: tuple[Row, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)


def lines_of(text: str) -> tuple[str, ...]:
    """The physical lines without their ends (LF or CRLF); an end after the last one begins no further line."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":
        lines.pop()
    return tuple(line.removesuffix("\r") for line in lines)


def is_comment(line: str) -> bool:
    """Whether the whole line is one."""
    return line.lstrip(_BETWEEN).startswith("#")


def read_queue(source: str, lines: Sequence[str], epochs: int | None = None) -> tuple[Row, ...]:
    """The cells of a queue file. ``epochs``: where a line has none.

    Raises UsageError: the file, the line, what is wrong with it and what to write.
    """
    rows, wrong = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip(_BETWEEN) or is_comment(line):
            continue
        try:
            rows.append(Row(number, _fields(line, epochs)))
        except ValueError as why:
            wrong.append((number, str(why)))
    if wrong:
        raise refused(source, wrong)
    return tuple(rows)


def refused(source: str, wrong: Sequence[tuple[int, str]]) -> UsageError:
    """The error for a file of which these lines are wrong."""
    (line, why), more = wrong[0], len(wrong) - 1
    others = f" (and {more} more wrong {'line' if more == 1 else 'lines'})" if more else ""
    return UsageError(f"{source}:{line}: {why}{others}")


def whole_epochs(value: object) -> int:
    """Epochs as a whole number of at least 1. ValueError says what is wrong."""
    if isinstance(value, str) and _EPOCHS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"epochs must be a whole number of at least 1, not {value!r:.80}")
    return value


def written(cells: Iterable[Cell]) -> str | None:
    """The cells as a queue file; None if its three columns cannot say them."""
    lines = []
    for cell in cells:
        words = [str(cell.fields.get(name, "")) for name in _COLUMNS if name in cell.fields]
        if not {"cfg", "task"} <= cell.fields.keys() <= set(_COLUMNS) or any("\n" in word for word in words):
            return None
        lines.append(" ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words))
    return "".join(f"{line}\n" for line in lines)


def _fields(line: str, epochs: int | None) -> dict[str, Value]:
    if "\0" in line:
        raise ValueError("there is a zero byte: this is no text file")
    try:
        words = shlex.split(line)
    except ValueError as wrong:
        raise ValueError(f"{wrong}: quotes come in pairs, and a backslash says that the next mark is meant") from None
    if len(words) < 2:
        raise ValueError(
            f"{line.strip()!r:.80} is one word: write <cfg> <task> [epochs], quotes around a blank in a path"
        )
    if len(words) > 3:
        cure = "a comment has a line of its own" if any(word.startswith("#") for word in words) else (
            "write <cfg> <task> [epochs], quotes around a blank in a path"
        )  # fmt: skip
        raise ValueError(f"{line.strip()!r:.80} has {len(words)} words: {cure}")
    if not words[0] or not words[1]:
        raise ValueError(f"{line.strip()!r:.80} has an empty word: write <cfg> <task> [epochs]")
    found: dict[str, Value] = {"cfg": words[0], "task": words[1]}
    given = whole_epochs(words[2]) if len(words) == 3 else epochs
    return found if given is None else {**found, "epochs": given}
