"""A store in a folder, local or shared: link(2) or mkdir(2) decides a claim, rename(2) rewrites.

Nothing is ever written in place, so a reader sees one whole write or another. A claim costs open+write+close,
link, unlink; a rewrite open+write+close, rename; all else happens on the way of an error.
Surprising: ENOENT has three meanings (no parent yet, the temporary is gone, the share is not mounted).
"""

# ruff: noqa: PTH - plain strings and os calls: a Path costs as much as the system call behind it

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from dibs.backend._base import Backend, Draft, Entry, Object, Outcome, Traits
from dibs.backend._fsync import sync_folder
from dibs.backend._names import TEMPS, check_key, check_prefix
from dibs.backend._oserrors import is_certain, store_error
from dibs.backend._temps import TempNames, write_whole
from dibs.backend._walk import CLAIM, folders_below, version_of, walk
from dibs.errors import StoreError, UsageError

__all__ = ["FolderBackend"]

_READ = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"):  # no link is followed, no FIFO waited for
    _READ |= getattr(os, _flag, 0)
_TRIES = 3
_LIMIT = 64 << 20  # bytes; what is larger is a blob and is streamed
_CHUNK = 1 << 20
_TOUCH_FOLLOWS = os.utime not in os.supports_follow_symlinks


class FolderDraft(Draft):
    """A draft that remembers what its earlier tries certainly did."""

    __slots__ = ("claimed", "linked")

    def __init__(self, data: bytes | None, temp: str, size: int, durable: bool) -> None:
        super().__init__(data, temp, size, durable)
        self.linked = False  # a link to the temporary was made: rename(2) onto it would do nothing
        self.claimed = ""  # the key whose mkdir this draft won


