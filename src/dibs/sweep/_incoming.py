"""What a pull brings of a cell that is done: its artefacts, its record, and its log if that can be had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dibs.errors import StoreError
from dibs.store import Store, SweepKeys, blob_key

from ._bring import Damaged, Source, from_file
from ._files import hash_file
from ._homes import home_of
from ._manifest import digest_of
from ._models import Plan
from ._paths import is_name, is_path
from ._runs import CellStanding, Run
from ._where import log_of

__all__ = ["LOG", "RECORD", "Incoming", "files_of"]

RECORD, LOG = "dibs-record.json", "dibs-log.txt"


@dataclass(eq=False)
class Incoming:
    """A file to be brought; without a digest it is whatever is read."""

    cell: str
    name: str
    kind: str
    source: Source
    size: int = 0
    digest: str = ""
    copied: bool = False

    @property
    def path(self) -> str:
        return f"{self.cell}/{self.name}"


def files_of(store: Store, plan: Plan, each: CellStanding, known: Sequence[Path] = ()) -> Iterator[Incoming]:
    """What a cell has left. ``known``: as in ``home_of``. Raises Damaged for a record that no version of dibs wrote."""
    name, run = each.cell.name, each.counts
    if run is None or not run.artifacts:
        raise Damaged("it claims to be done, and its record names no artefacts: dibs sweep reconcile")
    if not is_name(name):
        raise Damaged("its name is no name of a folder")
    home = home_of(store, plan, name, run, known)
    for kept in run.artifacts.values():
        if not is_path(kept.name):
            raise Damaged(f"the name of its artefact {kept.name!r:.200} leads out of its folder")
        if home is None:
            source = _blob(store, kept.digest)
        else:
            source = from_file(home / kept.name)
        yield Incoming(name, kept.name, "artifact", source, kept.size, kept.digest)
    for extra in (_record(store, plan, run, name), _log(store, plan, run, name)):
        if extra is not None and extra.name not in run.artifacts:
            yield extra


def _record(store: Store, plan: Plan, run: Run, name: str) -> Incoming | None:
    there = store.backend.read(SweepKeys(plan.sweep).attempt(run.n, run.attempt))
    if there is None:
        return None
    data = there.data
    return Incoming(name, RECORD, "record", lambda start: iter([data[start:]]), len(data), digest_of(data))


def _log(store: Store, plan: Plan, run: Run, name: str) -> Incoming | None:
    """The log of the attempt that counts, if it can be had from here."""
    if "log.txt" in run.files:
        digest = run.files["log.txt"]
        with suppress(StoreError):
            data = store.get(digest)
            return Incoming(name, LOG, "log", lambda start: iter([data[start:]]), len(data), digest)
        return None
    path = log_of(store, plan.sweep, run.n, run.attempt)
    if not path.is_file() or path.is_symlink():
        return None
    with suppress(OSError):
        size, sha = hash_file(path)
        return Incoming(name, LOG, "log", from_file(path), size, sha)
    return None


def _blob(store: Store, digest: str) -> Source:
    def chunks(start: int) -> Iterator[bytes]:
        found = store.backend.stream(blob_key(digest), start)
        if found is None:
            raise Damaged("it is not there")
        return found

    return chunks
