"""A store in a folder, local or shared: link(2) or mkdir(2) decides a claim, rename(2) rewrites.

Nothing is ever written in place, so a reader sees one whole write or another. A claim costs open+write+close,
link, unlink; a rewrite open+write+close, rename; all else happens on the way of an error.
Surprising: ENOENT has three meanings (no parent yet, the temporary is gone, the share is not mounted).
"""

# Plain strings and os calls: a Path costs as much as the system call behind it.
# ruff: noqa: PTH102, PTH105, PTH106, PTH108, PTH116

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from dibs.backend._base import Backend, Draft, Entry, Object, Outcome, Traits
from dibs.backend._names import TEMPS, check_key, check_prefix, legal_segment
from dibs.backend._oserrors import is_certain, store_error
from dibs.backend._reads import Chunks, read_whole
from dibs.backend._temps import TempNames, open_temp, write_whole
from dibs.backend._tree import Tree
from dibs.backend._walk import CLAIM, folders_below, version_of, walk
from dibs.errors import StoreError, UsageError

__all__ = ["FolderBackend"]

_TRIES = 3
_TOUCH_FOLLOWS = os.utime not in os.supports_follow_symlinks


Write = Callable[[str, "FolderDraft", int], Outcome]
_FSYNC = ("result", "all", "none")


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
    (``dibs doctor`` finds out). With mkdir, a claimed key whose record is not written yet reads as ``b""``, and LOST
    needs no second look. Folders that are links are not listed, and no key below one is read or written.

    ``fsync``: what survives a power cut. "result": what is asked to be durable (results, blobs, notes), the file and
    its folder; "all": claims too; "none": nothing is waited for.
    """

    def __init__(self, root: Path | str, claim: str = "link", fsync: str = "result") -> None:
        if claim not in ("link", "mkdir"):
            raise UsageError(f"claim={claim!r}: a folder claims by 'link' or by 'mkdir'")
        if fsync not in _FSYNC:
            raise UsageError(f"fsync={fsync!r}: 'result' (the default), 'all' or 'none'")
        self._fsync = fsync
        self.root: Path = Path(root).absolute()
        self.traits = Traits("folder", claim, conditional_replace=False, touch=True, listing_sorted=True, stamps=True)
        self._base = str(self.root).rstrip("/") + "/"
        self._mkdir = claim == "mkdir"
        self._tree = Tree(self._base)
        self._names = TempNames()
        self._checked: str | None = None

    def __repr__(self) -> str:
        return f"FolderBackend({str(self.root)!r}, claim={self.traits.claim!r}, fsync={self._fsync!r})"

    def __reduce__(self) -> tuple[type[FolderBackend], tuple[str, str, str]]:
        return FolderBackend, (str(self.root), self.traits.claim, self._fsync)

    def prepare(self) -> None:
        """Make the root, and ``tmp/`` in it, where the root's parent exists; StoreError with the reason otherwise."""
        self._tree.prepare()

    # ---- writing

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        if self._fsync != "result":
            durable = self._fsync == "all"
        temp = self._names.new()
        path = self._base + temp
        size = write_whole(self._open_temp(path), path, data, durable=durable)
        return FolderDraft(data if isinstance(data, bytes) else None, temp, size, durable)

    def create(self, key: str, draft: Draft) -> Outcome:
        self._check(key)
        assert isinstance(draft, FolderDraft)
        if draft.spent:
            return Outcome.LOST
        if not self._mkdir:
            return self._create_by_link(key, draft)
        return self._write_claimed(key, draft) if draft.claimed == key else self._create_by_mkdir(key, draft)

    def _create_by_link(self, key: str, draft: FolderDraft, missed: int = 0) -> Outcome:
        temp, path = self._base + draft.temp, self._base + key
        try:
            os.link(temp, path)
        except FileNotFoundError:
            return self._again(self._create_by_link, key, draft, missed)
        except FileExistsError:
            if not _same_file(temp, path):
                return Outcome.LOST
        except OSError as error:
            if is_certain(error) or (error.errno == errno.EPERM and self._links_never(temp, path)):
                raise store_error(error, "claim", path, key) from error
            return Outcome.UNSURE
        draft.linked = True
        return self._settled(key, draft)

    def _create_by_mkdir(self, key: str, draft: FolderDraft, missed: int = 0) -> Outcome:
        path = self._base + key
        try:
            os.mkdir(path + CLAIM)
        except FileNotFoundError:
            return self._again(self._create_by_mkdir, key, draft, missed)
        except FileExistsError:
            return Outcome.LOST
        except OSError as error:
            if is_certain(error) or error.errno == errno.EPERM:
                raise store_error(error, "claim", path, key) from error
            return Outcome.UNSURE
        if os.path.lexists(path):  # written by replace, which leaves no claim
            return Outcome.LOST
        draft.claimed = key
        draft.owned = True
        return self._write_claimed(key, draft)

    def _write_claimed(self, key: str, draft: FolderDraft) -> Outcome:
        path = self._base + key
        try:
            os.replace(self._base + draft.temp, path)
        except FileNotFoundError:
            self._stage_again(path, draft)
            return Outcome.UNSURE  # it landed at an earlier try, or somebody removed it: the name knows
        except OSError as error:
            if not is_certain(error):
                return Outcome.UNSURE
            try:
                os.rmdir(path + CLAIM)  # given back, so that no empty claim stays behind
            except OSError:
                return Outcome.UNSURE
            draft.claimed, draft.owned = "", False
            raise store_error(error, "write", path, key) from error
        draft.spent = True
        return self._settled(key, draft)

    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        self._check(key)
        assert isinstance(draft, FolderDraft)
        return Outcome.LOST if draft.spent else self._replace(key, draft)

    def _replace(self, key: str, draft: FolderDraft, missed: int = 0) -> Outcome:
        temp, path = self._base + draft.temp, self._base + key
        try:
            os.replace(temp, path)
        except FileNotFoundError:
            return self._again(self._replace, key, draft, missed)
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
            if not self._tree.temps_exist():
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
        """Remove the key; False if it was not there. For cleaning up, a name out of ``list("tmp/")`` will do as well."""
        if key.startswith(TEMPS) and legal_segment(key[len(TEMPS) :]):
            return self._remove(os.unlink, key)
        self._check(key)
        there = self._remove(os.unlink, key)
        if self._mkdir:  # after the record, so that nobody can win the name while its record is still there
            there = self._remove(os.rmdir, key, CLAIM) or there
        return there

    # ---- reading

    def read(self, key: str) -> Object | None:
        self._check(key)
        path = self._base + key
        for attempt in range(1, _TRIES + 1):
            try:
                return read_whole(path, key)
            except FileNotFoundError:
                return self._bare_claim(key) if self._mkdir else None
            except NotADirectoryError:
                self._tree.demand_root(missing_ok=True)
                return None
            except StoreError:
                raise
            except OSError as error:
                if error.errno != errno.ESTALE or attempt == _TRIES:
                    raise store_error(error, "read", path, key) from error
        return None

    def stream(self, key: str, start: int = 0) -> Iterator[bytes] | None:
        self._check(key)
        try:
            return Chunks(self._base + key, key, start)
        except FileNotFoundError:
            return iter(()) if self._mkdir and self._bare_claim(key) else None
        except NotADirectoryError:
            self._tree.demand_root(missing_ok=True)
            return None
        except StoreError:
            raise
        except OSError as error:
            raise store_error(error, "read", self._base + key, key) from error

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        """As the contract says. The temporaries are in no listing but ``list("tmp/")``, which is for cleaning up."""
        check_prefix(prefix)
        return walk(self._base, prefix, after, details, self._mkdir)

    def names(self, prefix: str) -> builtins.list[str]:
        try:
            found = os.listdir(self._base + prefix)  # noqa: PTH208 because a Path costs as much as the call
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise store_error(error, "list the store's folder", self._base + prefix, prefix) from error
        if self._mkdir:
            return builtins.list({name.removesuffix(CLAIM) for name in found})
        return found

    def stamp(self, prefix: str) -> str | None:
        try:
            return str(os.stat(self._base + prefix).st_mtime_ns)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            raise store_error(error, "look at the store's folder", self._base + prefix, prefix) from error

    def version(self, key: str) -> str | None:
        path = self._base + key
        try:
            stat = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            bare = self._bare_claim(key) if self._mkdir else None
            return bare.version if bare is not None else None
        except OSError as error:
            raise store_error(error, "look at", path, key) from error
        return version_of(stat, stat.st_size)

    def folders(self, prefix: str) -> builtins.list[str]:
        check_prefix(prefix)
        return folders_below(self._base, prefix, self._mkdir)

    def now(self) -> float:
        path = self._base + self._names.probe()
        self._tree.stay_inside(TEMPS[:-1])
        for _ in range(_TRIES):
            try:
                os.utime(path, None)
                return os.stat(path).st_mtime
            except (FileNotFoundError, NotADirectoryError):  # the first call, a clean-up, or no store
                os.close(self._open_temp(path, exclusive=False))
            except OSError as error:
                raise store_error(error, "ask the store's time at", path) from error
        raise StoreError(f"cannot ask the store's time: {path} vanishes as soon as it is made")

    # ---- what only errors need

    def _open_temp(self, path: str, *, exclusive: bool = True) -> int:
        self._tree.stay_inside(TEMPS[:-1])
        try:
            return open_temp(path, exclusive=exclusive)
        except (FileNotFoundError, NotADirectoryError):  # the store's first write, or no store
            self._tree.make(TEMPS[:-1])
            try:
                return open_temp(path, exclusive=exclusive)
            except (FileNotFoundError, NotADirectoryError) as error:  # a file stands in its place, or it vanishes again
                raise store_error(error, "write to the store at", path) from error

    def _check(self, key: str) -> None:
        if key == self._checked:  # a record is claimed, read and rewritten under one name
            return
        check_key(key)
        folder = key.rpartition("/")[0]
        self._tree.stay_inside(folder)
        if self._mkdir and CLAIM + "/" in key + "/":
            raise UsageError(f"{key!r}: no name may end in {CLAIM} in a store that claims by mkdir")
        if folder in self._tree.real:
            self._checked = key

    def _again(self, write: Write, key: str, draft: FolderDraft, missed: int) -> Outcome:
        """After ENOENT: once more with the folder made, or LOST because the temporary is gone."""
        if not self._tree.holds(draft.temp):
            draft.spent = True
            return Outcome.LOST
        folder = key.rpartition("/")[0]
        if missed == _TRIES or not folder:
            raise StoreError(f"cannot write {self._base}{key}: its folder vanishes as soon as it is made", key=key)
        self._tree.make(folder)
        return write(key, draft, missed + 1)

    def _stage_again(self, path: str, draft: FolderDraft) -> None:
        """The claim is ours and the temporary is gone: unless that is because it landed, the same bytes once more."""
        if draft.data is not None and not os.path.lexists(path):
            temp = self._base + draft.temp
            with suppress(StoreError):  # then there is no try but the next one
                write_whole(self._open_temp(temp), temp, draft.data, durable=draft.durable)

    def _links_never(self, temp: str, path: str) -> bool:
        """After EPERM: True if this file system makes no hard links at all, not even where nobody races."""
        if os.path.lexists(path):
            return False
        other = self._base + self._names.new()
        try:
            os.link(temp, other)
        except OSError as error:
            return error.errno == errno.EPERM
        with suppress(OSError):
            os.unlink(other)
        return False

    def _settled(self, key: str, draft: FolderDraft) -> Outcome:
        """WON, with the name on the disk where that was asked for; UNSURE if the disk would not say."""
        if draft.durable:
            try:
                self._tree.sync(key)
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

    def _remove(self, call: Callable[[str], None], key: str, suffix: str = "") -> bool:
        try:
            call(self._base + key + suffix)
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise store_error(error, "remove", self._base + key + suffix, key) from error


def _same_file(temp: str, path: str) -> bool:
    """After EEXIST: the name is our own file, so an earlier try landed (an NFS server that was asked twice answers so).

    True is certain. False may come from a stale attribute cache, so the settling module reads the name all the same.
    """
    try:
        ours = os.lstat(temp)
        if ours.st_nlink < 2:
            return False
        there = os.lstat(path)
    except OSError:
        return False
    return ours.st_ino != 0 and (ours.st_ino, ours.st_dev) == (there.st_ino, there.st_dev)