class FolderBackend(Backend):
    """Bytes under keys in ``root``; ``claim`` is the method, ``"link"`` or ``"mkdir"``.

    At most one creator of a key is told WON, on every file system whose link(2) or mkdir(2) is exclusive
    (``dibs doctor`` finds out). With mkdir, a claimed key whose record is not written yet reads as ``b""``.
    Folders that are symbolic links are not listed; reading a key does not check the folders on its way.
    """

    def __init__(self, root: Path | str, claim: str = "link") -> None:
        if claim not in ("link", "mkdir"):
            raise UsageError(f"claim={claim!r}: a folder claims by 'link' or by 'mkdir'")
        self.root: Path = Path(root).absolute()
        self.traits = Traits("folder", claim, conditional_replace=False, touch=True, listing_sorted=True)
        self._base = str(self.root).rstrip("/") + "/"
        self._mkdir = claim == "mkdir"
        self._names = TempNames()
        self._anchored: set[str] = set()  # folders whose own name is known to be on the disk
        self._probe: tuple[int, str] | None = None  # pid and path of the file that tells the time

    def __repr__(self) -> str:
        return f"FolderBackend({str(self.root)!r}, claim={self.traits.claim!r})"

    def __reduce__(self) -> tuple[type[FolderBackend], tuple[str, str]]:
        return FolderBackend, (str(self.root), self.traits.claim)

    def prepare(self) -> None:
        """Make the root, and ``tmp/`` in it, where the root's parent exists; StoreError with the reason otherwise."""
        try:
            os.mkdir(self.root)
        except FileExistsError:
            self._demand_root()
        except FileNotFoundError as error:
            raise StoreError(
                f"cannot make a store at {self.root}: the folder {self.root.parent} does not exist. Is the "
                "share mounted? If so, make that folder first"
            ) from error
        except OSError as error:
            raise store_error(error, "make a store at", str(self.root)) from error
        self._make_folder(TEMPS[:-1])

    # ---- writing

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        temp = self._names.new()
        path = self._base + temp
        try:
            size = write_whole(path, data, durable=durable)
        except FileNotFoundError:
            self._make_folder(TEMPS[:-1])  # the first write; nothing was taken from ``data`` yet
            size = write_whole(path, data, durable=durable)
        return FolderDraft(data if isinstance(data, bytes) else None, temp, size, durable)

    def create(self, key: str, draft: Draft) -> Outcome:
        self._check(key)
        assert isinstance(draft, FolderDraft)
        if self._mkdir:
            return self._create_by_mkdir(key, draft)
        if draft.spent:
            return Outcome.LOST
        temp, path = self._base + draft.temp, self._base + key
        try:
            while True:
                try:
                    os.link(temp, path)
                    break
                except FileNotFoundError:
                    if not self._make_parent(key, draft):
                        return Outcome.LOST
        except FileExistsError:
            if not _same_file(temp, path):
                return Outcome.LOST
        except OSError as error:
            if is_certain(error) or (error.errno == errno.EPERM and self._links_never(temp, path)):
                raise store_error(error, "claim", path, key) from error
            return Outcome.UNSURE
        draft.linked = True
        return self._settled(key, draft)

    def _create_by_mkdir(self, key: str, draft: FolderDraft) -> Outcome:
        path = self._base + key
        if draft.claimed != key:
            if draft.spent:
                return Outcome.LOST
            try:
                self._mkdir_claim(key, path)
            except FileExistsError:
                return Outcome.LOST
            except OSError as error:
                if is_certain(error) or error.errno == errno.EPERM:
                    raise store_error(error, "claim", path, key) from error
                return Outcome.UNSURE
            if os.path.lexists(path):  # written by replace, without a claim
                return Outcome.LOST
            draft.claimed = key
        try:
            os.replace(self._base + draft.temp, path)
        except FileNotFoundError:
            draft.spent = True  # it landed at an earlier try, or somebody removed it: the name knows
            return Outcome.UNSURE
        except OSError as error:
            if is_certain(error):
                with suppress(OSError):
                    os.rmdir(path + CLAIM)
                    draft.claimed = ""
                    raise store_error(error, "write", path, key) from error
            return Outcome.UNSURE
        draft.spent = True
        return self._settled(key, draft)

    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        self._check(key)
        assert isinstance(draft, FolderDraft)
        if draft.spent:
            return Outcome.LOST
        temp, path = self._base + draft.temp, self._base + key
        try:
            while True:
                try:
                    os.replace(temp, path)
                    break
                except FileNotFoundError:
                    if not self._make_parent(key, draft):
                        return Outcome.LOST
        except OSError as error:
            if is_certain(error) or error.errno == errno.EPERM:
                raise store_error(error, "rewrite", path, key) from error
            return Outcome.UNSURE
        if draft.linked:  # two names of one file: rename(2) does nothing and leaves both
            with suppress(OSError):
                os.unlink(temp)
        draft.spent = True
        return self._settled(key, draft)

    def discard(self, draft: Draft) -> bool:
        if draft.spent:
            return True
        try:
            os.unlink(self._base + draft.temp)
        except FileNotFoundError:
            if not os.path.isdir(self._base + TEMPS):
                return False  # an unmounted share looks like this, and the temporary is still on the server
        except OSError:
            return False
        draft.spent = True
        return True

    def touch(self, key: str) -> bool:
        self._check(key)
        for path in (self._base + key, self._base + key + CLAIM)[: 1 + self._mkdir]:
            try:
                os.utime(path, None, follow_symlinks=_TOUCH_FOLLOWS)
                return True
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise store_error(error, "touch", path, key) from error
        return False

    def delete(self, key: str) -> bool:
        """Remove the key; a temporary (``tmp/...``, from ``list("tmp/")``) may be named too, for cleaning up."""
        if not key.startswith(TEMPS):
            self._check(key)
        there = self._remove(os.unlink, key, "")
        if self._mkdir:  # behind the record, so that nobody can win the name while its record is still there
            there = self._remove(os.rmdir, key, CLAIM) or there
        return there

    # ---- reading

    def read(self, key: str) -> Object | None:
        self._check(key)
        path = self._base + key
        for attempt in range(1, _TRIES + 1):
            try:
                return _read_whole(path, key)
            except FileNotFoundError:
                return self._bare_claim(key) if self._mkdir else None
            except NotADirectoryError:
                self._demand_root(missing_ok=True)
                return None
            except OSError as error:
                if isinstance(error, StoreError):
                    raise
                if error.errno != errno.ESTALE or attempt == _TRIES:
                    raise store_error(error, "read", path, key) from error
        return None

    def stream(self, key: str) -> Iterator[bytes] | None:
        self._check(key)
        path = self._base + key
        try:
            fd = _open_regular(path, key)
        except FileNotFoundError:
            return iter(()) if self._mkdir and self._bare_claim(key) else None
        except NotADirectoryError:
            return None
        except StoreError:
            raise
        except OSError as error:
            raise store_error(error, "read", path, key) from error
        return _Chunks(fd, path, key)

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        """As the contract says; the temporaries only for ``list("tmp/")``, for cleaning up."""
        check_prefix(prefix)
        if after and after > prefix and not after.startswith(prefix):
            return iter(())
        return walk(self._base, prefix, after, details, self._mkdir)

    def folders(self, prefix: str) -> builtins.list[str]:
        check_prefix(prefix)
        return folders_below(self._base, prefix, self._mkdir)

    def now(self) -> float:
        for _ in range(_TRIES):
            probe = self._probe
            if probe is None or probe[0] != os.getpid():
                draft = self.stage(b"")
                self._probe = probe = (os.getpid(), self._base + draft.temp)
            try:
                os.utime(probe[1], None)
                return os.stat(probe[1]).st_mtime
            except FileNotFoundError:
                self._probe = None  # somebody cleaned up
            except OSError as error:
                raise store_error(error, "ask the store's time at", probe[1]) from error
        raise StoreError(f"cannot ask the store's time: files in {self._base}{TEMPS} vanish as soon as they are made")

    # ---- on the way of an error, and once per folder

    def _check(self, key: str) -> None:
        check_key(key)
        if self._mkdir and CLAIM + "/" in key + "/":
            raise UsageError(f"{key!r}: no name may end in {CLAIM} in a store that claims by mkdir")

    def _demand_root(self, *, missing_ok: bool = False) -> None:
        if os.path.isdir(self._base):
            return
        if os.path.lexists(self.root):
            raise StoreError(f"{self.root} is not a folder: a store needs one")
        if not missing_ok:
            raise StoreError(
                f"the store's folder {self.root} does not exist: is the share mounted? If it is, create the store first"
            )

    def _make_folder(self, folder: str) -> None:
        """Make a folder and its parents below the root, never the root itself: an unmounted share must not be filled."""
        try:
            os.mkdir(self._base + folder)
        except FileExistsError:
            return
        except (FileNotFoundError, NotADirectoryError) as error:
            parent = folder.rpartition("/")[0]
            if not parent:
                self._demand_root()
            elif isinstance(error, FileNotFoundError):
                self._make_folder(parent)
                with suppress(FileExistsError):
                    os.mkdir(self._base + folder)
                self._anchored.discard(folder)
                return
            raise store_error(error, "make the folder", self._base + folder) from error
        except OSError as error:
            raise store_error(error, "make the folder", self._base + folder) from error
        self._anchored.discard(folder)

    def _make_parent(self, key: str, draft: Draft) -> bool:
        """After ENOENT: False if the temporary is gone, else the key's folder is made and the call may go on."""
        if not os.path.lexists(self._base + draft.temp):
            if not os.path.isdir(self._base + TEMPS):
                self._demand_root()
                raise StoreError(f"{self._base}{TEMPS} is gone: is the share still mounted?", key=key)
            draft.spent = True
            return False
        folder = key.rpartition("/")[0]
        if not folder or os.path.isdir(self._base + folder):
            raise StoreError(
                f"cannot write {self._base}{key}: the system says that its folder is missing, and it is not", key=key
            )
        self._make_folder(folder)
        return True

    def _mkdir_claim(self, key: str, path: str) -> None:
        try:
            os.mkdir(path + CLAIM)
        except FileNotFoundError:
            folder = key.rpartition("/")[0]
            if not folder:
                self._demand_root()
            self._make_folder(folder)
            os.mkdir(path + CLAIM)

    def _links_never(self, temp: str, path: str) -> bool:
        """After EPERM: True if this file system makes no hard links at all, not even where nobody races."""
        if os.path.lexists(path):
            return False
        other = self._base + self._names.new()
        try:
            os.link(temp, other)
        except PermissionError:
            return True
        except OSError:
            return False
        with suppress(OSError):
            os.unlink(other)
        return False

    def _settled(self, key: str, draft: Draft) -> Outcome:
        """WON, once the name is on the disk where that was asked for."""
        if not draft.durable:
            return Outcome.WON
        try:
            folder = key.rpartition("/")[0]
            sync_folder(self._base + folder)
            while folder and folder not in self._anchored:
                parent = folder.rpartition("/")[0]
                sync_folder(self._base + parent)
                self._anchored.add(folder)
                folder = parent
        except OSError:
            return Outcome.UNSURE
        return Outcome.WON

    def _bare_claim(self, key: str) -> Object | None:
        path = self._base + key + CLAIM
        try:
            stat = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise store_error(error, "read", path, key) from error
        return Object(b"", version_of(stat, 0), stat.st_mtime)

    def _remove(self, call: object, key: str, suffix: str) -> bool:
        try:
            call(self._base + key + suffix)  # type: ignore[operator]
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise store_error(error, "remove", self._base + key + suffix, key) from error


