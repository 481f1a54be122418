"""``pull``: the durable copies of all cells that are done, brought to a folder, with a manifest of exactly these.

What is there and equal stays as it is, so a pull that was stopped is begun again with the same words. What the roster no
longer has is put aside, never deleted. The manifest is written last: without it nothing was pulled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dibs.errors import StoreError, UsageError
from dibs.store import Store

from ._bring import Damaged, bring, folder_in, put_whole
from ._homes import ASIDE, final_place, place_named, places_of
from ._incoming import Incoming, files_of
from ._manifest import Manifest, PulledCell, PulledFile, digest_of, plan_digest
from ._models import Plan
from ._runs import CellStanding
from ._standing import standing

__all__ = ["BEGUN", "PULLED", "Pulled", "Trouble", "pull"]

PULLED, BEGUN = "MANIFEST.json", ".dibs-pull"
Step = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Trouble:
    """Something that is not here, and why."""

    cell: str
    file: str | None
    what: str


@dataclass(frozen=True)
class Pulled:
    """``digest``: the manifest's; ``copied`` and ``same``: files brought, and files that were there already; ``bytes``:
    brought; ``aside``: paths that the roster no longer has, moved to where ``.quarantine`` says."""

    manifest: Manifest
    digest: str
    copied: int
    same: int
    bytes: int
    active: int
    troubles: tuple[Trouble, ...]
    aside: tuple[str, ...]
    codes: frozenset[str] = frozenset()

    @property
    def exit_code(self) -> int:
        """0 all cells are here, 5 no cells, 7 a durable copy failed, 6 the others are being run, 1 anything else."""
        if self.active == 0:
            return 5
        if "unsynced" in self.codes:
            return 7
        if self.codes:
            return 6 if self.codes <= {"running"} else 1
        return 1 if self.troubles else 0


def pull(
    store: Store, plan: Plan, dest: str | os.PathLike[str], *, threads: int = 4, step: Step | None = None
) -> Pulled:
    """Bring artefacts, log and record of every cell that is done to ``dest/<cell>/``.

    ``step`` is told (files looked at, files there are, bytes brought). Raises UsageError (the folder is another sweep's, or
    holds something else, or a link is in the way), StoreError (it cannot be written, or the store does not answer).
    """
    standings = [each for each in standing(store, plan) if each.active]
    known = places_of(store, plan)
    places = {place_named(store, plan, each.counts) for each in standings if each.state == "done" and each.counts}
    for place in (store.backend.root, final_place(store, plan), *places, *known):
        if place is not None and Path(os.path.realpath(dest)).is_relative_to(os.path.realpath(place)):
            raise UsageError(f"{dest} lies in {place}, and would go where that goes: bring the results somewhere else")
    folder = _open(Path(dest), store, plan)
    before = _before(folder)
    troubles: list[Trouble] = []
    wanted: list[Incoming] = []
    for each in standings:
        if each.state != "done":
            troubles.append(Trouble(each.cell.name, None, _why(each)))
            continue
        try:
            wanted += files_of(store, plan, each, known)
        except Damaged as wrong:
            troubles.append(Trouble(each.cell.name, None, str(wrong)))
    for one in wanted:
        folder_in(folder, os.path.dirname(one.path))  # noqa: PTH120 - a text, and no path yet
    lost = _bring_all(wanted, folder, threads, step)
    troubles += [Trouble(one.cell, one.name, why) for one, why in lost.items()]
    bad = {trouble.cell for trouble in troubles}
    manifest = Manifest(
        plan.sweep, _store_of(store), plan.version, plan_digest(plan),
        tuple(_cell(each) for each in standings if each.cell.name not in bad),
        tuple(
            PulledFile(one.path, one.cell, one.kind, one.size, one.digest)
            for one in sorted(wanted, key=lambda one: one.path) if one.cell not in bad
        ),
        {each.cell.name: _first(troubles, each.cell.name) for each in standings if each.cell.name in bad},
        {name: value for name, value in store.head("pull").items() if name in ("created_at", "who")},
    )  # fmt: skip
    aside = _put_aside(folder, before, manifest)
    copied = [one for one in wanted if one.copied]
    if before is not None and not copied and not aside and before.same(manifest):
        manifest = before  # what was verified of it stays verified
    data = manifest.encode()
    put_whole(folder / PULLED, data)
    codes = {_state(each) for each in standings if each.state != "done"} | ({"damaged"} if lost else set())
    return Pulled(
        manifest, digest_of(data), len(copied), len(wanted) - len(copied) - len(lost), sum(one.size for one in copied),
        len(standings), tuple(troubles), tuple(aside), frozenset(codes),
    )  # fmt: skip


def _open(dest: Path, store: Store, plan: Plan) -> Path:
    """The folder, which is new, or empty, or one in which a pull of this sweep began."""
    said = f"{plan.sweep}\n{_store_of(store)}\n"
    try:
        dest.mkdir(exist_ok=True)
        folder = dest.resolve(strict=True)
        begun = folder / BEGUN
        if begun.is_symlink() or (folder / PULLED).is_symlink():
            raise UsageError(f"{dest} holds a link where a pull keeps its own: give an empty or new folder")
        if begun.exists():
            if begun.read_text(encoding="utf-8", errors="replace") != said:
                raise UsageError(
                    f"{dest} holds what was pulled of another sweep, or store: give an empty or new folder"
                )
        elif any(each.name.endswith(".part") and each.name.startswith(f".{BEGUN}") for each in folder.iterdir()):
            put_whole(begun, said.encode())  # another pull begins there at this moment
        elif any(folder.iterdir()):
            if begun.exists():
                return _open(dest, store, plan)
            raise UsageError(f"{dest} is not empty, and no pull began there: give an empty or new folder")
        else:
            put_whole(begun, said.encode())
    except StoreError:
        raise
    except FileNotFoundError:
        raise UsageError(f"{dest} cannot be made: {dest.parent} is not there") from None
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{dest} is a file: give an empty or new folder") from None
    except OSError as wrong:
        raise StoreError(f"{dest} cannot be used: {wrong.strerror or wrong}") from wrong
    return folder


def _before(folder: Path) -> Manifest | None:
    """What an earlier pull has brought, as far as that reads."""
    try:
        return Manifest.decode((folder / PULLED).read_bytes(), str(folder / PULLED))
    except (OSError, UsageError):
        return None


def _bring_all(wanted: Sequence[Incoming], folder: Path, threads: int, step: Step | None) -> dict[Incoming, str]:
    """Bring them, several at a time; returns what could not be, and why."""
    lost: dict[Incoming, str] = {}

    def one(file: Incoming) -> str | None:
        try:
            file.copied = bring(file.source, folder / file.path, file.size, file.digest)
        except Damaged as wrong:
            return str(wrong)
        return None

    pool = ThreadPoolExecutor(max(1, threads), thread_name_prefix="dibs-pull")
    size = 0
    try:
        for at, (file, why) in enumerate(zip(wanted, pool.map(one, wanted), strict=True), 1):
            if why is not None:
                lost[file] = why
            size += file.size * file.copied
            if step is not None:
                step(at, len(wanted), size)
    finally:
        pool.shutdown(cancel_futures=True)
    return lost


def _put_aside(folder: Path, before: Manifest | None, now: Manifest) -> list[str]:
    """Move what an earlier pull brought and the roster no longer has out of the way; returns the paths."""
    kept = {each.path for each in now.files}
    moved = []
    for each in before.files if before is not None else ():
        path = folder / each.path
        if each.path in kept or not path.is_file() or path.is_symlink():
            continue
        place = folder_in(folder, f"{ASIDE}/{each.digest[:16]}/{os.path.dirname(each.path)}")  # noqa: PTH120
        with suppress(FileNotFoundError):  # another pull was quicker
            path.replace(place / path.name)
            moved.append(each.path)
        with suppress(OSError):
            path.parent.rmdir()
    return moved


def _cell(each: CellStanding) -> PulledCell:
    assert each.counts is not None
    return PulledCell(each.cell.name, each.counts.n, each.counts.attempt, each.cell.digest)


def _state(each: CellStanding) -> str:
    return "interrupted" if each.state == "running" and each.counts is not None and each.counts.gone else each.state


def _why(each: CellStanding) -> str:
    run = each.counts
    if run is not None and each.state == "running" and run.gone:
        return f"it is not done, and the process of {run.me} that ran it is gone: dibs sweep run takes it up"
    return f"it is {each.state}" + (f": {run.reason}" if run is not None and run.reason else "")


def _first(troubles: Sequence[Trouble], cell: str) -> str:
    return next(f"{one.file}: {one.what}" if one.file else one.what for one in troubles if one.cell == cell)


def _store_of(store: Store) -> str:
    return str(store.marker.get("nonce") or store.url)
