"""What an operating system's error means for a store: certain or not, and in which words.

Certain = the call failed and nothing happened or will happen. Whatever is not known to be certain
(EIO, ESTALE, a time-out of the network) is treated as unsure: that is never wrong, only slower.
"""

from __future__ import annotations

import errno

from dibs.errors import StoreError

__all__ = ["is_certain", "store_error"]

_SENTENCES = {
    errno.ENOSPC: "the disk is full (or out of inodes): make room, then start again",
    errno.EDQUOT: "the disk quota is used up: make room or ask for more",
    errno.EFBIG: "the file is larger than this system allows: raise the limit (ulimit -f) or write less",
    errno.EROFS: "the file system is mounted read-only: remount it writable or use another store",
    errno.EACCES: "permission denied: give this user read and write access to the whole store",
    errno.EPERM: "the operation is not permitted here: check the owner and the type of the file system",
    errno.ENAMETOOLONG: "the name is too long for this file system: use shorter names",
    errno.ENOTDIR: "a part of the name is a file: the store's layout is damaged, run `dibs check`",
    errno.EISDIR: "a folder stands where a record belongs: remove it by hand",
    errno.ENOTEMPTY: "a folder stands where a record belongs: remove it by hand",
    errno.ELOOP: "a symbolic link stands where a record belongs: remove it by hand",
    errno.EXDEV: "the name lies on another file system than tmp/: a store must be one file system, without mounts or links inside",
    errno.EMFILE: "this process has too many open files: raise the limit (ulimit -n)",
    errno.ENFILE: "this machine has too many open files",
    errno.ESTALE: "the network share lost the file (stale handle): check the mount",
    errno.ENOSYS: "this file system cannot do it: use another one, or the claim method mkdir",
    errno.EOPNOTSUPP: "this file system cannot do it: use another one, or the claim method mkdir",
    errno.EMLINK: "this file system takes no further hard link: use the claim method mkdir",
}
_CERTAIN = frozenset(_SENTENCES) - {errno.ESTALE, errno.EPERM}


def is_certain(error: OSError) -> bool:
    """True if the call certainly had no effect. EPERM is not: an sshfs mount answers it to the loser of a race."""
    return error.errno in _CERTAIN


def store_error(error: OSError, doing: str, name: str, key: str | None = None) -> StoreError:
    """The StoreError for ``error``: what was being done to which file, why it failed, and the remedy."""
    why = (
        _SENTENCES.get(error.errno or 0)
        or f"{error.strerror or error} (errno {error.errno}): check the disk or the mount"
    )
    wrapped = StoreError(f"cannot {doing} {name}: {why}", key=key)
    wrapped.errno = error.errno
    return wrapped
