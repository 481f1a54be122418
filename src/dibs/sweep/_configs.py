"""Config files: the file that a row's ``cfg`` names, if it names one, and the digest of its bytes.

It is looked for beside the queue file, then in the folder the sweep was planned in. A plain word is no file, and may be one
nowhere; what looks like a path must be there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from dibs.errors import StoreError, UsageError
from dibs.store import Store

from ._models import Cell, Plan

__all__ = ["Configs", "config_places", "put_file", "source_path"]

_ENDINGS = (
    ".toml", ".yaml", ".yml", ".json", ".jsonc", ".json5", ".jsonnet", ".ini", ".cfg", ".conf", ".gin", ".py", ".xml", ".txt",
    ".csv", ".env", ".properties", ".lua", ".jl", ".r", ".sh", ".pbtxt", ".prototxt", ".nml",
)  # fmt: skip

_MANY, _AT_ONCE = 8, 16  # files to be kept, from which on so many are at once
_SMALL_BYTES = 64 << 20


def source_path(here: str, source: str) -> Path:
    """Where a queue file is on the host that read it. ``here``: the folder the sweep was planned in."""
    return Path(os.path.abspath(Path(here) / source))  # noqa: PTH100 - links stay what they are called


def config_places(plan: Plan, cell: Cell) -> tuple[Path, ...]:
    """Where a cell's config is looked for, in this order; none if its ``cfg`` names no file."""
    cfg = cell.fields.get("cfg")
    if cell.config is None or not isinstance(cfg, str):
        return ()
    return _places(plan.task.here, cell.source, cfg)


class Configs:
    """The configs as they are now; each file is read once. ``here``: the folder the sweep was planned in."""

    def __init__(self, here: str) -> None:
        self.here = here
        self._digests: dict[Path, str] = {}
        self._found: dict[tuple[str, str], Path | None] = {}

    def digest(self, source: str, line: int, cfg: object) -> str | None:
        """SHA-256 of the file, None if ``cfg`` names none. UsageError for one that is missing or cannot be read."""
        if not isinstance(cfg, str):
            return None
        path = self._path(source, cfg)
        if path is not None:
            return self._digest(path, f"{source}:{line}")
        if "/" in cfg or PurePosixPath(cfg).suffix.lower() in _ENDINGS:
            places = [str(place) for place in dict.fromkeys(_places(self.here, source, cfg))]
            what = "a folder" if any(Path(place).is_dir() for place in places) else "not there"
            raise UsageError(f"{source}:{line}: the config {cfg} is {what} (looked for as {', then '.join(places)})")
        return None

    def now(self, source: str, cfg: object) -> str | None:
        """The same, None also where the file is not there: another host may have it."""
        path = self._path(source, cfg) if isinstance(cfg, str) else None
        return self._digest(path, source) if path is not None else None

    def put(self, store: Store, known: Collection[str | None] = ()) -> None:
        """Keep the bytes of every file that was read, by digest, but for those that are ``known`` to be kept.

        Raises StoreError; UsageError if one has changed meanwhile.
        """
        new = {digest: path for path, digest in self._digests.items() if digest not in known}
        if len(new) < _MANY:
            for digest, path in new.items():
                put_file(store, path, digest, "config")
            return
        from concurrent.futures import ThreadPoolExecutor  # each waits for its disk, or for a bucket

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for done in [pool.submit(put_file, store, path, digest, "config") for digest, path in new.items()]:
                done.result()

    def _path(self, source: str, cfg: str) -> Path | None:
        key = (source, cfg)
        if key not in self._found:
            self._found[key] = next((place for place in _places(self.here, source, cfg) if _is_file(place)), None)
        return self._found[key]

    def _digest(self, path: Path, place: str) -> str:
        if path not in self._digests:
            try:
                with path.open("rb") as file:
                    self._digests[path] = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as wrong:
                raise UsageError(f"{place}: the config {path} cannot be read: {wrong.strerror or wrong}") from None
        return self._digests[path]


def put_file(store: Store, path: Path, digest: str, what: str) -> None:
    """Keep a file's bytes by the digest it had. Raises StoreError; UsageError if it has another one, or is gone."""
    try:
        small = path.stat().st_size <= _SMALL_BYTES
        kept = store.put(path.read_bytes() if small else path)  # bytes that are there are not sent again
    except OSError as wrong:
        if isinstance(wrong, StoreError):
            raise
        raise UsageError(f"the {what} {path} cannot be read: {wrong.strerror or wrong}") from None
    if kept != digest:
        raise UsageError(f"the {what} {path} was written to while the sweep was planned: plan it again")


def _places(here: str, source: str, cfg: str) -> tuple[Path, ...]:
    return source_path(here, source).parent / cfg, Path(here) / cfg


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
