"""The files of one process in the spool, and the order in which they are written.

    blob-<token>-<serial>.pkl   an artefact, under a name that nobody has written before
    kept-<token>.json           the best trial that carried one, and the blob's name; replaced whole, after the blob
    seen-<token>.json           the best trial of all, numbers only; replaced whole
    kept-<token>-<serial>.json  an equal of it with a blob of its own, and seen-... one without; removed when a better one is there

Killed anywhere, a process leaves the previous complete pair or the new one. Nothing waits for the disk (no fsync): what
is guarded against is a killed worker, not a machine that loses power, whose search is lost with it.
"""

# Plain strings and os calls, as in the backend: a Path costs as much as the system call behind it.
# ruff: noqa: PTH105, PTH108

from __future__ import annotations

import json
import os
from typing import Any

from dibs._passing import interrupts

from ._marks import Mark
from ._score import TIES

__all__ = ["BLOB", "KEPT", "SEEN", "TEMP", "commit", "hold"]

BLOB, KEPT, SEEN, TEMP = "blob-", "kept-", "seen-", ".dibs-sink-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def commit(folder: str, mark: Mark, trial: dict[str, Any], data: bytes | None, sees: bool) -> list[OSError]:
    """Write what the trial is the best of, the artefact first, and move the marks that hold; what went wrong.

    For who holds the mark's lock. After an error the mark is where it was, so that a later trial may try again; where
    it cannot be known what the folder has (Ctrl-C, an alarm, no memory, no answer) the mark stays busy and is not used again.
    """
    mark.busy = True
    mark.serial += 1
    trial = {"v": 1, "trial": f"{mark.token}-{mark.serial}", **trial}
    wrong: list[OSError] = []
    if data is not None:
        try:
            _keep(folder, mark, trial, data)
        except OSError as error:
            if interrupts(error):
                raise
            wrong.append(error)
            trial = {**trial, "artifact_error": f"could not be written: {error}"}
    if sees:
        try:
            _replace(folder, mark, f"{SEEN}{mark.token}.json", _body(trial))
            mark.seen = trial["score"]
            _drop(mark)
        except OSError as error:
            if interrupts(error):
                raise
            wrong.append(error)
    mark.busy = mark.unsure
    return wrong


def hold(folder: str, mark: Mark, trial: dict[str, Any], data: bytes | None) -> list[OSError]:
    """Write an equal of the best under names of its own, so that parameters may decide between them; what went wrong.

    For who holds the mark's lock, as ``commit``.
    """
    mark.busy = True
    mark.serial += 1
    own = f"{mark.token}-{mark.serial}"
    trial = {"v": 1, "trial": own, **trial}
    wrong: list[OSError] = []
    try:
        if data is not None:
            mark.tied.append(f"{folder}/{KEPT}{own}.json")
            mark.tied.append(f"{folder}/{_pair(folder, mark, f'{KEPT}{own}.json', trial, data)}")
        else:
            mark.tied.append(f"{folder}/{SEEN}{own}.json")
            _replace(folder, mark, f"{SEEN}{own}.json", _body(trial))
        mark.ties += 1
        mark.tied_bytes += len(data or b"")
    except OSError as error:
        if interrupts(error):
            raise
        mark.ties = TIES  # there is no room for more
        wrong.append(error)
    mark.busy = mark.unsure
    return wrong


def _drop(mark: Mark) -> None:
    """A better one is there: its former equals are of no use."""
    for path in mark.tied:
        _remove(path, mark)
    mark.tied, mark.tied_bytes, mark.ties = [], 0, 0


def _keep(folder: str, mark: Mark, trial: dict[str, Any], data: bytes) -> None:
    """The blob, then its metadata, then the mark, then away with the old blob. OSError: nothing has changed."""
    blob = _pair(folder, mark, f"{KEPT}{mark.token}.json", trial, data)
    old, mark.blob, mark.bytes, mark.kept = mark.blob, blob, len(data), trial["score"]
    if old:
        _remove(f"{folder}/{old}", mark)


def _pair(folder: str, mark: Mark, name: str, trial: dict[str, Any], data: bytes) -> str:
    """The blob and then, under that name, its metadata; the blob's name. OSError: there is neither."""
    blob = f"{BLOB}{mark.token}-{mark.serial:06d}.pkl"
    _create(f"{folder}/{blob}", data, mark)
    body = _body({**trial, "blob": blob, "bytes": len(data)})
    try:
        _replace(folder, mark, name, body)
    except BaseException:
        if not _holds(f"{folder}/{name}", body, mark) and not mark.unsure:  # else the metadata may name it
            _remove(f"{folder}/{blob}", mark)
        raise
    return blob


def _replace(folder: str, mark: Mark, name: str, body: bytes) -> None:
    """Give a file of the process's a new content, whole. OSError: it has the old one, or none."""
    path, temp = f"{folder}/{name}", f"{folder}/{TEMP}{name}-{mark.serial}"
    _create(temp, body, mark)
    try:
        _demand_ours(mark)
        os.replace(temp, path)
    except BaseException as error:
        # over a network the answer may be lost, and the file there
        if isinstance(error, OSError) and not interrupts(error) and _holds(path, body, mark):
            return
        _remove(temp, mark)
        raise


def _body(trial: dict[str, Any]) -> bytes:
    return json.dumps(trial).encode("ascii")


def _create(path: str, data: bytes, mark: Mark) -> None:
    """A new file with these bytes; on an error there is none."""
    _demand_ours(mark)
    fd = os.open(path, _NEW, 0o600)
    try:
        try:
            done = 0
            while done < len(data):
                _demand_ours(mark)
                done += os.write(fd, memoryview(data)[done:])
        finally:
            os.close(fd)  # a network file system reports a full disk here
    except BaseException:
        _remove(path, mark)
        raise


def _demand_ours(mark: Mark) -> None:
    """OSError in a child that a signal handler has forked in the middle of a commit: the names are its parent's, who goes on."""
    if os.getpid() != mark.pid:
        raise ChildProcessError("this process was forked from one that recorded a trial just then")


def _holds(path: str, body: bytes, mark: Mark) -> bool:
    """Whether the file has this content; the mark is unsure if that cannot be found out."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read() == body
    except FileNotFoundError:
        return False
    except OSError as error:
        mark.unsure = True
        if interrupts(error):
            raise
        return False


def _remove(path: str, mark: Mark) -> None:
    if os.getpid() != mark.pid:
        return
    try:
        os.unlink(path)
    except OSError as error:
        if interrupts(error):
            raise
