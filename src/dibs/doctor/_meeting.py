"""Several machines meet in one folder and tell each other facts, with nothing but plain files written once.

Every file has a name nobody else writes, appears whole by a rename, and is read until it parses; nothing here
needs what is under test. Each exchange is also a sample of how the machines' clocks stand to one another.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dibs._canon import digest
from dibs.errors import StoreError, UsageError
from dibs.record import Who
from dibs.store import Machine

from ._models import Guest

__all__ = ["Meeting", "Samples"]

_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _NUDGE_S = 0.001, 0.05, 0.25
_GOOD_BYE_S = 60.0

#: seat -> the least of (own clock when seen) - (theirs when written): delay plus the clocks' difference
Samples = dict[int, float]
Say = Callable[[str], None]


class Meeting:
    """One machine's end of a meeting in ``folder``. Raises StoreError when somebody is missing for ``patience_s``."""

    def __init__(self, folder: Path, machine: Machine, machines: int, patience_s: float, say: Say) -> None:
        self.folder, self.machines, self.patience_s = folder, machines, patience_s
        self._machine, self._clock, self._say = machine, machine.clock, say
        self._ident = machine.entropy(8).hex()
        self._idents: list[str] = []
        self.token = ""  # of this meeting, the same for all who are in it
        self.guests: tuple[Guest, ...] = ()
        self.seat = -1
        self.samples: Samples = {}

    # coming and going

    def arrive(self, guest: Guest) -> None:
        """Take a seat: wait until all have come and all agree who they are."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot meet in {self.folder}: {error.strerror or error}") from error
        who = self._machine.who(guest.me)
        self._write("here", {"guest": vars(guest), "who": who, "of": self.machines})
        present = self._all_here()
        self._idents = sorted(present)
        self.token = digest(self._idents)[:12]
        self.seat = self._idents.index(self._ident)
        guests = [Guest(**present[ident]["guest"]) for ident in self._idents]
        names = [guest.me for guest in guests]
        self.guests = tuple(
            replace(guest, me=f"{guest.me}#{seat}") if names.count(guest.me) > 1 else guest
            for seat, guest in enumerate(guests)
        )
        for told in self.exchange("seats", {"idents": self._idents}):
            if told["idents"] != self._idents:
                raise UsageError(f"more than {self.machines} machines met at {self.folder.name!r}: {self._crowd()}")

    def leave(self) -> None:
        """Say good-bye; the first seat waits for all others and takes the folder away. Never an error."""
        if self._idents:
            with suppress(StoreError):
                self._write("bye", {})
                if self.seat == 0:
                    self.patience_s = min(self.patience_s, _GOOD_BYE_S)
                    self._gather("bye")
                    self._clear()
                return
        with suppress(OSError):
            self._path("here", self._ident).unlink()
        with suppress(OSError):
            if not any(name.startswith("here-") for name in os.listdir(self.folder)):  # noqa: PTH208 - names, not paths
                self._clear()

    def abandon(self) -> None:
        """Leave in the middle: the others will say who is missing."""
        self._idents = []
        self.leave()

    # telling

    def exchange(self, step: str, told: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Tell all, and wait until all have told: what each said, by seat. Everybody leaves it at about the same time."""
        self._write(step, told)
        return self._gather(step)

    def _gather(self, step: str) -> list[dict[str, Any]]:
        told: dict[str, dict[str, Any]] = {}
        waiting = _Waiting(self)
        while True:
            for ident in [ident for ident in self._idents if ident not in told]:
                body = self._read(step, ident)
                if body is not None:
                    told[ident] = body
                    self._sample(self._idents.index(ident), body)
                    waiting.begin()
            if len(told) == len(self._idents):
                return [told[ident] for ident in self._idents]
            if not waiting.go_on():
                raise StoreError(self._missing(step, [ident for ident in self._idents if ident not in told]))

    def _sample(self, seat: int, body: dict[str, Any]) -> None:
        if seat != self.seat:
            lag = self._clock.monotonic() - body["at"]
            self.samples[seat] = min(lag, self.samples.get(seat, lag))

    # who is there

    def _all_here(self) -> dict[str, dict[str, Any]]:
        told: dict[str, dict[str, Any]] = {}
        waiting = _Waiting(self)
        while True:
            came = len(told)
            told = {ident: body for ident in self._names("here-") if (body := self._read("here", ident)) is not None}
            told = self._living(told)
            for body in told.values():
                if body["of"] != self.machines:
                    raise UsageError(
                        f"somebody at {self.folder.name!r} said --machines {body['of']}, and you {self.machines}: all say the same"
                    )
            if len(told) > self.machines:
                raise UsageError(f"{len(told)} machines came to {self.folder.name!r}: {self._crowd()}")
            if len(told) == self.machines:
                return told
            if len(told) > came:
                waiting.begin()
                left = self.machines - len(told)
                self._say(f"waiting for {left} more at {self.folder.name!r}: type the same command on another machine")
            if not waiting.go_on():
                raise StoreError(
                    f"{len(told)} of {self.machines} machines came to {self.folder.name!r} in {self.patience_s:g} s. Start the "
                    "same command on the others at the same time. If it was: they look at another folder, or this mount "
                    "does not show one machine's names to another, and then no store can lie on it"
                )

    def _living(self, told: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Without those who were killed on this machine; of others nobody knows, and their stamps may be by any clock."""
        return {
            ident: body
            for ident, body in told.items()
            if ident == self._ident or not self._machine.gone(Who(**body["who"]))
        }

    def _crowd(self) -> str:
        return f"say --machines N for N machines, or choose another name than --join {self.folder.name}"

    def _missing(self, step: str, idents: list[str]) -> str:
        guests = (self.guests[self._idents.index(ident)] if self.guests else None for ident in idents)
        names = ", ".join(
            f"{guest.me} (host {guest.host}, pid {guest.pid})" if guest else "somebody" for guest in guests
        )
        return (
            f"{names} did not get to {step!r} in {self.patience_s:g} s: it was stopped there, or this mount does not "
            "show one machine's names to another. Start all of them again, with another name if this happens twice"
        )

    # files

    def _path(self, step: str, ident: str) -> Path:
        return self.folder / f"{step}-{ident}.json"

    def _names(self, start: str) -> list[str]:
        return [name[len(start) : -5] for name in self.listing() if name.startswith(start) and name.endswith(".json")]

    def listing(self) -> list[str]:
        """The names in the meeting's folder, as this machine sees them now."""
        try:
            return os.listdir(self.folder)  # noqa: PTH208 - names, not paths
        except OSError:
            return []

    def _write(self, step: str, told: Mapping[str, Any]) -> None:
        temp = self.folder / f"tmp-{step}-{self._ident}"
        try:
            temp.write_text(json.dumps({**told, "at": self._clock.monotonic()}))
            temp.rename(self._path(step, self._ident))
        except OSError as error:
            raise StoreError(f"cannot write to {self.folder}: {error.strerror or error}") from error

    def _read(self, step: str, ident: str) -> dict[str, Any] | None:
        """What somebody told, None while it is not there as a whole."""
        try:
            with open(self._path(step, ident), encoding="utf-8", opener=_plainly) as file:
                body = json.load(file)
        except (OSError, ValueError, RecursionError):
            return None
        return body if isinstance(body, dict) and (step != "here" or _is_guest(body)) else None

    def nudge(self) -> None:
        """Change the folder, so that a client that keeps listings and missing names asks its server again."""
        path = self.folder / f"nudge-{self._ident}"
        with suppress(OSError):
            path.touch()
            path.unlink()
        self.listing()

    def _clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            self.folder.parent.rmdir()


def _plainly(path: str, flags: int) -> int:
    """Open without waiting for a FIFO's other end or following a link: anybody could have planted either."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))


def _is_guest(body: Mapping[str, Any]) -> bool:
    try:
        return bool(Guest(**body["guest"]) and Who(**body["who"]) and body["of"])
    except (KeyError, TypeError):
        return False


class _Waiting:
    """Growing pauses until the patience is over, counted from the last time something happened."""

    def __init__(self, meeting: Meeting) -> None:
        self._meeting, self._clock = meeting, meeting._clock
        self.begin()

    def begin(self) -> None:
        self._since = self._nudged = self._clock.monotonic()
        self._pause_s = _FIRST_PAUSE_S

    def go_on(self) -> bool:
        now = self._clock.monotonic()
        if now - self._since > self._meeting.patience_s:
            return False
        if now - self._nudged > _NUDGE_S:
            self._nudged = now
            self._meeting.nudge()
        self._clock.sleep(self._pause_s)
        self._pause_s = min(_LONGEST_PAUSE_S, 1.5 * self._pause_s)
        return True
