"""A roster on disk: which format a name's ending says, whole and as text, or one sentence why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dibs.errors import UsageError

from ._queue import Roster, Row, lines_of, read_queue
from ._rosters import header_of, read_csv, read_toml, read_yaml

__all__ = ["columns_of", "is_queue", "parse_roster", "read_roster", "text_at"]

_MOST_BYTES = 64 << 20
_Reader = Callable[[str, Sequence[str], int | None], tuple[tuple[Row, ...], Mapping[str, Any]]]
_READERS: Mapping[str, _Reader] = {
    ".toml": read_toml, ".csv": read_csv, ".tsv": partial(read_csv, delimiter="\t"), ".yaml": read_yaml, ".yml": read_yaml,
}  # fmt: skip


def read_roster(source: str, path: Path, epochs: int | None = None) -> Roster:
    """The cells of a file: TOML, CSV or YAML by its ending, a queue otherwise. ``source``: as it was given.

    Raises UsageError naming the file, and the line if there is one to blame.
    """
    return parse_roster(source, lines_of(text_at(source, path)), epochs)


def is_queue(source: str) -> bool:
    """Whether a file of that name is read as a queue."""
    return Path(source).suffix.lower() not in _READERS


def columns_of(source: str, lines: Sequence[str]) -> tuple[str, ...]:
    """The columns that a CSV or TSV names, although no cell may have a value there. Of lines that were read as a roster."""
    delimiter = {".csv": ",", ".tsv": "\t"}.get(Path(source).suffix.lower())
    named = header_of(lines, delimiter) if delimiter else ()
    return tuple(name for name in named if name not in ("name", "cost"))


def parse_roster(source: str, lines: tuple[str, ...], epochs: int | None = None) -> Roster:
    """The same of lines that were read."""
    reader = _READERS.get(Path(source).suffix.lower())
    if reader is None:
        return Roster(source, lines, read_queue(source, lines, epochs))
    rows, defaults = reader(source, lines, epochs)
    return Roster(source, lines, rows, defaults)


def text_at(source: str, path: Path) -> str:
    """A file as text. Raises UsageError."""
    try:
        if path.is_dir():
            raise UsageError(f"{source} is a folder: give the queue file itself")
        if path.exists() and not path.is_file():
            raise UsageError(f"{source} is no file that could be read again: write the list of cells to one")
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{source} has {path.stat().st_size >> 20} MiB: that is no list of cells")
        return path.read_bytes().decode()
    except UsageError:
        raise
    except UnicodeDecodeError as wrong:
        raise UsageError(
            f"{source} is not UTF-8 text (byte {wrong.start}): give the list of cells, not a file it names"
        ) from None
    except (OSError, ValueError) as wrong:
        said = wrong.strerror if isinstance(wrong, OSError) else wrong
        raise UsageError(f"the queue file {source} cannot be read: {said or wrong}") from None
