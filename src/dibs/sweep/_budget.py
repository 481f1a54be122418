"""What a sweep takes on disk, against what there is: the arithmetic. Pure.

Checkpoints lie twice: where they are written, until somebody removes the work folder, and as durable copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dibs.cell._limits import size_text

__all__ = ["Free", "Need", "needs", "short_of"]

_FILES_BESIDE = {"final": 2, "work": 8}  # a folder and the manifest; folders, log, result, marks
_RECORDS = 4  # of a cell in the store: its record, its blob, and what they are written through


@dataclass(frozen=True)
class Free:
    """What is left at a place: the disk it is on (any name, the same for the same disk), None where it is not known."""

    place: str
    disk: str
    bytes: int | None
    inodes: int | None


@dataclass(frozen=True)
class Need:
    """What the cells take at a place."""

    what: str
    bytes: int
    inodes: int


def needs(cells: int, running: int, checkpoint_bytes: int, scratch_bytes: int, artifacts: int) -> tuple[Need, Need]:
    """(final, work) for so many cells, of which ``running`` run at once. ``artifacts``: files of each."""
    return (
        Need("final", checkpoint_bytes * cells, (artifacts + _FILES_BESIDE["final"]) * cells),
        Need(
            "work", checkpoint_bytes * cells + scratch_bytes * running, (artifacts + _FILES_BESIDE["work"] + _RECORDS) * cells
        ),
    )  # fmt: skip


def short_of(wanted: Mapping[str, Need], free: Mapping[str, Free]) -> list[str]:
    """One sentence with numbers for each disk that has too little; places on one disk are added up."""
    disks: dict[str, list[str]] = {}
    for what in wanted:
        if what in free:
            disks.setdefault(free[what].disk, []).append(what)
    said = []
    for names in disks.values():
        there, places = free[names[0]], " and ".join(dict.fromkeys(f"{free[name].place} ({name})" for name in names))
        size, inodes = (sum(getattr(wanted[name], each) for name in names) for each in ("bytes", "inodes"))
        if there.bytes is not None and size > there.bytes:
            said.append(f"{places} would take {size_text(size)}, and {size_text(there.bytes)} are free")
        if there.inodes is not None and inodes > there.inodes:
            said.append(f"{places} would take {inodes} files, and {there.inodes} are free")
    return said
