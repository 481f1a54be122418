"""Where the torture's store lies: a plain folder, or a small tmpfs that can be filled and emptied again (needs root)."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from dibs.errors import UsageError

from ._torture_crew import CLOCK

__all__ = ["Disk"]

_CHUNK = 1 << 20
_BATCH = 2000


class Disk:
    """The store's folder. ``small``: on a tmpfs of its own, which ``fill`` fills until a moment comes."""

    def __init__(self, folder: Path, *, tmpfs: bool, bytes_: int = 32 << 20, inodes: int = 20_000) -> None:
        self.small = tmpfs
        self._mount = folder / "disk"
        self._until: float | None = None
        self.store = (self._mount if tmpfs else folder) / "store"
        if tmpfs:
            if os.geteuid() != 0:
                raise UsageError("--tmpfs mounts a small file system, which only root may")
            self._mount.mkdir()
            options = f"size={bytes_},nr_inodes={inodes}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "dibs-torture", self._mount], check=True)

    @property
    def full(self) -> bool:
        return self._until is not None

    def fill(self, until: float, *, inodes: bool) -> None:
        """Leave no byte (or no inode) until then."""
        self._until = until
        filler = self._mount / "filler"
        filler.mkdir(exist_ok=True)
        with suppress(OSError):
            if inodes:
                for k in range(1 << 20):
                    os.close(os.open(filler / f"{k}-{until}", os.O_CREAT | os.O_WRONLY))
            with (filler / f"bytes-{until}").open("wb", buffering=0) as file:
                while file.write(bytes(_CHUNK)):
                    pass

    def relax(self, *, now: bool = False) -> bool:
        """Empty it if the moment has come; True if it was full until now."""
        if self._until is None or (not now and CLOCK.monotonic() < self._until):
            return False
        for path in (self._mount / "filler").iterdir():
            path.unlink()
        self._until = None
        return True

    def close(self) -> None:
        """Unmount; the store is gone with it."""
        if self.small and os.path.ismount(self._mount):
            subprocess.run(["umount", "-l", self._mount], check=True)
