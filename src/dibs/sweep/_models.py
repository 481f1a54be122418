"""What a sweep is: cells by name, the command that each of them runs, and what of it has to be kept. Pure.

A cell is a row of a roster. It has a number, the index of the trial that runs it, and that is all the claim protocol
knows of it; a cell that has to run once more although its trial is settled gets a new number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from dibs._canon import all_to_json, digest, from_json
from dibs.errors import RecordError

__all__ = ["Artifact", "Cell", "Plan", "Task", "Value"]

Value = None | bool | int | float | str


@dataclass(frozen=True)
class Cell:
    """One row. ``n``: the trial that runs it, ``former``: those that ran it before; ``name``: its folder's, one in the sweep.

    ``fields``: the row's columns (cfg, task, epochs, any others), which fill the command; ``source`` and ``line``: the
    queue file as it was given, and its physical line, from 1. ``cost``: declared, in any unit; ``config``: SHA-256 of the
    file that ``cfg`` names, whose bytes are a blob of the store. ``dropped``: its line is a comment now.
    """

    n: int
    name: str
    fields: Mapping[str, Value]
    source: str
    line: int
    cost: float | None = None
    config: str | None = None
    dropped: bool = False
    former: tuple[int, ...] = ()

    @property
    def digest(self) -> str:
        """What it is: equal for equal columns and an equal config, whatever its line and name."""
        return digest({"fields": all_to_json(self.fields), "config": self.config})

    def to_json(self) -> dict[str, Any]:
        return {**_said(self), "fields": all_to_json(self.fields), "former": list(self.former)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Cell:
        kept = {**_known(cls, body), "former": tuple(body.get("former", ()))}
        return cls(**kept | {"fields": {name: from_json(value) for name, value in body["fields"].items()}})


@dataclass(frozen=True)
class Task:
    """What every cell runs, and by which rules.

    ``words``: the command (with ``shell``, one line for sh -c), given in the folder ``here``. ``scripts``: files as written
    -> SHA-256 of the bytes that are run, blobs of the store. ``artifacts``: files of ``{out}`` that a finished cell has,
    copied to ``final``: a folder, None = the store's own. ``out``: a template of output folders, None = each attempt's own.
    ``limits``: time_s and memory_bytes; ``isolate``: Landlock, ``writable`` besides, ``deny_read`` paths nobody may read.
    ``checkpoint_bytes`` and ``scratch_bytes``: of one cell, for the budget. ``group``: for trackers.
    """

    words: tuple[str, ...]
    here: str
    shell: bool = False
    scripts: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()
    final: str | None = None
    out: str | None = None
    goal: str | None = None
    time_s: float | None = None
    memory_bytes: int | None = None
    isolate: bool = False
    writable: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()
    checkpoint_bytes: int | None = None
    scratch_bytes: int | None = None
    group: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in _said(self).items()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Task:
        kept: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in _known(cls, body).items()
        }
        return cls(**kept)


@dataclass(frozen=True)
class Plan:
    """One version of a sweep: later ones have more cells, drop some, run a newer script or some cells again.

    ``cells``: by number, dropped ones, too. ``sources``: each queue file as given -> its physical lines as they were read.
    ``naming``: the template of cells' names; ``epochs``: the default. ``hosts``: name -> speed, for the assignment.
    """

    sweep: str
    version: int
    cells: tuple[Cell, ...]
    task: Task
    sources: Mapping[str, tuple[str, ...]]
    naming: str = "{stem}"
    epochs: int | None = None
    hosts: Mapping[str, float] = field(default_factory=dict)
    where: str = ""  # the host that read the queue files

    @property
    def active(self) -> tuple[Cell, ...]:
        """The cells that are to be run."""
        return tuple(cell for cell in self.cells if not cell.dropped)

    @property
    def size(self) -> int:
        """How many trials it takes: one more than the highest number that any cell has or had."""
        return max((n + 1 for cell in self.cells for n in (cell.n, *cell.former)), default=0)

    def cell(self, n: int) -> Cell | None:
        """The cell that the trial runs or ran."""
        return next((cell for cell in self.cells if n == cell.n or n in cell.former), None)

    def named(self, name: str) -> Cell | None:
        return next((cell for cell in self.cells if cell.name == name), None)

    def next(self, **changes: Any) -> Plan:
        """The version after this one."""
        return replace(self, version=self.version + 1, **changes)

    def to_json(self) -> dict[str, Any]:
        return {
            **_said(self), "cells": [cell.to_json() for cell in self.cells], "task": self.task.to_json(),
            "sources": {name: list(lines) for name, lines in self.sources.items()},
        }  # fmt: skip

    @classmethod
    def from_json(cls, body: Mapping[str, Any], key: str) -> Plan:
        """Raises RecordError for what no version of dibs wrote."""
        try:
            return cls(
                **_known(cls, body)
                | {
                    "cells": tuple(Cell.from_json(each) for each in body["cells"]), "task": Task.from_json(body["task"]),
                    "sources": {str(name): tuple(map(str, lines)) for name, lines in body["sources"].items()},
                }
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError) as wrong:
            raise RecordError(f"{key} is not the plan of a sweep: {wrong!r:.200}", key=key) from None


@dataclass(frozen=True)
class Artifact:
    """A durable copy: its name within the cell's folder, SHA-256 and size in bytes."""

    name: str
    digest: str
    size: int

    def to_json(self) -> dict[str, Any]:
        return {"sha256": self.digest, "bytes": self.size}


def _said(thing: Any) -> dict[str, Any]:
    return {each.name: getattr(thing, each.name) for each in fields(thing)}


def _known(cls: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of it that this version knows."""
    names = {each.name for each in fields(cls)}
    return {name: value for name, value in body.items() if name in names}
