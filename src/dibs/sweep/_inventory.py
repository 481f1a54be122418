"""What lies where durable copies go: sizes, and digests read off the bytes. Reads only, and follows no link."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from dibs.errors import DibsError, StoreError
from dibs.store import Store, blob_key

from ._files import chunks_of, files_in, hash_chunks, hash_file
from ._findings import Inventory, Lying
from ._homes import ASIDE, BLOBS, MARK, final_place, home_of, place_named, places_of
from ._models import Plan
from ._paths import is_name
from ._runs import CellStanding

__all__ = ["MANIFEST", "Step", "take_inventory"]

Step = Callable[[int, int], None]
MANIFEST = "manifest.json"
_THREADS = 4


def take_inventory(
    store: Store,
    plan: Plan,
    standings: Sequence[CellStanding],
    *,
    quick: bool = False,
    threads: int = _THREADS,
    step: Step | None = None,
) -> Inventory:
    """What lies there. ``quick``: sizes only. ``step`` is told (files looked at, files there are).

    A file that cannot be read is told as such. Raises StoreError if the place itself cannot be.
    """
    place = final_place(store, plan)
    if place is None:
        return _blobs(store, standings, quick, threads, step)
    homes, also = _homes(store, plan, place, standings)
    cells, stray = _folders(place)
    homes = {cell: place / cell for cell in cells} | homes
    asked: list[tuple[str, str, Path, Lying]] = []
    for cell, home in homes.items():
        asked += [(cell, name, path, lying) for name, path, lying in files_in(home) if name != MANIFEST]
    read = _each(
        [lambda path=path, lying=lying: _hashed(path, lying, quick) for _, _, path, lying in asked],  # type: ignore[misc]
        threads, step,
    )  # fmt: skip
    found: dict[str, dict[str, Lying]] = {cell: {} for cell in homes}
    for (cell, name, _, _), lying in zip(asked, read, strict=True):
        found[cell][name] = lying
    kept = [each for each in standings if each.counts is not None and each.counts.final == BLOBS]
    if kept:  # the store was copied from a bucket
        found |= {name: dict(files) for name, files in _blobs(store, kept, quick, threads, step).cells.items()}
    of = {cell: at for cell, home in homes.items() if (at := _manifest(home)) is not None}
    places = list(dict.fromkeys((place, *(home.parent for home in homes.values()))))
    return Inventory(" and ".join(map(str, places)), found, of, tuple(stray), _aside(places), quick, also)


def _homes(
    store: Store, plan: Plan, place: Path, standings: Sequence[CellStanding]
) -> tuple[dict[str, Path], dict[str, str]]:
    """(the folders of cells whose copies lie elsewhere than the plan says now, cell -> where another copy of it lies).

    Raises StoreError for a place that is not there at all, and none of whose copies were carried over.
    """
    homes: dict[str, Path] = {}
    also: dict[str, str] = {}
    known = places_of(store, plan)
    gone: dict[Path, list[bool]] = {}  # place -> of each of its cells whether a copy is to be seen
    for each in standings:
        name, run = each.cell.name, each.counts
        if run is None or run.state != "done":
            continue
        home, named = home_of(store, plan, name, run, known), place_named(store, plan, run)
        if home is None or named is None:
            continue
        ours = plan.task.final is None and named == place
        if not ours and each.active and not named.exists():
            gone.setdefault(named, []).append(home.is_dir())
        if home.parent != place:
            homes[name] = home
            if (place / name).is_dir():
                also[name] = str(place / name)
    for named, seen in gone.items():
        if not any(seen):
            raise StoreError(
                f"{named}, where durable copies lie, is not there, and cells are done: is it mounted here?"
            )
    return homes, also


def _hashed(path: Path, lying: Lying, quick: bool) -> Lying:
    if lying.why is not None or quick:
        return lying
    try:
        return Lying(*hash_file(path))
    except OSError as wrong:
        return Lying(lying.size, why=f"it cannot be read: {wrong.strerror or wrong}")


def _each(calls: Sequence[Callable[[], Lying]], threads: int, step: Step | None) -> list[Lying]:
    """What the calls answer, in order, several at a time."""
    found = []
    with ThreadPoolExecutor(max(1, threads), thread_name_prefix="dibs-hash") as pool:
        for lying in pool.map(lambda call: call(), calls):
            found.append(lying)
            if step is not None:
                step(len(found), len(calls))
    return found


def _folders(place: Path) -> tuple[list[str], list[str]]:
    """The folders of results, and what else is there; temporaries (``.part-...``) and what was put aside are neither."""
    cells: list[str] = []
    stray: list[str] = []
    try:
        found = sorted(os.scandir(place), key=lambda each: each.name)
    except FileNotFoundError:
        return [], []
    except OSError as wrong:
        raise StoreError(f"{place}, where durable copies lie, cannot be read: {wrong.strerror or wrong}") from wrong
    for each in found:
        if each.name.startswith(".part-") or each.name in (ASIDE, MARK):
            continue
        (cells if is_name(each.name) and each.is_dir(follow_symlinks=False) else stray).append(each.name)
    return cells, stray


def _aside(places: Iterable[Path]) -> dict[str, int]:
    """How many copies of each cell were put aside: ``<name>-<n>-<attempt>``."""
    counts: dict[str, int] = {}
    for place in places:
        with suppress(OSError):
            for each in os.scandir(place / ASIDE):
                name = each.name.rsplit("-", 2)[0]
                counts[name] = counts.get(name, 0) + 1
    return counts


def _manifest(folder: Path) -> tuple[int, int] | None:
    """The trial and attempt that a folder of results says it is of."""
    try:
        body = json.loads(b"".join(chunks_of(folder / MANIFEST)))
        return int(body["n"]), int(body["attempt"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _blobs(store: Store, standings: Sequence[CellStanding], quick: bool, threads: int, step: Step | None) -> Inventory:
    asked = [
        (each.cell.name, name.removeprefix("final/"), digest)
        for each in standings
        if each.counts is not None and each.state in ("done", "dropped")
        for name, digest in each.counts.files.items()
        if name.startswith("final/")
    ]
    read = _each(
        [lambda digest=digest: _blob(store, digest, quick) for _, _, digest in asked],  # type: ignore[misc]
        threads, step,
    )  # fmt: skip
    found: dict[str, dict[str, Lying]] = {}
    for (cell, name, _), lying in zip(asked, read, strict=True):
        if lying is not None:
            found.setdefault(cell, {})[name] = lying
    there: Mapping[str, Mapping[str, Lying]] = {
        cell: {name: lying for name, lying in files.items() if lying.why != _GONE} for cell, files in found.items()
    }
    return Inventory(f"the blobs of {store.url}", there, quick=quick)


_GONE = "gone"


def _blob(store: Store, digest: str, quick: bool) -> Lying:
    try:
        key = blob_key(digest)
        if quick:
            folder = key.rpartition("/")[0] + "/"
            sizes = [each.size for each in store.backend.list(folder, details=True) if each.key == key]
            return Lying(sizes[0]) if sizes else Lying(0, why=_GONE)
        chunks = store.backend.stream(key)
        return Lying(*hash_chunks(chunks)) if chunks is not None else Lying(0, why=_GONE)
    except DibsError as wrong:
        return Lying(-1, why=str(wrong))
