"""What one machine can see of a folder, in seconds and without a trace: everything but what two would do to each other.

A mount can pass all of this and still let two machines win one name; only a meeting of two can see that.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from dibs._clock import Clock
from dibs.cell import size_text
from dibs.errors import StoreError
from dibs.store import METHODS, Machine, Weighed, look

from . import _race
from ._models import Checkup, Finding, Stamps
from ._stamps import probe, step_text
from ._ways import WAYS

__all__ = ["checkup"]

How = Literal["ok", "note", "bad"]
_LIST_LIMIT_S = 5.0
_LITTLE_BYTES, _LITTLE_INODES = 1 << 30, 10_000
_MEET = "run `dibs doctor STORE --join NAME --machines 2` on two machines at once"
_WORDS = {"link": "hard links", "open": "exclusive create", "mkdir": "mkdir"}


def checkup(root: Path, machine: Machine) -> Checkup:
    """Try out the folder of a store, or the one it would be made in; leaves nothing behind.

    Raises StoreError if it cannot even be written to, or if what is there is no store.
    """
    marker, weighed = look(root)
    where = _probe_folder(root, machine)
    try:
        ways = {}
        findings = [_mount(weighed)]
        gaps, renamed = _rename(where, machine.clock)
        for name in WAYS:
            ways[name], finding = _claims(name, where / name, machine, gaps.get(name, ""))
            findings.append(finding)
        findings += [renamed, _listing(where, machine.clock)]
        stamps = probe(where / "stamp", machine)
        findings += [*_stamped(stamps, where, machine.clock), *_room(where)]
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"cannot try out {where}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(where, ignore_errors=True)
    fine, verdict = _verdict(weighed, ways, [f for f in findings if f.how == "bad"], marker is not None)
    return Checkup(
        str(root), weighed.fstype, tuple(findings), stamps, ways, weighed.claim, marker is not None, fine, verdict
    )


def _probe_folder(root: Path, machine: Machine) -> Path:
    parent = root if root.is_dir() else root.parent
    if not parent.is_dir():
        raise StoreError(f"there is no folder {parent} to look at: is the share mounted?")
    where = parent / f".dibs-doctor-{machine.entropy(8).hex()}"
    try:
        where.mkdir()
    except OSError as error:
        raise StoreError(
            f"cannot write to {parent}: {error.strerror or error}. Give this user write access, or remount it writable"
        ) from error
    return where


def _verdict(weighed: Weighed, ways: dict[str, str], bad: list[Finding], used: bool) -> tuple[bool, str]:
    working = [method for method in METHODS if not ways[method]]
    broken = [finding for finding in bad if finding.what not in _WORDS.values()]
    if broken:
        return False, f"no store can lie here: {broken[0].what}: {broken[0].said}"
    if not working:
        return False, "no store can lie here: neither hard links nor mkdir keep a name for one. Use another file system"
    if weighed.claim not in working and used:
        return False, (
            f"claims by {weighed.claim} do not work here ({ways[weighed.claim]}), and this store claims so: use another "
            "file system, or start a new store"
        )
    if weighed.kind == "refused":
        return False, weighed.sentence
    if weighed.claim not in working:
        return False, (
            f"claims by {weighed.claim} do not work here ({ways[weighed.claim]}); {working[0]} may do: {_MEET}, and the "
            f"new store will claim by {working[0]}"
        )
    if weighed.kind == "warned":
        return True, f"{weighed.sentence}. To be sure, {_MEET}"
    return True, f"{weighed.sentence}; nothing here speaks against a store"


def _mount(weighed: Weighed) -> Finding:
    said = {"taken": "taken", "warned": "taken with a warning", "refused": "not taken unseen"}[weighed.kind]
    return Finding("mount", "ok" if weighed.kind == "taken" else "note", f"{weighed.fstype}, {said}")


def _claims(name: str, folder: Path, machine: Machine, gap: str) -> tuple[str, Finding]:
    """One way to claim, tried in turn and raced by four threads; ``gap``: why it is not safe whatever the race says."""
    why, laps = _race.alone(name, folder, machine)
    why = why or gap
    what = _WORDS[name]
    if why:
        how: How = "note" if name == "open" else "bad"
        return why, Finding(what, how, why)
    names = min(lap.tried for lap in laps)
    wins = [sum(n in lap.won for lap in laps) for n in range(names)]
    wrong = sum(count != 1 for count in wins) + sum(lap.robbed for lap in laps)
    if wrong:
        return "not exclusive", Finding(
            what, "bad", f"{wrong} of {names} names had not one winner on this machine alone"
        )
    return "", Finding(what, "ok", f"{names} names raced by {len(laps)} threads, one winner each")


def _rename(where: Path, clock: Clock) -> tuple[dict[str, str], Finding]:
    """A reader never sees a part of a file that is rewritten by rename, and never misses it.

    Parts are fatal to every method. A moment without the file is fatal to link, which could win the name in it; with
    mkdir the claim's folder stays.
    """
    path, bodies = where / "whole", [letter * 4000 for letter in "ab"]
    path.write_text(bodies[0])
    torn: list[str] = []
    missed: list[str] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            try:
                text = path.read_text()
            except OSError as error:
                missed.append(error.strerror or "an error")
                continue
            if text not in bodies:
                torn.append(f"{len(text)} of 4000 bytes")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        began = clock.monotonic()
        for k in range(100):
            temp = where / f"whole-{k}"
            temp.write_text(bodies[k % 2])
            temp.replace(path)
            if clock.monotonic() - began > _LIST_LIMIT_S:
                break
    finally:
        over.set()
        reader.join()
    if torn:
        part = f"a reader of a file that is rewritten saw {torn[0]}"
        return dict.fromkeys(METHODS, part), Finding("rename", "bad", part)
    if missed:
        gap = "a rewrite leaves a moment without the file, and a second machine could win the name in it"
        return {"link": gap}, Finding("rename", "note", f"a reader of a file that is rewritten was told: {missed[0]}")
    return {}, Finding("rename", "ok", f"a file rewritten {k + 1} times was always whole to a reader")


def _listing(where: Path, clock: Clock) -> Finding:
    folder = where / "listed"
    folder.mkdir()
    path = folder / "new"
    os.listdir(folder)  # noqa: PTH208 - so that there is an old listing to be shown
    path.touch()
    came = _until(lambda: "new" in os.listdir(folder), clock)  # noqa: PTH208 - names, not paths
    path.unlink()
    went = _until(lambda: "new" not in os.listdir(folder), clock)  # noqa: PTH208 - as above
    if came is None or went is None:
        return Finding("listing", "bad", f"a listing does not show one's own change within {_LIST_LIMIT_S:g} s")
    late = max(came, went)
    if late < 0.1:
        return Finding("listing", "ok", "shows one's own names at once")
    return Finding("listing", "note", f"shows one's own names {late:.1f} s late")


def _until(true: Callable[[], bool], clock: Clock) -> float | None:
    """Seconds until it holds, None if it does not in time."""
    began = clock.monotonic()
    while not true():
        if clock.monotonic() - began > _LIST_LIMIT_S:
            return None
        clock.sleep(0.005)
    return clock.monotonic() - began


def _stamped(stamps: Stamps, where: Path, clock: Clock) -> Iterator[Finding]:
    yield Finding("stamps", "ok" if stamps.step_s < 1 else "note", step_text(stamps.step_s))
    apart = abs(stamps.ahead_s) - stamps.error_s
    if apart > 0.1:
        way = "ahead of" if stamps.ahead_s > 0 else "behind"
        said = f"another clock's than this machine's, {abs(stamps.ahead_s):.1f} s {way} it; ages are taken from it"
        yield Finding("clock", "note", said)
    else:
        yield Finding("clock", "ok", "stamps agree with this machine's clock; whose they are, two machines can tell")
    if not _folder_moves(where, clock):
        yield Finding("folder stamps", "note", "a folder's stamp does not move with each new name: looks cost more")


def _folder_moves(where: Path, clock: Clock) -> bool:
    """Whether a folder's stamp changes when a name comes, given time for a coarse stamp to do so."""
    folder = where / "moves"
    folder.mkdir()
    before = folder.stat().st_mtime_ns
    for k in range(25):
        clock.sleep(0.1)
        (folder / str(k)).touch()
        if folder.stat().st_mtime_ns != before:
            return True
    return False


def _room(where: Path) -> Iterator[Finding]:
    if not hasattr(os, "statvfs"):
        free = shutil.disk_usage(where).free
        yield Finding("space", _enough(free, _LITTLE_BYTES), f"{size_text(free)} free")
        return
    found = os.statvfs(where)
    free = found.f_bavail * found.f_frsize
    yield Finding("space", _enough(free, _LITTLE_BYTES), f"{size_text(free)} free")
    if found.f_files:
        yield Finding("inodes", _enough(found.f_favail, _LITTLE_INODES), f"{found.f_favail} free")
    else:
        yield Finding("inodes", "ok", "not counted by this file system")


def _enough(free: int, little: int) -> How:
    return "ok" if free >= little else "note" if free > 0 else "bad"
