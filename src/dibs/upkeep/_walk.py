"""Which objects a store has, kind by kind of folder, and nothing of what is in them. Reads, and writes nothing.

What passes by itself (temporaries, meetings, probes) and what is people's own (the attempts' folders, durable copies)
is passed over; whatever else lies there has an entry, however odd its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG

from dibs.backend import Entry
from dibs.errors import RecordError, StoreError, UsageError
from dibs.store import Store

from ._layout import place_of

__all__ = ["entries_of", "is_link", "part_at", "parts_of"]

_ROOTS = {"study": ("work",), "sweep": ("work", "final")}  # and what below them are no objects, but people's files
_ALSO_FOLDERS = ("foreign", "other", "work")  # the kinds whose keys may be folders
_PASSING = ("tmp", "doctor", "probe")  # what is under them comes and goes: writes, meetings of the doctor, a probe


def entries_of(store: Store) -> Iterator[Entry]:
    """All keys but temporaries, the attempts' own folders and the folders of durable copies."""
    backend = store.backend
    for name in sorted(backend.names("")):
        if name in _PASSING:
            continue
        if name not in _ROOTS or is_link(store, name):
            yield from _below(store, "", name)
            continue
        for segment in sorted(backend.names(f"{name}/")):
            parts = [] if is_link(store, f"{name}/{segment}") else backend.names(f"{name}/{segment}/")
            if not parts:
                yield from _below(store, f"{name}/", segment)
            for part in sorted(parts):
                if part not in _ROOTS[name]:
                    yield from _below(store, f"{name}/{segment}/", part)
    if backend.root is not None:
        yield from _in_the_way(backend.root)


def _in_the_way(root: Path) -> Iterator[Entry]:
    """What no listing of keys has, and nobody can claim or write there any more: a folder where an object belongs, and
    a file or a link where one of the folders belongs that are passed over here."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # removed meanwhile
            raise StoreError(f"cannot list the store's folder {error.filename}: {error.strerror}") from error

    for where, folders, _ in os.walk(root, onerror=fail):
        prefix = where[len(str(root)) + 1 :]
        folders[:] = [name for name in folders if not (name.endswith(".claim") or _is_peoples(prefix, name))]
        for name in folders:
            key = f"{prefix}/{name}" if prefix else name
            if place_of(key).kind not in _ALSO_FOLDERS and not (root / key).is_symlink():
                yield Entry(key, "", 0.0, -1)
    for shape in ("tmp", "study", "sweep", "study/*/work", "sweep/*/work"):
        for path in sorted(root.glob(shape)):
            if not (path.is_dir() or path.is_symlink()):
                yield Entry(path.relative_to(root).as_posix(), "", 0.0, -1)
    if (root / "tmp").is_symlink():
        yield Entry("tmp", "", 0.0, -1)


def _is_peoples(prefix: str, name: str) -> bool:
    """Whether that folder comes and goes, or is people's own."""
    if not prefix:
        return name in _PASSING
    top, _, rest = prefix.partition("/")
    return bool(rest) and "/" not in rest and name in _ROOTS.get(top, ())


def _below(store: Store, prefix: str, name: str) -> Iterator[Entry]:
    """The key itself, or the keys below it."""
    try:
        there = list(store.backend.list(f"{prefix}{name}/", details=True))
    except RecordError:
        there = []
    except UsageError:  # ``.nfs0001``, ``README``: no key
        yield Entry(prefix + name, "", 0.0, -1)
        return
    if there:
        yield from there
        return
    key = prefix + name
    try:
        found = store.backend.read(key)
    except RecordError:
        root = store.backend.root
        if root is None or (root / key).is_symlink() or not (root / key).is_dir():
            yield Entry(key, "", 0.0, -1)
        return  # a folder with nothing in it any more, such as live/ between runs, is nothing
    if found is not None:
        yield Entry(key, found.version, found.modified, len(found.data))


def is_link(store: Store, key: str) -> bool:
    """Whether a link stands under that name: nobody follows it."""
    root = store.backend.root
    return root is not None and (root / key).is_symlink()


def parts_of(store: Store) -> Iterator[Entry]:
    """Folders of durable copies that were never finished, each as one entry: all its bytes, and the newest stamp within.

    Copies that go to a folder outside the store are not looked at.
    """
    root = store.backend.root
    if root is None or is_link(store, "sweep"):
        return
    for segment in sorted(store.backend.names("sweep/")):
        place = root / "sweep" / segment / "final"
        if is_link(store, f"sweep/{segment}") or place.is_symlink():
            continue
        for path in sorted(place.glob(".part-*")):
            found = part_at(root, path.relative_to(root).as_posix())
            if found is not None:
                yield found


def part_at(root: Path, key: str) -> Entry | None:
    """One of them as it is now; None if it is gone."""
    try:
        stats = [path.lstat() for path in (root / key, *sorted((root / key).rglob("*")))]
    except OSError:
        return None
    newest = max(stat.st_mtime for stat in stats)
    return Entry(key, f"{len(stats)}", newest, sum(stat.st_size for stat in stats if S_ISREG(stat.st_mode)))
