"""Durable copies: what a finished cell leaves, hashed while it is copied, read back, and given its name as a whole.

No observer ever sees half a result under a cell's name. A killed copier leaves a ``.part-`` folder, which the next attempt at
the cell removes. Where two attempts have finished, the later one's copy stays and the other is put aside, never deleted.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dibs.errors import DibsError, RefusedError, StoreError, UsageError
from dibs.store import blob_key
from dibs.study._attempt import Attempt

from ._files import NOFOLLOW, chunks_of, hash_file
from ._homes import ASIDE, BLOBS, final_place
from ._inventory import MANIFEST
from ._models import Artifact, Cell, Plan
from ._paths import is_path
from ._place import claim_place

__all__ = ["BLOBS", "LOG", "Left", "NotKept", "Publisher", "collect", "manifest_of", "publish"]

LOG = "log.txt"  #: the artifact of that name is the cell's log, unless it has written one of its own
_TURNS = 20
_THERE = (errno.EEXIST, errno.ENOTEMPTY)
_CHUNK = 1 << 20


class NotKept(Exception):
    """What a cell left could not be copied, and why."""


@dataclass(frozen=True)
class Left:
    """One file that a cell has left: its name among the artifacts, and where it is."""

    name: str
    path: Path


def collect(out: Path, patterns: Sequence[str], log: Path) -> list[Left]:
    """The files that the patterns ask for, each a plain file with something in it. UsageError says what is not as declared."""
    found: dict[str, Left] = {}
    for pattern in patterns:
        names = _matches(out, pattern)
        if not names and pattern == LOG and log.is_file():
            found[LOG] = Left(LOG, log)
        elif not names:
            raise UsageError(f"it ended well and left no {pattern}, which is declared as an artifact")
        found |= {name: Left(name, out / name) for name in names}
    for each in found.values():
        _check(each, out)
    return [found[name] for name in sorted(found)]


def publish(plan: Plan, cell: Cell, attempt: Attempt, left: Sequence[Left]) -> tuple[dict[str, Artifact], str]:
    """Copy what the attempt has left; durable when this returns. (what, by name; where: a key, a path or ``blobs``).

    Raises NotKept, and then nothing of it is under the cell's name.
    """
    try:
        place = final_place(attempt.store, plan)
        if place is None:
            return _blobs(attempt, left), BLOBS
        claim_place(attempt.store, plan)
        publisher = Publisher(place, cell.name, (attempt.n, attempt.attempt), attempt.nonce)
        artifacts, folder = publisher.publish(left, lambda kept: _manifest(plan, cell, attempt, kept))
    except (OSError, StoreError, RefusedError) as wrong:
        raise NotKept(_said(wrong, final_place(attempt.store, plan))) from wrong
    root = attempt.store.backend.root
    ours = plan.task.final is None and root is not None
    return artifacts, folder.relative_to(root).as_posix() if ours and root is not None else str(folder)


def _said(wrong: OSError | DibsError, place: Path | None) -> str:
    if isinstance(wrong, OSError) and wrong.strerror:
        return f"{wrong.filename2 or wrong.filename or f'the copy in {place}'}: {wrong.strerror}"
    return str(wrong)


def _matches(out: Path, pattern: str) -> list[str]:
    if pattern.startswith("/") or ".." in Path(pattern).parts:
        raise UsageError(f"the artifact {pattern} lies outside the output folder: name it within {{out}}")
    try:
        there = sorted(out.glob(pattern)) if any(c in pattern for c in "*?[") else [out / pattern]
        found = [path for path in there if path.is_symlink() or path.exists()]
    except (OSError, ValueError) as wrong:
        raise UsageError(f"the artifact {pattern} cannot be looked for: {wrong}") from None
    exact = len(there) == 1 and there[0] == out / pattern
    return [path.relative_to(out).as_posix() for path in found if exact or path.is_symlink() or not path.is_dir()]


def _check(left: Left, out: Path) -> None:
    """UsageError for what is no plain file of the cell's own."""
    if not is_path(left.name) or left.name.split("/", 1)[0] == MANIFEST:
        raise UsageError(f"the artifact {left.name!r:.200} cannot be kept under that name: call it otherwise")
    links = [left.path, *(path for path in left.path.parents if path.is_relative_to(out) and path != out)]
    link = next((path for path in links if path.is_symlink()), None)
    if link is not None:
        raise UsageError(
            f"the artifact {left.name} is a link, or behind one ({link}): what it leads to may be gone by then"
        )
    told = left.path.stat()
    if not stat.S_ISREG(told.st_mode):
        raise UsageError(f"the artifact {left.name} is no plain file: name files, such as {left.name}/*")
    if not told.st_size:
        raise UsageError(f"it ended well and left {left.name} empty, which is declared as an artifact")


def _blobs(attempt: Attempt, left: Sequence[Left]) -> dict[str, Artifact]:
    """Copies as blobs, named in the record, each read back."""
    found = {}
    for each in left:
        digest: str = attempt.store.put(each.path)
        hasher, size = hashlib.sha256(), 0
        for chunk in attempt.store.backend.stream(blob_key(digest)) or ():
            hasher.update(chunk)
            size += len(chunk)
        if hasher.hexdigest() != digest:
            raise StoreError(f"{each.name} came out of the store with other bytes than went in")
        attempt.files[f"final/{each.name}"] = digest
        found[each.name] = Artifact(each.name, digest, size)
    return found


