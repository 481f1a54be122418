"""The folders of a store: made when they are missed, synced where that was asked for, never the root itself.

A root that is not there is most likely a share that is not mounted, and what is written into its mount
point is lost to everybody else. So nothing below makes it but an explicit ``prepare``.
"""

# The hot path does without pathlib.
# ruff: noqa: PTH102, PTH112, PTH120

from __future__ import annotations

import os
from contextlib import suppress
from stat import S_ISDIR, S_ISLNK

from dibs.backend._fsync import sync_folder
from dibs.backend._names import TEMPS
from dibs.backend._oserrors import store_error
from dibs.errors import StoreError

__all__ = ["Tree"]


class Tree:
    """The folders below ``base``, which ends in ``/``. Threads and forks may share one."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._anchored: set[str] = set()  # folders whose own name is known to be on the disk
        self.real: set[str] = {""}  # folders that were seen to be folders, not links to somewhere else

    def demand_root(self, *, missing_ok: bool = False) -> None:
        """StoreError unless the root is a folder (or, with ``missing_ok``, nothing at all)."""
        root = self._base.rstrip("/") or "/"
        if os.path.isdir(self._base):
            return
        if os.path.lexists(root):
            raise StoreError(f"{root} is not a folder: a store needs one")
        if not missing_ok:
            raise StoreError(
                f"the store's folder {root} does not exist: is the share mounted? If so, it was moved or removed"
            )

    def prepare(self) -> None:
        """Make the root, if its parent exists, and ``tmp/``."""
        root = self._base.rstrip("/") or "/"
        try:
            os.mkdir(root)
        except FileExistsError:
            self.demand_root()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreError(
                f"cannot make a store at {root}: the folder {os.path.dirname(root)} does not exist. Is the share mounted? "
                "If so, make that folder first"
            ) from error
        except OSError as error:
            raise store_error(error, "make a store at", root) from error
        self.make(TEMPS[:-1])

    def make(self, folder: str) -> None:
        """Make ``folder`` (a path below the root) and its parents; StoreError if that fails or there is no root."""
        try:
            self._make(folder)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            self.demand_root()
            raise store_error(error, "make the folder", self._base + folder) from error

    def _make(self, folder: str) -> None:
        try:
            os.mkdir(self._base + folder)
        except FileExistsError:
            return
        except FileNotFoundError:
            parent = folder.rpartition("/")[0]
            if not parent:
                raise
            self._make(parent)
            with suppress(FileExistsError):
                os.mkdir(self._base + folder)
        self._anchored.discard(folder)

    def stay_inside(self, folder: str) -> None:
        """StoreError if a folder on the way is a link: whoever planted it, what lies behind it is not the store's.

        Once per folder and process; a link planted later in the place of a folder is not seen.
        """
        if folder in self.real:
            return
        self.stay_inside(folder.rpartition("/")[0])
        try:
            mode = os.lstat(self._base + folder).st_mode
        except OSError:
            return  # nothing there: it will be made, and looked at when it is
        if S_ISLNK(mode):
            raise StoreError(f"{self._base}{folder} is a link: a store's folders are folders; remove it by hand")
        if S_ISDIR(mode):
            self.real.add(folder)

    def holds(self, temp: str) -> bool:
        """False if the temporary is certainly gone; StoreError if the share is, and the temporary may not be."""
        if os.path.lexists(self._base + temp):
            return True
        if not self.temps_exist():
            self.demand_root()
            raise StoreError(f"{self._base}{TEMPS} is gone: is the share still mounted?")
        return False

    def temps_exist(self) -> bool:
        return os.path.isdir(self._base + TEMPS)

    def sync(self, key: str) -> None:
        """Bring the key's name to the disk, and once per process the names of its folders; OSError if that fails."""
        folder = key.rpartition("/")[0]
        sync_folder(self._base + folder)
        while folder and folder not in self._anchored:
            parent = folder.rpartition("/")[0]
            sync_folder(self._base + parent)
            self._anchored.add(folder)
            folder = parent
