"""Where an attempt's program writes: a folder that is this attempt's alone, and what earlier attempts have left.

Two stores may be given one work folder, and a store may be made anew beside what an old one left, so a folder says by
its attempt's nonce whose it is: what somebody else left there is neither written to nor taken for an earlier attempt's.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dibs.cell import claim_folder, folder_owner
from dibs.errors import RecordError, StoreError, UsageError
from dibs.record import TrialRecord, decode_trial

from ._attempt import Attempt
from ._workplace import folder_of, place_of

__all__ = ["Outputs", "Owned", "base_of", "left_by", "make_outputs", "record_of"]

_MARK = "attempt"
Owned = Callable[[int], str]
_NO_FOLDER = (errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.ELOOP)  # the point's doing, not the disk's


@dataclass(frozen=True)
class Outputs:
    """``base``: for what belongs to the attempt besides its output, such as the result file; ``out``: the output."""

    base: Path
    out: Path

    @property
    def result(self) -> Path:
        """The file that may hold the score."""
        return self.base / "result.json"


def make_outputs(attempt: Attempt, elsewhere: Path | None = None, owned: Owned | None = None) -> Outputs:
    """This attempt's folders, empty. ``elsewhere``: the output folder that somebody asked for, which is claimed, in the
    name that ``owned`` gives to this attempt (a trial and its study).

    Raises UsageError if that one, or one within or around it, is another's, or holds anything, or can be no folder;
    StoreError if they cannot be made.
    """
    try:
        base = _own(attempt)
        return Outputs(base, base / "out" if elsewhere is None else _given(attempt, elsewhere, owned))
    except StoreError:
        raise
    except OSError as wrong:
        raise StoreError(f"the folder {wrong.filename} cannot be made: {wrong.strerror or wrong}") from wrong


def _given(attempt: Attempt, folder: Path, owned: Owned | None) -> Path:
    """The folder that somebody asked for, by its real path."""
    real = Path(os.path.realpath(folder))
    root = attempt.store.backend.root
    for kept in (place_of(attempt).parent, *([root / "study", root / "sweep"] if root is not None else [])):
        where = Path(os.path.realpath(kept))
        if real.is_relative_to(where) or where.is_relative_to(real):
            raise UsageError(
                f"the output folder {real} would share its files with {where}, where all attempts have theirs"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as wrong:
        if wrong.errno not in _NO_FOLDER:
            raise
        raise UsageError(f"the output folder {str(folder)!r:.200} cannot be made: {wrong.strerror}") from None
    claim_folder(attempt.store, real, _owner(attempt, attempt.attempt, owned))
    with os.scandir(real) as found:  # also where another store, or another path, has given it to somebody
        held = next(found, None)
    if held is not None:
        raise UsageError(
            f"the output folder {real} is not empty (there is {held.name!r:.80}), and would not be this attempt's alone"
        )
    return real


def left_by(
    attempt: Attempt, earlier: TrialRecord, elsewhere: Path | None = None, owned: Owned | None = None
) -> Path | None:
    """The output folder of an earlier attempt at the trial, if it is on this machine and something is in it."""
    try:
        if elsewhere is not None:
            ours = folder_owner(attempt.store, elsewhere) == _owner(attempt, earlier.attempt, owned)
            return elsewhere if ours and any(elsewhere.iterdir()) else None
        base = base_of(attempt, earlier)
        return base / "out" if base is not None and any((base / "out").iterdir()) else None
    except (OSError, ValueError):  # nothing there, or nothing one could use
        return None


def base_of(attempt: Attempt, earlier: TrialRecord) -> Path | None:
    """What an earlier attempt at the trial had for itself, if it is on this machine."""
    for base in _bases(place_of(attempt, earlier), earlier.nonce):
        with suppress(OSError, ValueError):
            if (base / _MARK).read_text() == earlier.nonce:
                return base
    return None


def record_of(attempt: Attempt, number: int) -> TrialRecord | None:
    """The record of another attempt at the same trial; None if there is none that reads."""
    key = attempt.keys.attempt(attempt.n, number)
    there = attempt.store.backend.read(key)
    try:
        return decode_trial(there.data, key) if there is not None else None
    except RecordError:
        return None


def _own(attempt: Attempt) -> Path:
    """The attempt's private folder, or one within it where that has been used by others; with an empty ``out`` in it."""
    for base in _bases(folder_of(attempt), attempt.nonce):
        base.mkdir(exist_ok=True)
        try:
            (base / "out").mkdir()
        except FileExistsError:
            continue
        (base / _MARK).write_text(attempt.nonce)
        (base / "result.json").unlink(missing_ok=True)
        return base
    raise StoreError(f"{base / 'out'} is there already: only this attempt could have made it")


def _bases(folder: Path, nonce: str) -> tuple[Path, Path]:
    return folder, folder / nonce


def _owner(attempt: Attempt, number: int, owned: Owned | None) -> str:
    if owned is not None:
        return owned(number)
    return f"trial {attempt.n} attempt {number} of study {attempt.keys.name!r}"
