"""The ways to claim a name, as they are raced: link and mkdir, bare and as a store claims, and an exclusive open.

A store's claim, with its read-back and the rewrites by its owner, is what must be exclusive; the bare call comes
closer to the other machine's. ``open`` (O_CREAT|O_EXCL) is no method of ours: it is told because people ask, and
because it says what kind of mount this is.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Protocol

from dibs.backend import FolderBackend
from dibs.errors import NotOwner, StoreError, UnsureError
from dibs.record import FORMAT
from dibs.store import Machine, Settler

__all__ = ["WAYS", "Way", "way"]

WAYS = ("link", "open", "mkdir")
_PATIENCE_S = 10.0
_REWRITES = 2


class Way(Protocol):
    """One way to claim names. ``robbed``: how often a winner was told later that the name was not its own."""

    robbed: int

    def claim(self, name: str) -> bool | None:
        """Whether the caller was told that the name is its own; None if that could not be learnt. Raises StoreError."""
        ...

    def owner(self, name: str) -> int | None:
        """The seat whose mark the name carries, as this machine reads it; None if there is none to be read."""
        ...


def way(name: str, folder: Path, machine: Machine, seat: int, *, bare: bool = False) -> Way:
    """The way of that name in a folder of its own, which is made; ``seat`` is the mark of whoever claims."""
    folder.mkdir(parents=True, exist_ok=True)
    if name == "open":
        return _Open(folder, seat)
    if not bare:
        return _AsStores(name, folder, machine, seat)
    return _Link(folder, seat) if name == "link" else _Mkdir(folder)


class _AsStores:
    """The claim of a store, rewritten by its winner, over a backend of its own in the folder."""

    def __init__(self, method: str, folder: Path, machine: Machine, seat: int) -> None:
        self._backend = FolderBackend(folder, claim=method)
        self._backend.prepare()
        self._settler = Settler(self._backend, machine, patience_s=_PATIENCE_S)
        self._seat = seat
        self.robbed = 0

    def claim(self, name: str) -> bool | None:
        body = {"v": FORMAT, "kind": "race", "seat": self._seat}
        try:
            held = self._settler.claim(_key(name), body)
        except UnsureError:
            return None
        if held is None:
            return False
        try:
            for turn in range(_REWRITES):  # in a moment without the name a second winner may slip in
                self._settler.rewrite(held, {**body, "turn": turn})
        except NotOwner:
            self.robbed += 1
        except UnsureError:
            pass  # the claim was won; the rewrite says nothing about it
        return True

    def owner(self, name: str) -> int | None:
        try:
            there = self._backend.read(_key(name))
            return int(json.loads(there.data)["seat"]) if there is not None else None
        except (StoreError, ValueError, KeyError, TypeError):
            return None


class _Plain:
    """A bare call; whoever won leaves its seat as the text of the file."""

    def __init__(self, folder: Path, seat: int) -> None:
        self._folder, self._seat = folder, seat
        self.robbed = 0

    def owner(self, name: str) -> int | None:
        try:
            return int((self._folder / name).read_text())
        except (OSError, ValueError):
            return None


class _Link(_Plain):
    """link(2) of one file to all the names."""

    def __init__(self, folder: Path, seat: int) -> None:
        super().__init__(folder, seat)
        self._temp = folder / f"temp-{seat}"
        self._temp.write_text(str(seat))

    def claim(self, name: str) -> bool | None:
        try:
            (self._folder / name).hardlink_to(self._temp)
        except OSError as error:
            owner = self.owner(name)  # EEXIST, and EPERM from some: the name knows
            if owner is None and not isinstance(error, FileExistsError):
                raise StoreError(f"link(2) does not work here: {error.strerror or error}") from error
            return owner == self._seat
        return True


class _Open(_Plain):
    """open(2) with O_CREAT and O_EXCL."""

    def claim(self, name: str) -> bool | None:
        try:
            file = os.open(self._folder / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        except OSError as error:
            raise StoreError(f"an exclusive open(2) does not work here: {error.strerror or error}") from error
        try:
            os.write(file, str(self._seat).encode())
        finally:
            os.close(file)
        return True


class _Mkdir(_Plain):
    """mkdir(2); a folder carries no mark."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, -1)

    def claim(self, name: str) -> bool | None:
        try:
            (self._folder / name).mkdir()
        except FileExistsError:
            return False
        except OSError as error:
            raise StoreError(f"mkdir(2) does not work here: {error.strerror or error}") from error
        return True


def _key(name: str) -> str:
    return f"{name}.json"
