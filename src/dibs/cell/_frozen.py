"""Scripts are run from a private copy, kept by digest in the store: who edits the shared one changes no running search.

Beside a copy lies everything that lies beside the original, as links, so that a script still finds its neighbours; only what
is named is frozen. A new version is a new digest, and the store keeps each that was ever used under a name.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dibs.errors import StoreError
from dibs.record import Who
from dibs.store import Store

from ._command import Command
from ._holding import OWNER, PREFIX, alone, let_go

__all__ = ["Frozen", "copied", "freeze", "frozen_in", "private_folder"]

log = logging.getLogger("dibs")
# each start makes and removes them all: some milliseconds for a hundred, on a slow disk more
_MOST_LINKS, _MOST_ABOVE = 5000, 500
_OLD_S = 86400.0  # where nobody can tell: workers of a killed run may need their copies for a while


@dataclass(frozen=True)
class Frozen:
    """One version of a script that runs of a study have used."""

    file: str
    digest: str
    command: str
    me: str


@contextmanager
def freeze(command: Command, store: Store, study: str, me: str | None = None) -> Iterator[Command]:
    """The command, run from private copies of its scripts while inside. Raises StoreError."""
    if not command.scripts:
        yield command
        return
    with private_folder(store) as base:
        try:
            copies = copied(command.here, list(command.scripts), base)
        except OSError as wrong:
            raise StoreError(f"a private copy of {', '.join(command.scripts)} cannot be made: {wrong}") from wrong
        digests = {}
        for name, path in copies.items():
            digests[name] = store.put(path)
            meta = {"file": name, "command": command.written, "me": store.me(me)}
            store.claim(f"{_prefix(study)}{digests[name]}", digests[name], meta)
        yield command.with_copies({name: str(path) for name, path in copies.items()}, digests)


@contextmanager
def private_folder(store: Store) -> Iterator[Path]:
    """A folder for private copies, removed at the end; what killed runs have left there goes, too. Raises StoreError."""
    place = "the temporary folder"
    try:
        place = _place(store)
        base = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    except OSError as wrong:
        raise _no_room(place, wrong) from wrong
    try:
        try:
            _sweep(base, store)
        except OSError as wrong:
            raise _no_room(place, wrong) from wrong
        yield base
    finally:
        let_go(base)
        shutil.rmtree(base, ignore_errors=True)


def frozen_in(store: Store, study: str) -> list[Frozen]:
    """Every version that runs of the study have used. Reads the store's free names."""
    found = store.scan(_prefix(study))
    texts = [(each, {key: str(each.meta.get(key, "")) for key in ("file", "command", "me")}) for each in found]
    return sorted(
        (Frozen(digest=each.digest or "", **text) for each, text in texts), key=lambda one: (one.file, one.digest)
    )


def _prefix(study: str) -> str:
    return f"program/{study}/"


def _no_room(place: str, wrong: OSError) -> StoreError:
    return StoreError(
        f"there is no room in {place} for private copies of the scripts: {wrong.strerror or wrong}; see TMPDIR"
    )


def _place(store: Store) -> str:
    """Where the copies go: the temporary folder, unless there is none, or nothing may be executed there. Raises OSError."""
    root = os.environ.get("DIBS_WORK") or store.backend.root
    try:
        usual = tempfile.gettempdir()
        if root is None or not os.statvfs(usual).f_flag & getattr(os, "ST_NOEXEC", 0):
            return usual
    except OSError:
        if root is None:
            raise
    Path(root).mkdir(parents=True, exist_ok=True)
    return str(root)


def _sweep(base: Path, store: Store) -> None:
    """Say whose the copies are, and remove those that killed runs have left beside them."""
    machine = store.machine
    (base / OWNER).write_text(json.dumps(machine.who("")))
    for other in base.parent.glob(f"{PREFIX}*"):
        with suppress(OSError, ValueError, TypeError):
            old = machine.clock.wall() - other.stat().st_mtime > _OLD_S
            owner = _owner(other)
            if owner is None:
                if old:
                    shutil.rmtree(other, ignore_errors=True)
            elif machine.gone(owner):
                with alone(other) as free:
                    if old if free is None else free:
                        shutil.rmtree(other, ignore_errors=True)


def _owner(base: Path) -> Who | None:
    """Whose copies they are; None where he was killed before he had said so. Raises OSError, TypeError for another form of it."""
    try:
        return Who(**json.loads((base / OWNER).read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def copied(
    here: Path, names: Sequence[str], base: Path, copy: Callable[[Path, Path], object] = shutil.copy
) -> dict[str, Path]:
    """Copies of the files, each among links to its original's neighbours, and so in the folders above it: ``../lib`` is there.

    ``here``: where the command was given; up to the folder above it, up to 5,000 neighbours each are linked, and 500
    each further up. ``copy``: makes one, of a file that need not be there. Raises OSError, and what ``copy`` raises.
    """
    files = {name: Path(os.path.abspath(here / name)) for name in names}  # noqa: PTH100 - links to scripts stay
    top = Path(files[names[0]].anchor)
    wanted, near = set(files.values()), {folder for file in files.values() for folder in _near(file, here)}
    _mirror(top, base / "0", wanted, near, copy)
    return {name: base / "0" / file.relative_to(top) for name, file in files.items()}


def _near(file: Path, here: Path) -> list[Path]:
    """The folders that a script's own relative paths lead to: from its own to the one above where the command was given."""
    given = Path(os.path.abspath(here))  # noqa: PTH100 - as above
    last = given.parent if file.is_relative_to(given) else file.parent.parent
    return [folder for folder in file.parents if folder.is_relative_to(last)]


def _mirror(
    folder: Path, mirror: Path, files: set[Path], near: set[Path], copy: Callable[[Path, Path], object]
) -> None:
    mirror.mkdir()
    inside = {folder / file.relative_to(folder).parts[0] for file in files if file.is_relative_to(folder)}
    for each in inside:
        if each in files:
            copy(each, mirror / each.name)
        else:
            _mirror(each, mirror / each.name, files, near, copy)
    beside = not inside.isdisjoint(files)
    for name in _neighbours(folder, _MOST_LINKS if folder in near else _MOST_ABOVE, warn=beside):
        if folder / name not in inside:
            (mirror / name).symlink_to(folder / name)


def _neighbours(folder: Path, most: int, *, warn: bool) -> list[str]:
    """What lies in a folder; nothing where that cannot be told, or is more than ``most``, and then no more is looked at."""
    try:
        with os.scandir(folder) as found:
            names = [each.name for each in islice(found, most + 1)]
    except OSError:  # a folder that may be passed through and not read
        return []
    if len(names) <= most:
        return names
    if warn:
        log.warning("%s holds over %d files: a script's private copy does not see them beside it", folder, most)
    return []
