"""Queue files of single hosts: an assignment written out, and a queue file read as a choice of a plan's cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from dibs.cell import parse, text_of
from dibs.errors import StoreError, UsageError

from ._balance import Assignment
from ._configs import source_path
from ._models import Cell, Plan
from ._names import name_of
from ._queue import Row, refused, written
from ._rosterfile import read_roster

__all__ = ["cells_named", "write_shares"]


def write_shares(plan: Plan, assignment: Assignment, folder: Path) -> list[Path]:
    """One file for each host, its cells in the order it should run them: a queue, or a CSV where three columns do not do.

    Raises UsageError for a file that the sweep itself was planned from, StoreError where it cannot be written.
    """
    ours = {source_path(plan.task.here, source) for source in plan.sources}
    texts = {}
    for share in assignment.shares:
        text = written(share.cells) if _named_alike(plan, share.cells) else None
        path = folder.absolute() / f"{share.host}.{'queue' if text is not None else 'csv'}"
        if path in ours:
            raise UsageError(f"{path} is a file this sweep was planned from: write the queues to another folder")
        texts[path] = text if text is not None else _csv(share.cells)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            part = path.with_name(f".{path.name}.part")
            part.write_text(text, encoding="utf-8")
            part.replace(path)
    except OSError as wrong:
        raise StoreError(f"the queues cannot be written to {folder}: {wrong.strerror or wrong}") from wrong
    return list(texts)


def cells_named(plan: Plan, source: str, here: Path) -> list[tuple[int, Cell]]:
    """(physical line, cell) of a queue file, be it one of the plan's or one that names some of its cells.

    ``here``: the folder that ``source`` was given in. Raises UsageError for a line that is no cell of the plan.
    """
    path = source_path(str(here), source)
    for known in plan.sources:
        if source_path(plan.task.here, known) == path:
            return [(cell.line, cell) for cell in plan.active if cell.source == known]
    naming, found, wrong = parse(plan.naming), [], []
    for row in read_roster(source, path, plan.epochs).rows:
        try:
            cell = plan.named(name_of(row, naming))
        except ValueError as why:
            wrong.append((row.line, str(why)))
            continue
        if cell is None:
            wrong.append((row.line, f"the sweep {plan.sweep} has no cell {name_of(row, naming)!r}: plan it first"))
        else:
            found.append((row.line, cell))
    if wrong:
        raise refused(source, wrong)
    return found


def _named_alike(plan: Plan, cells: Sequence[Cell]) -> bool:
    """Whether the plan's template makes their names, so that a queue need not say them."""
    naming = parse(plan.naming)
    try:
        return all(name_of(Row(cell.line, cell.fields), naming) == cell.name for cell in cells)
    except ValueError:
        return False


def _csv(cells: Sequence[Cell]) -> str:
    columns = list(dict.fromkeys(column for cell in cells for column in cell.fields))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["name", *columns])
    for cell in cells:
        rows.writerow([cell.name, *(text_of(cell.fields[name]) if name in cell.fields else "" for name in columns)])
    return text.getvalue()