class _Chunks(Iterator[bytes]):
    """The rest of an open file, closed at its end or with this object."""

    def __init__(self, fd: int, path: str, key: str) -> None:
        self._fd, self._path, self._key = fd, path, key

    def __next__(self) -> bytes:
        if self._fd >= 0:
            try:
                chunk = os.read(self._fd, _CHUNK)
            except OSError as error:
                raise store_error(error, "read", self._path, self._key) from error
            if chunk:
                return chunk
            self.close()
        raise StopIteration

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


def _open_regular(path: str, key: str) -> int:
    """A descriptor of the regular file; StoreError if anything else stands there."""
    try:
        fd = os.open(path, _READ)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):
            raise _not_a_record(path, key) from error
        raise
    return fd


def _read_whole(path: str, key: str) -> Object:
    fd = _open_regular(path, key)
    try:
        stat = os.fstat(fd)
        if not S_ISREG(stat.st_mode):
            raise _not_a_record(path, key)
        size = stat.st_size
        if size > _LIMIT:
            raise StoreError(f"{path} has {size} bytes, more than a record may have ({_LIMIT}): stream it", key=key)
        data = os.read(fd, size + 1)
        if len(data) != size:  # a short read, or a file that somebody else than us writes in place
            data = _read_on(fd, data, path, key)
    finally:
        os.close(fd)
    return Object(data, version_of(stat, len(data)), stat.st_mtime)


def _read_on(fd: int, data: bytes, path: str, key: str) -> bytes:
    parts, total = [data], len(data)
    while chunk := os.read(fd, _CHUNK):
        parts.append(chunk)
        total += len(chunk)
        if total > _LIMIT:
            raise StoreError(f"{path} has more bytes than a record may have ({_LIMIT}): stream it", key=key)
    return b"".join(parts)


def _not_a_record(path: str, key: str) -> StoreError:
    return StoreError(f"{path} is not a regular file (a folder, FIFO, device or link): remove it by hand", key=key)


def _same_file(temp: str, path: str) -> bool:
    """After EEXIST: the name is our own file, so an earlier try landed (an NFS server that was asked twice answers so).

    True is certain; False may come from a stale attribute cache, so the settling module reads the name all the same.
    """
    try:
        ours = os.lstat(temp)
        if ours.st_nlink < 2:
            return False
        there = os.lstat(path)
    except OSError:
        return False
    return (ours.st_ino, ours.st_dev) == (there.st_ino, there.st_dev) and ours.st_ino != 0
