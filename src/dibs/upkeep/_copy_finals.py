"""Durable copies of sweeps, folder to folder: each cell's as a whole, hashed on the way and read back.

They are files beside the store's objects, so they go where there are folders; a bucket takes none.
"""

from __future__ import annotations

from pathlib import Path

from dibs.store import Store
from dibs.sweep._files import files_in
from dibs.sweep._final import Left, NotKept, Publisher, manifest_of
from dibs.sweep._inventory import MANIFEST

from ._copied import Copied, Trouble

__all__ = ["copy_finals"]


def copy_finals(source: Store, copy: Store, told: Copied) -> None:
    """Bring the copy's durable copies up to the source's; what cannot be is a trouble of ``told``."""
    root, target = source.backend.root, copy.backend.root
    if root is None:
        return
    for place in sorted((root / "sweep").glob("*/final")):
        key = place.relative_to(root).as_posix()
        cells = [path for path in sorted(place.iterdir()) if not path.name.startswith(".")]
        if place.is_symlink() or not cells:
            continue
        if target is None:
            what = f"durable copies of {len(cells)} cells are files, which a bucket's store has not: dibs sweep pull takes them"
            told.troubles.append(Trouble(key, what))
            continue
        for cell in cells:
            _cell(cell, target / key, f"{key}/{cell.name}", copy.machine.entropy(16).hex(), told)


def _cell(cell: Path, place: Path, key: str, token: str, told: Copied) -> None:
    found = manifest_of(cell)
    there = manifest_of(place / cell.name)
    if found and found == there:
        told.same += 1
        return
    if not found or (there and (there["n"], there["attempt"]) > (found["n"], found["attempt"])):
        told.troubles.append(Trouble(key, "it does not say whose it is" if not found else "the copy has a later one"))
        return
    left = [Left(name, path) for name, path, lying in files_in(cell) if lying.why is None and name != MANIFEST]
    try:
        manifest = (cell / MANIFEST).read_bytes()
        publisher = Publisher(place, cell.name, (found["n"], found["attempt"]), token)
        kept, _ = publisher.publish(left, lambda _: manifest)
    except (OSError, NotKept) as wrong:
        told.troubles.append(Trouble(key, f"it could not be copied: {wrong}"))
        return
    told.records += 1
    told.bytes += sum(each.size for each in kept.values())
