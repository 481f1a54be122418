"""Which cells a run takes: those of one file, from one of its physical lines on. Names decide, a place never does."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dibs.errors import UsageError

from ._configs import source_path
from ._models import Cell, Plan
from ._shares import cells_named

__all__ = ["Only", "selected"]


@dataclass(frozen=True)
class Only:
    """The cells of these names, and those of one of the plan's files that stand after a line, appended ones, too.

    ``first``: the cell that comes first in the file then, for people. ``order``: the names as the file has them, where it
    is none of the plan's: whoever hands out such a file has thought of its order.
    """

    names: frozenset[str]
    source: str | None = None
    after: int = 0
    first: str | None = None
    order: tuple[str, ...] = ()

    def takes(self, cell: Cell) -> bool:
        return cell.name in self.names or (cell.source == self.source and cell.line > self.after)


def selected(plan: Plan, queue: str | None, start: int = 0, here: str | os.PathLike[str] = ".") -> Only | None:
    """What ``queue`` (None: the plan's one file) names after its first ``start`` physical lines; None for all cells.

    A file of the plan's need not be on this host. Raises UsageError for one that names no cell of the plan.
    """
    if queue is None and not start:
        return None
    if queue is None and len(plan.sources) != 1:
        raise UsageError(
            f"the sweep has {len(plan.sources)} queue files ({', '.join(plan.sources)}): say which, --queue FILE"
        )
    file = queue if queue is not None else next(iter(plan.sources))
    source = _source(plan, file, here)
    cells = (
        cells_named(plan, file, Path(here))
        if source is None
        else [(c.line, c) for c in plan.active if c.source == source]
    )
    left = sorted(((line, cell.name) for line, cell in cells if line > start), key=lambda each: each[0])
    if not left:
        after = f" after its first {start} lines" if start else ""
        raise UsageError(f"{file} names no cell{after}: there is nothing of it to run")
    if source is not None:
        return Only(frozenset(), source, start, left[0][1])
    names = tuple(name for _, name in left)
    return Only(frozenset(names), first=names[0], order=names)


def _source(plan: Plan, queue: str, here: str | os.PathLike[str]) -> str | None:
    """The plan's name for the file."""
    if queue in plan.sources:
        return queue
    path = Path(os.path.abspath(Path(here) / queue))  # noqa: PTH100 - links stay what they are called
    return next((source for source in plan.sources if source_path(plan.task.here, source) == path), None)
