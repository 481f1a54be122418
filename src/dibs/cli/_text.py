"""Text for terminals, pipes and spreadsheets. Nothing from a record reaches a terminal raw.

Names, points and reasons were written by others: control characters are shown as ``\\x1b``, never obeyed.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category

__all__ = ["csv_text", "escaped", "json_text", "out", "place_of", "safe", "study_at", "table"]

_HARMLESS = "\u200d\ufe0f"  # they join emoji
_BETWEEN = 3  # columns between two of a table that is drawn
_LEAST = 6  # columns that a text keeps
_UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")


def escaped(text: str, keep: str = "") -> str:
    """The text with control, format and line-separator characters as escapes, except those in ``keep``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in keep or c in _HARMLESS or category(c) not in _UNSAFE else c.encode("unicode_escape").decode()
        for c in text
    )


def safe(value: Any, most: int | None = None) -> str:
    """One field: everything on one line, nothing that a terminal would obey, cut to ``most`` characters."""
    text = escaped(str(value))
    return text if most is None or len(text) <= most else text[: most - 3] + "..."


def out(text: str = "", *, err: bool = False) -> None:
    """Print whole lines: answers to stdout, everything else to stderr. The last net: only newlines pass."""
    stream = sys.stderr if err else sys.stdout
    stream.write(escaped(text.rstrip("\n"), keep="\n\t") + "\n")


def place_of(store: str, sweep: str) -> str:
    """The options by which a command that is shown finds the sweep from anywhere."""
    return safe(f"--store {shlex.quote(store)} --name {shlex.quote(sweep)}")


def study_at(store: str, study: str) -> str:
    """The options by which a command that is shown finds the study from anywhere."""
    return safe(f"--store {shlex.quote(store)} --study {shlex.quote(study)}")


def json_text(obj: Any) -> str:
    """JSON in ASCII, so that no terminal finds anything to obey in it."""
    return json.dumps(obj, indent=2, allow_nan=False)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """RFC 4180 with plain newlines."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Iterable[int] = (), indent: int = 0) -> None:
    """Print a table: drawn by rich on a terminal, aligned text elsewhere. ``right``: columns that are numbers."""
    cells = [[safe(cell) for cell in row] for row in rows]
    numbers = set(right)
    if sys.stdout.isatty():
        _drawn(header, cells, numbers, indent)
        return
    lines = [list(header), *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        fields = [
            cell.rjust(width) if at in numbers else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        out(" " * indent + "  ".join(fields).rstrip())


def _drawn(header: Sequence[str], cells: list[list[str]], numbers: set[int], indent: int) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    console = Console(file=sys.stdout, highlight=False)
    longest = [max(map(cell_len, column), default=0) for column in zip(*cells, strict=True)] or [0] * len(header)
    heads = [*map(cell_len, header)]
    spare = console.width - indent - _BETWEEN * (len(header) - 1)
    tight = sum(map(max, longest, heads)) > spare
    # half a number is another number: texts are folded, and what is still too wide is left to the terminal
    widths = [
        max(longest[at], min(heads[at], _LEAST)) if tight and at in numbers else None for at in range(len(header))
    ]
    needed = sum(min(_LEAST, longest[at]) if width is None else width for at, width in enumerate(widths))
    console.width += max(0, needed - spare) if tight else 0
    for at, name in enumerate(header):
        drawn.add_column(
            Text(name), justify="right" if at in numbers else "left", overflow="fold", width=widths[at]
        )  # fmt: skip
    for row in cells:
        drawn.add_row(*map(Text, row))  # Text: what looks like markup in a name is not markup
    sys.stdout.flush()
    console.print(Padding(drawn, (0, 0, 0, indent)))