class Publisher:
    """One copy's way to the folder ``name`` in ``place``. ``at``: the trial and attempt it is of; ``token``: this copier's own."""

    def __init__(self, place: Path, name: str, at: tuple[int, int], token: str) -> None:
        self.place, self.name, self.at = place, name, at
        self.part = place / f".part-{name}-{token}"

    def publish(
        self, left: Sequence[Left], manifest: Callable[[Mapping[str, Artifact]], bytes]
    ) -> tuple[dict[str, Artifact], Path]:
        """Copy the files, and give the copy its name; returns what was copied and where it is. Raises OSError, NotKept."""
        self.place.mkdir(parents=True, exist_ok=True)
        self._tidy()
        try:
            self.part.mkdir()
            artifacts = {each.name: self._copy(each) for each in left}
            with (self.part / MANIFEST).open("xb") as file:
                file.write(manifest(artifacts))
                file.flush()
                os.fsync(file.fileno())
            for folder in (*(path for path in self.part.rglob("*") if path.is_dir()), self.part):
                _sync(folder)
            return artifacts, self._named()
        except BaseException:
            shutil.rmtree(self.part, ignore_errors=True)  # a full disk gets its room back
            raise

    def _tidy(self) -> None:
        """Remove what killed copiers of this cell have left."""
        ours = len(self.part.name)
        for other in self.place.glob(f".part-{self.name}-*"):
            if len(other.name) == ours and other != self.part:  # a longer one is of a cell whose name goes on
                shutil.rmtree(other, ignore_errors=True)

    def _copy(self, left: Left) -> Artifact:
        target = self.part / left.name
        target.parent.mkdir(parents=True, exist_ok=True)
        hasher, size = hashlib.sha256(), 0
        with os.fdopen(os.open(left.path, os.O_RDONLY | NOFOLLOW), "rb") as source, target.open("xb") as copy:
            before = os.fstat(source.fileno())
            while chunk := source.read(_CHUNK):
                hasher.update(chunk)
                size += len(chunk)
                copy.write(chunk)
            copy.flush()
            os.fsync(copy.fileno())
            after = os.fstat(source.fileno())
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or size != after.st_size:
                raise NotKept(f"{left.name} was written to while it was copied")
            if hasattr(os, "posix_fadvise"):  # what is read back should come from the disk
                os.posix_fadvise(copy.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if hash_file(target) != (size, hasher.hexdigest()):
            raise NotKept(f"{target} was read back with other bytes than were written")
        return Artifact(left.name, hasher.hexdigest(), size)

    def _named(self) -> Path:
        """Give the copy its name, or its place among those put aside; returns where it is."""
        folder = self.place / self.name
        for _ in range(_TURNS):
            try:
                self.part.rename(folder)
                _sync(self.place)
                return folder
            except OSError as wrong:
                if wrong.errno not in _THERE:
                    raise
            theirs = manifest_of(folder)
            at = (theirs.get("n", -1), theirs.get("attempt", -1))
            if at > self.at:
                return self._put_aside(self.part, self.at)
            with suppress(FileNotFoundError):  # somebody else has put it aside
                self._put_aside(folder, at)
        raise NotKept(f"{folder} was taken {_TURNS} times while it was given its name")

    def _put_aside(self, folder: Path, at: tuple[int, int]) -> Path:
        aside = self.place / ASIDE
        if aside.is_symlink():
            raise NotKept(f"{aside} is a link, and what is put aside stays here: remove it")
        aside.mkdir(exist_ok=True)
        name = f"{self.name}-{max(0, at[0])}-{max(0, at[1])}"
        for turn in range(_TURNS):
            target = aside / (f"{name}.{turn}" if turn else name)
            try:
                folder.rename(target)
            except OSError as wrong:
                if wrong.errno not in _THERE:
                    raise
                continue
            _sync(aside)
            _sync(self.place)
            return target
        raise NotKept(f"{folder} could not be put aside: {aside} is full of its like")


def _manifest(plan: Plan, cell: Cell, attempt: Attempt, artifacts: Mapping[str, Artifact]) -> bytes:
    body = {
        "v": 1, "sweep": plan.sweep, "cell": cell.name, "n": attempt.n, "attempt": attempt.attempt, "nonce": attempt.nonce,
        "digest": cell.digest, "artifacts": {name: each.to_json() for name, each in sorted(artifacts.items())},
    }  # fmt: skip
    return json.dumps(body, indent=1, sort_keys=True).encode()


def manifest_of(folder: Path) -> dict[str, Any]:
    """What a folder of results says of itself; empty if it says nothing that reads."""
    try:
        body = json.loads(b"".join(chunks_of(folder / MANIFEST)))
    except (OSError, ValueError, RecursionError):
        return {}
    whole = isinstance(body, dict) and all(isinstance(body.get(key), int) for key in ("n", "attempt"))
    return body if whole else {}


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as wrong:
        if wrong.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that has no such thing
            raise
    finally:
        os.close(fd)
