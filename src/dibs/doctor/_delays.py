"""How late one machine sees what another one did: a new name, a growth, a rewrite, a beat, a removal.

One machine acts, all others have looked before (so that their caches hold the old state) and look until they see
it. Each kind is watched on its own, because one way of looking would refresh what another way sees.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dibs._clock import Clock

from ._meeting import Meeting

__all__ = ["KINDS", "watch"]

_HEAD_START_S, _POLL_S = 0.1, 0.005
_OLD = "old\n" * 64
_COARSEST_S, _COARSEST_BEATS = 2.5, 50

Act = Callable[[Path, Clock], object]
Look = Callable[[Path], object]


def _beat(path: Path, clock: Clock) -> None:
    before = path.stat().st_mtime_ns
    for _ in range(_COARSEST_BEATS):  # a coarse stamp moves with its next step only
        os.utime(path, None)
        if path.stat().st_mtime_ns != before:
            return
        clock.sleep(_COARSEST_S / _COARSEST_BEATS)


def _write(path: Path, clock: Clock) -> None:
    path.write_text(_OLD)


def _append(path: Path, clock: Clock) -> None:
    with path.open("a") as file:
        file.write("more\n")


def _remove(path: Path, clock: Clock) -> None:
    path.unlink()


def _rewrite(path: Path, clock: Clock) -> None:
    temp = path.with_name("temp")
    temp.write_text("new\n")
    temp.replace(path)


def _listed(path: Path) -> bool:
    return path.name in os.listdir(path.parent)  # noqa: PTH208 - names, not paths


#: what -> (is the file there before?, what the actor does, what the others look at until it changes)
KINDS: dict[str, tuple[bool, Act, Look]] = {
    "a new name, looked up": (False, _write, Path.exists),
    "a new name, listed": (False, _write, _listed),
    "a growth, by its size": (True, _append, lambda path: path.stat().st_size),
    "a rewrite, read": (True, _rewrite, Path.read_text),
    "a rewrite, by its stamp": (True, _rewrite, lambda path: (path.stat().st_mtime_ns, path.stat().st_ino)),
    "a beat": (True, _beat, lambda path: path.stat().st_mtime_ns),
    "a removal": (True, _remove, Path.exists),
}


def watch(meeting: Meeting, clock: Clock, limit_s: float) -> dict[str, Any]:
    """Act in turn and watch the others: {"did": {what: own clock}, "saw": {seat: {what: own clock}}}."""
    did: dict[str, float | None] = {}
    saw: dict[str, dict[str, float | None]] = {}
    for seat in range(len(meeting.guests)):
        folders = [meeting.folder / f"seen-{seat}-{k}" for k in range(len(KINDS))]
        if seat == meeting.seat:
            for folder, (before, _, _) in zip(folders, KINDS.values(), strict=True):
                folder.mkdir(exist_ok=True)
                if before:
                    (folder / "file").write_text(_OLD)
        meeting.exchange(f"watch-{seat}", {})
        for k, (folder, (what, (before, act, look))) in enumerate(zip(folders, KINDS.items(), strict=True)):
            path = folder / "file"
            old = None if seat == meeting.seat else _old(look, path, before, clock, limit_s)
            meeting.exchange(f"act-{seat}-{k}", {})
            if seat == meeting.seat:
                clock.sleep(_HEAD_START_S)  # the others are looking by now
                did[what] = _acted(act, path, clock)
            else:
                saw.setdefault(str(seat), {})[what] = _changed(look, path, old, clock, limit_s + _HEAD_START_S)
    return {"did": did, "saw": saw}


def _acted(act: Act, path: Path, clock: Clock) -> float | None:
    try:
        act(path, clock)
    except OSError:
        return None  # this mount cannot do it: nobody will see it
    return clock.monotonic()


def _old(look: Look, path: Path, before: bool, clock: Clock, limit_s: float) -> object:
    """What the file looks like before anything happens, once it has come here."""
    began = clock.monotonic()
    while clock.monotonic() - began < limit_s:
        with suppress(OSError):
            if not before or path.read_text() == _OLD:
                return look(path)
        clock.sleep(_POLL_S)
    return None


def _changed(look: Look, path: Path, old: object, clock: Clock, limit_s: float) -> float | None:
    """When it looked different for the first time, by this machine's clock; None if it does not in time."""
    began = clock.monotonic()
    while clock.monotonic() - began < limit_s:
        with suppress(OSError):  # a stale handle, say: not what was waited for
            if look(path) != old:
                return clock.monotonic()
        clock.sleep(_POLL_S)
    return None
