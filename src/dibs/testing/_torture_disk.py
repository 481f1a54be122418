"""Where the torture's store lies, and what can be done to it by hand, with os alone: dibs has no part in it.

A plain folder, or a small tmpfs that can be filled and emptied again (needs root).
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from dibs.errors import UsageError

from ._raw_check import Raw
from ._torture_crew import CLOCK

__all__ = ["Disk"]

_CHUNK = 1 << 20
_LONG_AGO_S = 7 * 86_400.0


class Disk:
    """The store's folder. ``small``: on a tmpfs of its own, which ``fill`` fills until a moment comes.

    ``address``: what workers open; ``store``: where the raw files are.
    """

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
    def address(self) -> str:
        return str(self.store)

    def raw(self, study: str) -> Raw:
        """The study's files as they are now."""
        return Raw(str(self.store), study)

    def listing(self) -> dict[str, str] | None:
        """key -> what changes with each write, where a look at it tells whether a reader wrote (else an audit hook does)."""
        return None

    # by hand

    def keys(self, prefix: str) -> list[str]:
        """The records below it."""
        return sorted(path.relative_to(self.store).as_posix() for path in (self.store / prefix).rglob("*.json"))

    def truncate(self, key: str, share: float) -> None:
        """Leave that share of a record's bytes."""
        with suppress(FileNotFoundError):
            path = self.store / key
            os.truncate(path, int(path.stat().st_size * share))

    def remove(self, key: str) -> None:
        """As ``rm -f`` does."""
        (self.store / key).unlink(missing_ok=True)

    def age(self, raw: Raw) -> None:
        """A record that was torn counts as running since its mtime, with a patience of minutes: let them have passed."""
        for (n, a), body in raw.attempts.items():
            if body is None:
                path = self.store / raw.key(n, a)
                if not path.exists():  # where mkdir claims: a claim whose record was never written
                    path = path.with_name(f"{path.name}.claim")
                with suppress(FileNotFoundError):
                    stat = path.stat()
                    if stat.st_ctime - stat.st_mtime < _LONG_AGO_S / 2:  # once: a stamp that moves is a sign of life
                        long_ago = stat.st_ctime - _LONG_AGO_S
                        os.utime(path, (long_ago, long_ago))

    # the file system

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

    def forget(self) -> None:
        """Nothing is broken and nobody wants the evidence: what lies outside the torture's folder goes, too."""

    def close(self) -> None:
        """Unmount; the store is gone with it."""
        if self.small and os.path.ismount(self._mount):
            subprocess.run(["umount", "-l", self._mount], check=True)
