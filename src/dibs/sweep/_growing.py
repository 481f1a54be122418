"""A plan and its queue files as they read now: the version after it. Pure, but for a callable that knows the configs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dibs.cell._template import Template
from dibs.errors import RefusedError

from ._change import Change, compare, refuse_change
from ._models import Cell, Plan
from ._names import check_apart, name_of, naming_of
from ._queue import Roster, Row, refused

__all__ = ["ConfigsNow", "Growth", "grown"]


class ConfigsNow(Protocol):
    """The configs as they are now (``_configs``)."""

    def digest(self, source: str, line: int, cfg: object) -> str | None: ...

    def now(self, source: str, cfg: object) -> str | None: ...


@dataclass(frozen=True)
class Growth:
    """Names of the cells that are new, that are dropped, and that are back."""

    appended: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


def grown(plan: Plan, rosters: Sequence[Roster], configs: ConfigsNow) -> tuple[Plan, Growth]:
    """(the plan with these files as they are, of the same version; what that changed). Files that are not named stay.

    Raises RefusedError for a change of earlier lines or of a config, UsageError for names that are none, or not apart.
    """
    naming = naming_of(plan.naming)
    kept: dict[str, list[Cell]] = {}
    for cell in plan.cells:
        kept.setdefault(cell.source, []).append(cell)
    cells = {cell.n: cell for cell in plan.cells}
    added: list[tuple[Roster, Row, str]] = []
    for roster in rosters:
        old = plan.sources.get(roster.source, ())
        change = compare(roster.source, old, roster.lines)
        rows = {row.line: row for row in roster.rows}
        for cell in kept.get(roster.source, ()):
            cells[cell.n] = _again(cell, rows.pop(cell.line, None), roster, old, change, configs)
        for row in rows.values():
            if row.line <= len(old):
                raise refuse_change(roster.source, old, roster.lines, f"line {row.line} was no cell before: append it")
        added += [(roster, row, name) for row, name in _named(roster, list(rows.values()), naming)]
    check_apart(
        [
            *((cell.name, f"{cell.source}:{cell.line} (planned before)", None) for cell in plan.cells),
            *((name, f"{roster.source}:{row.line}", row) for roster, row, name in added),
        ],
        naming,
    )
    size = plan.size
    new = [_cell(size + k, name, roster, row, configs) for k, (roster, row, name) in enumerate(added)]
    sources = dict(plan.sources) | {roster.source: roster.lines for roster in rosters}
    return replace(plan, cells=(*cells.values(), *new), sources=sources), Growth(
        tuple(cell.name for cell in new),
        tuple(cell.name for cell in plan.cells if cells[cell.n].dropped and not cell.dropped),
        tuple(cell.name for cell in plan.cells if cell.dropped and not cells[cell.n].dropped),
    )


def _again(
    cell: Cell, row: Row | None, roster: Roster, old: Sequence[str], change: Change, configs: ConfigsNow
) -> Cell:
    """The cell as its line is now."""
    if row is None:
        if not cell.dropped and cell.line not in change.dropped:
            raise refuse_change(roster.source, old, roster.lines, f"line {cell.line} is no cell any more")
        return replace(cell, dropped=True)
    now = replace(cell, fields=row.fields, cost=row.cost)
    if now.digest != cell.digest or now.cost != cell.cost or row.name not in (None, cell.name):
        raise refuse_change(roster.source, old, roster.lines, f"line {cell.line} is another cell than {cell.name}")
    config = configs.now(cell.source, cell.fields.get("cfg")) if cell.config is not None else None
    if config not in (None, cell.config):
        raise RefusedError(
            f"the config {cell.fields['cfg']} of the cell {cell.name} ({cell.source}:{cell.line}) is another one than was planned: "
            f"it was {cell.config}, and is {config}; put it back, or give the new one a file and a line of its own",
            field="config", theirs=cell.config, ours=config,
        )  # fmt: skip
    return replace(cell, dropped=False)


def _named(roster: Roster, rows: Sequence[Row], naming: Template) -> list[tuple[Row, str]]:
    named, wrong = [], []
    for row in rows:
        try:
            named.append((row, name_of(row, naming)))
        except ValueError as why:
            wrong.append((row.line, str(why)))
    if wrong:
        raise refused(roster.source, wrong)
    return named


def _cell(n: int, name: str, roster: Roster, row: Row, configs: ConfigsNow) -> Cell:
    config = configs.digest(roster.source, row.line, row.fields.get("cfg"))
    return Cell(n, name, row.fields, roster.source, row.line, row.cost, config)
