"""The sink's private folder: made where ``DIBS_SINK_DIR`` says, removed when its maker ends or says so.

A maker that is killed cannot; the next one that makes a folder beside it does, if the first is certainly dead.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from dibs._passing import interrupts
from dibs.errors import StoreError

from ._owner import OWNER, is_left_behind, let_go, own
from ._spool import BLOB, KEPT, SEEN, TEMP

__all__ = ["PLACE", "is_of_this_program", "is_ours", "make_folder", "remove_folder"]

log = logging.getLogger("dibs")
PLACE = "DIBS_SINK_DIR"
_PREFIX = "dibs-sink-"
_OURS = (BLOB, KEPT, SEEN, TEMP)
_TRIES = 5  # a worker that is still at it may add a file between the look and the removal

_made: dict[str, int] = {}  # the folders made by this process, with its pid, or by one that it is a fork of, with 0


def make_folder() -> str:
    """A new folder, absolute, for this user alone (0700), in which a file could be written just now; gone when this process ends.

    Those that dead processes of this user left beside it are removed first. A ``DIBS_SINK_DIR`` in which that fails is warned of, and the temporary folder is used. StoreError if that fails, too.
    """
    place = os.environ.get(PLACE, "")
    folder = ""
    if place:
        try:
            folder = _make(str(Path(place).absolute()))
        except (OSError, ValueError) as error:
            if interrupts(error):
                raise
            log.warning("%s=%s cannot be used (%s); the sink is in the temporary folder", PLACE, place, error)
    try:
        folder = folder or _make(None)
    except OSError as error:
        if interrupts(error):
            raise
        raise StoreError(
            f"no folder for the sink could be made ({error}): let {PLACE} name a folder that can be written"
        ) from error
    _at_end(os.getpid())
    _made[folder] = os.getpid()
    return folder


def _make(place: str | None) -> str:
    import tempfile  # with all that it loads: only who creates a sink needs it

    _remove_left_behind(place or tempfile.gettempdir())  # first: it may be their files that fill the disk
    folder = str(Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place)).absolute())
    try:
        own(folder)  # a full disk still has room for a folder
    except OSError:
        with suppress(OSError):
            Path(folder, OWNER).unlink(missing_ok=True)
            Path(folder).rmdir()
        raise
    return folder


def _remove_left_behind(place: str) -> None:
    """Remove the folders there whose owners were killed. What cannot be looked at or removed is left."""
    try:
        with os.scandir(place) as found:
            folders = [entry.path for entry in found if entry.name.startswith(_PREFIX)]
    except (OSError, ValueError) as error:
        if interrupts(error):
            raise
        return
    for folder in folders:
        if is_left_behind(folder):
            log.debug("the sink's folder %s was left by a process that is dead, and is removed", folder)
            _empty(folder)


def is_ours(folder: str) -> bool:
    """Whether this very process made it: neither a copy in a worker nor a fork."""
    return _made.get(folder) == os.getpid()


def is_of_this_program(folder: str) -> bool:
    """Whether its maker runs this main script, with the very same classes: this process, or one that it is a fork of."""
    return folder in _made


def remove_folder(folder: str) -> None:
    """Remove what a sink has written there, and the folder if it is empty then. A second time nothing happens.

    Only files by a sink's names go: of a folder that was somebody else's the rest stays. What cannot be removed is warned of.
    """
    let_go(folder)
    error = _empty(folder)
    _made.pop(folder, None)
    if error is not None:
        log.warning("the sink's folder %s could not be removed: %s", folder, error)


def _empty(folder: str) -> OSError | None:
    """Remove a sink's files and the folder; what was in the way. Who owned it goes last, so that others can go on with it."""
    error: OSError | None = None
    for _ in range(_TRIES):
        try:
            with suppress(FileNotFoundError), os.scandir(folder) as found:
                ours = [entry for entry in found if entry.name.startswith(_OURS)]
                for entry in sorted(ours, key=lambda entry: entry.name == OWNER):
                    Path(entry.path).unlink(missing_ok=True)
                Path(folder).rmdir()
            return None
        except OSError as failed:
            if interrupts(failed):
                raise
            error = failed
    return error


@cache
def _at_end(pid: int) -> None:
    """Once per process: see to it that what it makes goes with it. The children of multiprocessing run no atexit."""
    atexit.register(_remove_made)
    if (util := sys.modules.get("multiprocessing.util")) is not None:
        util.Finalize(None, _remove_made, exitpriority=0)


def _remove_made() -> None:
    for folder in list(_made):
        if is_ours(folder):
            remove_folder(folder)


def _forked() -> None:
    _made.update(dict.fromkeys(_made, 0))


if hasattr(os, "register_at_fork"):  # a child's child may be given the pid again
    os.register_at_fork(after_in_child=_forked)
