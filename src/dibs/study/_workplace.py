"""An attempt's private folder: where it is, and that nobody else could have planted it.

Under ``DIBS_WORK``, else in the store; a bucket has no folders, so there it is in this machine's temporary folder,
in one that is this user's alone. Outside the store a name ends in the attempt's nonce: stores with studies of one name, or
one made anew, meet there. No link on the way is followed.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from stat import S_ISDIR

from dibs.errors import StoreError
from dibs.record import TrialRecord
from dibs.store import Store

from ._attempt import Attempt

__all__ = ["folder_of", "keep_log", "place_of", "places_of", "temporary_place"]

log = logging.getLogger("dibs")
_NONCE = 12  # of its 32 digits


def place_of(attempt: Attempt, earlier: TrialRecord | None = None) -> Path:
    """Where the attempt's folder is, or would be; or that of an ``earlier`` attempt at the trial."""
    number, nonce = (attempt.attempt, attempt.nonce) if earlier is None else (earlier.attempt, earlier.nonce)
    work = os.environ.get("DIBS_WORK")
    return places_of(attempt.store, attempt.keys.work(attempt.n, number), nonce, Path(work) if work else None)[0]


def places_of(store: Store, work: str, nonce: str, elsewhere: Path | None) -> list[Path]:
    """Where an attempt's folder may be, the likeliest first. ``work``: as the store's keys name it; ``elsewhere``: what
    ``DIBS_WORK`` says."""
    root = store.backend.root
    outside = [elsewhere.absolute()] if elsewhere is not None else []
    outside += [temporary_place()] if root is None else []
    own = f"{work.removeprefix('study/')}-{nonce[:_NONCE]}"
    return [*(base / own for base in outside), *([root / work] if root is not None else [])]


def folder_of(attempt: Attempt) -> Path:
    """The folder, made if it is not there. Raises StoreError for a planted one, or one that cannot be made."""
    path = place_of(attempt)
    for link in filter(Path.is_symlink, _with_above(attempt, path)):
        raise StoreError(f"{link} is a link: whoever planted it would get this trial's files; remove it by hand")
    try:
        _own_temporary(attempt)
        path.mkdir(parents=True, exist_ok=True)
    except OSError as wrong:
        if isinstance(wrong, StoreError):
            raise
        raise StoreError(f"the folder {path} cannot be made: {wrong.strerror or wrong}") from wrong
    return path


def keep_log(attempt: Attempt) -> None:
    """In a bucket nobody else could read this machine's log: it is kept by digest, if there is one."""
    store = attempt.store
    if store.backend.root is not None:
        return
    path = place_of(attempt) / "log.txt"
    try:
        if path.is_file() and path.stat().st_size:
            attempt.files["log.txt"] = store.put(path)
    except (OSError, StoreError) as wrong:
        log.warning("%s: its log stays on this machine (%s): %s", attempt.called, path, wrong)


def temporary_place() -> Path:
    """Where all attempts of a store in a bucket have theirs."""
    import tempfile  # with all compression libraries: for workers on buckets alone

    return Path(tempfile.gettempdir()) / f"dibs-work-{os.getuid()}"


def _own_temporary(attempt: Attempt) -> None:
    """In the temporary folder, where everybody writes, the folder for all attempts is this user's alone."""
    if os.environ.get("DIBS_WORK") or attempt.store.backend.root is not None:
        return
    base = temporary_place()
    base.mkdir(mode=0o700, exist_ok=True)
    stat = base.lstat()
    if not S_ISDIR(stat.st_mode) or stat.st_uid != os.getuid() or stat.st_mode & 0o022:
        raise StoreError(f"{base} is somebody else's, or others may write to it: set DIBS_WORK to a folder of yours")


def _with_above(attempt: Attempt, path: Path) -> list[Path]:
    """The folder itself, and those above it that others who write to the store could have made."""
    root = attempt.store.backend.root
    above = path.parents if root is not None and path.is_relative_to(root) else ()
    return [path, *(each for each in above if each != root and each.is_relative_to(root or each))]
