"""What this process has spooled so far, by folder: the marks that most trials do not beat.

A module global, so that a sink can be pickled, copied and forked as the two words it is. A mark says what certainly lies
in the folder, never more: it moves after a commit. A forked child has none of its parent's.
"""

from __future__ import annotations

import os
from threading import RLock

from ._score import TIES, TIES_BYTES, Standing

__all__ = ["Mark", "forget", "is_held", "mark_of", "renew"]

_FEW = 64


class Mark:
    """The best score and the best score with an artefact that lie under one token, and nobody else's.

    ``token``: in the name of every file this writes; 64 bits that no other process has drawn, so that no pid that is
    given out twice, no other host and no dropped mark ever writes over what somebody wrote. ``busy``: a commit is under way,
    or was interrupted; either way this mark may no longer be what the folder has, and a new one takes over. ``others_seen``
    and ``others_kept``: what others had there when it began, so that a process per batch does not mean a file per process.
    """

    __slots__ = (
        "blob",
        "busy",
        "bytes",
        "kept",
        "lock",
        "looked",
        "others_kept",
        "others_seen",
        "pid",
        "seen",
        "serial",
        "tied",
        "tied_bytes",
        "ties",
        "token",
        "unsure",
        "warned",
    )  # fmt: skip

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.token = f"{pid}-{os.urandom(8).hex()}"
        self.serial = 0
        self.seen: float | None = None
        self.kept: float | None = None
        self.looked = False
        self.others_seen = Standing()
        self.others_kept = Standing()
        self.blob, self.bytes = "", 0  # the file of the artefact of ``kept``
        self.ties = 0  # how many equals of ``seen`` are held besides it
        self.tied: list[str] = []  # their files
        self.tied_bytes = 0
        self.busy = False
        self.unsure = False  # a rename failed, and what is there now cannot be read
        self.warned = False
        self.lock = RLock()


_marks: dict[tuple[str, int], Mark] = {}
_many = _FEW


def mark_of(folder: str) -> Mark:
    """This process's mark for that folder; one call of the system and a look-up."""
    pid = os.getpid()
    return _marks.get((folder, pid)) or _new(folder, pid)


def renew(folder: str, old: Mark) -> None:
    """Let a new mark take over from one that is busy in this very thread: a signal, or a commit that was interrupted."""
    if _marks.get((folder, old.pid)) is old:
        _marks[folder, old.pid] = Mark(old.pid)


def is_held(mark: Mark, carries: bool, size: int | None = None) -> bool:
    """Whether an equal of the process's best is held besides it. ``size``: of its artefact, None: not pickled yet, so as the best's."""
    if mark.ties >= TIES:
        return False
    if not carries:
        return True
    if mark.kept == mark.seen and mark.tied_bytes + (mark.bytes if size is None else size) <= TIES_BYTES:
        return True
    mark.ties = TIES if size is not None else mark.ties  # nor is any more, or each would be pickled to find that out
    return False


def forget(folder: str) -> None:
    """The folder is gone, or about to be."""
    _marks.pop((folder, os.getpid()), None)


def _new(folder: str, pid: int) -> Mark:
    """A mark, or the one that another thread has just made; those of folders that are gone make room."""
    global _many
    if len(_marks) >= _many:
        for key in [key for key in list(_marks) if not os.path.isdir(key[0])]:  # noqa: PTH112 - a text, as in the key
            _marks.pop(key, None)
        _many = max(_FEW, 2 * len(_marks))
    return _marks.setdefault((folder, pid), Mark(pid))


if hasattr(os, "register_at_fork"):  # a parent's locks may be held, and its pid be given to a child of its child
    os.register_at_fork(after_in_child=_marks.clear)
