"""``verify``: a pulled folder against its manifest, the manifest against the plan, and every file loaded.

Only when all of it holds is that written down, in the folder and in the store, with the manifest's digest. What was verified
and does not hold any more is taken back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dibs.errors import StoreError, UsageError
from dibs.store import Store

from ._bring import put_whole
from ._files import files_in, hash_file
from ._findings import Lying
from ._homes import ASIDE
from ._kinds import kind_of, matches
from ._loading import Loaded, load_all
from ._manifest import Manifest, PulledFile, digest_of, plan_digest
from ._marks import mark_verified, revoke
from ._models import Plan
from ._pull import BEGUN, PULLED

__all__ = ["VERIFIED", "Fault", "Rules", "Verified", "manifest_of", "verify"]

VERIFIED = "VERIFIED.json"
_OURS = (PULLED, VERIFIED, BEGUN)


@dataclass(frozen=True)
class Rules:
    """How files are loaded. ``loaders``: (pattern, ``module:function`` or a kind), the first that fits decides.
    ``allow_pickle``: run the code in pickles. ``allow_unloaded``, ``allow_not_finite``: patterns. ``time_s`` and ``memory``
    (bytes): what loading one file may take."""

    loaders: tuple[tuple[str, str], ...] = ()
    allow_pickle: bool = False
    allow_unloaded: tuple[str, ...] = ()
    allow_not_finite: tuple[str, ...] = ()
    time_s: float = 300.0
    memory: int | None = None
    jobs: int = 2


@dataclass(frozen=True)
class Fault:
    """What does not hold: of which file (None: of all), what it means, and what to do."""

    kind: str
    path: str | None
    what: str
    cure: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "path": self.path, "what": self.what, "cure": self.cure}


@dataclass(frozen=True)
class Verified:
    """``loaded``: kind -> how many files; ``unloaded``: paths that were let pass; ``manifest``: its digest."""

    manifest: str
    plan: int
    cells: int
    files: int
    bytes: int
    loaded: dict[str, int] = field(default_factory=dict)
    unloaded: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything holds, and there is something."""
        return self.cells > 0 and not self.faults

    @property
    def exit_code(self) -> int:
        """0 it holds, 5 there is nothing, 1 something does not hold."""
        return 5 if self.cells == 0 else 0 if self.passed else 1


_PULL = "dibs sweep pull DEST brings it again"
_CURES = {
    "other plan": "dibs sweep pull DEST, and verify again",
    "roster": "dibs sweep pull DEST, once every cell is done",
    "count": "see what --expect counts, or which cells are missing: dibs sweep reconcile",
    "missing": _PULL,
    "size": _PULL,
    "hash differs": _PULL,
    "link": "remove it; " + _PULL,
    "unexpected": "move it out of the folder",
    "not loaded": "name a loader (--loader), or let it pass (--allow-unloaded)",
    "does not load": "see what wrote it; dibs sweep retry --force {cell} runs the cell again",
    "not finite": "see why the cell diverged, or let it pass (--allow-not-finite)",
}
Step = Callable[[str, int, int], None]


def manifest_of(dest: Path) -> tuple[Manifest, str]:
    """The manifest of a pulled folder and its digest. Raises UsageError if there is none that reads."""
    path = dest / PULLED
    try:
        if path.is_symlink():
            raise UsageError(f"{path} is a link: pull again into an empty folder")
        data = path.read_bytes()
    except OSError as wrong:
        raise UsageError(
            f"{path} cannot be read ({wrong.strerror}): dibs sweep pull {dest} writes it, at its end"
        ) from None
    return Manifest.decode(data, str(path)), digest_of(data)


def verify(
    store: Store,
    plan: Plan,
    dest: str | os.PathLike[str],
    rules: Rules | None = None,
    *,
    expect: int | None = None,
    me: str | None = None,
    step: Step | None = None,
) -> Verified:
    """Check a pulled folder in full and load every file; if all holds, write that down in the store and the folder.

    ``expect``: how many cells there have to be, besides as many as the plan has. ``step`` is told (what is done, files done,
    files there are). Raises UsageError (no manifest, or one that cannot be trusted), StoreError.
    """
    rules = rules or Rules()
    folder = Path(dest).absolute()
    manifest, digest = manifest_of(folder)
    faults = [*_roster(store, plan, manifest, expect)]
    broken = list(_folder(folder, manifest, rules.jobs, step))
    faults += broken
    whole = [one for one in manifest.files if one.path not in {fault.path for fault in broken}]
    kinds, unloaded, wrong = _load(store, folder, whole, rules, step)
    told = Verified(
        digest, manifest.plan, len(manifest.cells), len(manifest.files), sum(one.size for one in manifest.files), kinds,
        unloaded, (*faults, *wrong),
    )  # fmt: skip
    _write_down(store, plan, folder, manifest, told, rules, me)
    return told


def _roster(store: Store, plan: Plan, manifest: Manifest, expect: int | None) -> Iterator[Fault]:
    mine = str(store.marker.get("nonce") or store.url)
    if (manifest.sweep, manifest.store) != (plan.sweep, mine):
        yield _fault(
            "other plan", None, f"it was pulled of sweep {manifest.sweep!r} of another store, or another sweep"
        )
    elif (manifest.plan, manifest.plan_digest) != (plan.version, plan_digest(plan)):
        yield _fault(
            "other plan", None, f"it was pulled at version {manifest.plan} of the plan, which is at {plan.version}"
        )
    wanted = {cell.name: (cell.n, cell.digest) for cell in plan.active}
    there = {cell.name: (cell.n, cell.digest) for cell in manifest.cells}
    for name in [name for name in wanted if there.get(name) != wanted[name]]:
        why = manifest.missing.get(name) or ("it is another version of it" if name in there else "it was not pulled")
        yield _fault("roster", name, why)
    for name in sorted(there.keys() - wanted.keys()):
        yield _fault("roster", name, "the plan has no such cell, or has dropped it")
    bare = {cell.name for cell in manifest.cells} - {one.cell for one in manifest.files if one.kind == "artifact"}
    for name in sorted(bare):
        yield _fault("roster", name, "not one artefact of it is in the manifest")
    if expect is not None and expect != len(manifest.cells):
        yield _fault("count", None, f"there are {len(manifest.cells)} cells, and {expect} are expected")


def _folder(folder: Path, manifest: Manifest, threads: int, step: Step | None) -> Iterator[Fault]:
    """Every file of the manifest, and none besides."""
    there = {
        name: lying for name, _, lying in files_in(folder)
        if not name.startswith(f"{ASIDE}/") and name not in _OURS and not _is_part(name)
    }  # fmt: skip
    wanted = {one.path: one for one in manifest.files}
    for name in sorted(there.keys() - wanted.keys()):
        yield _fault(
            "unexpected" if there[name].why is None else "link", name, there[name].why or "it is in no manifest"
        )
    present = [one for one in manifest.files if one.path in there]
    for one in manifest.files:
        if one.path not in there:
            yield _fault("missing", one.path, "it is in the manifest, and not there")
    with ThreadPoolExecutor(max(1, threads), thread_name_prefix="dibs-hash") as pool:
        for at, (one, fault) in enumerate(
            zip(present, pool.map(lambda one: _held(folder, one, there[one.path]), present), strict=True), 1
        ):
            if fault is not None:
                yield _fault(fault[0], one.path, fault[1])
            if step is not None:
                step("hashed", at, len(present))


def _held(folder: Path, one: PulledFile, lying: Lying) -> tuple[str, str] | None:
    if lying.why is not None:
        return "link", lying.why
    if lying.size != one.size:
        return "size", f"it has {lying.size} bytes instead of {one.size}"
    try:
        size, digest = hash_file(folder / one.path)
    except OSError as wrong:
        return "hash differs", f"it cannot be read: {wrong.strerror or wrong}"
    if (size, digest) != (one.size, one.digest):
        return "hash differs", f"its SHA-256 is {digest[:12]}... instead of {one.digest[:12]}..."
    return None


def _is_part(name: str) -> bool:
    """What a pull that was killed, or is at work, has left."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and last.endswith(".part")


def _load(
    store: Store, folder: Path, files: Sequence[PulledFile], rules: Rules, step: Step | None
) -> tuple[dict[str, int], tuple[str, ...], list[Fault]]:
    asked: list[tuple[PulledFile, str]] = []
    unloaded, faults = [], []
    for one in files:
        how = "text" if one.kind == "log" else "json" if one.kind == "record" else kind_of(one.path, rules.loaders)
        if one.kind == "log" and not one.size:
            continue  # a program that says nothing has an empty log
        if how is None or (how == "pickle" and not rules.allow_pickle):
            if any(matches(one.path, pattern) for pattern in rules.allow_unloaded):
                unloaded.append(one.path)
            elif how is None:
                faults.append(_fault("not loaded", one.path, "nobody knows how to load a file of this name"))
            else:
                faults.append(
                    Fault(
                        "not loaded",
                        one.path,
                        "a pickle runs the code in it",
                        "--allow-pickle, if you trust who wrote it",
                    )
                )
        else:
            asked.append((one, how))
    found = load_all(
        [(folder / one.path, how) for one, how in asked], store.machine.clock, jobs=rules.jobs, time_s=rules.time_s,
        memory=rules.memory, step=None if step is None else lambda at, of: step("loaded", at, of),
    )  # fmt: skip
    kinds: dict[str, int] = {}
    for (one, how), loaded in zip(asked, found, strict=True):
        if _passes(one, loaded, rules):
            kinds[how] = kinds.get(how, 0) + 1
        elif loaded.state == "not loaded" and any(matches(one.path, pattern) for pattern in rules.allow_unloaded):
            unloaded.append(one.path)
        else:
            faults.append(_fault(loaded.state, one.path, loaded.what))
    return kinds, tuple(unloaded), faults


def _passes(one: PulledFile, loaded: Loaded, rules: Rules) -> bool:
    if loaded.state == "not finite":
        return any(matches(one.path, pattern) for pattern in rules.allow_not_finite)
    return loaded.state == "loaded"


def _write_down(
    store: Store, plan: Plan, folder: Path, manifest: Manifest, told: Verified, rules: Rules, me: str | None
) -> None:
    if not told.passed:
        why = f"{told.faults[0].kind}: {told.faults[0].path or ''} {told.faults[0].what}" if told.faults else "no cells"
        if {fault.kind for fault in told.faults} - {"other plan", "count"}:  # of the files themselves
            revoke(store, plan.sweep, told.manifest, why[:500], me)
        _take_back(folder / VERIFIED)
        return
    body = {
        "store": manifest.store, "plan": manifest.plan, "plan_digest": manifest.plan_digest, "manifest": told.manifest,
        "results": manifest.results, "cells": told.cells, "files": told.files, "bytes": told.bytes, "loaded": told.loaded,
        "unloaded": list(told.unloaded), "allow_pickle": rules.allow_pickle,
        "allow_not_finite": list(rules.allow_not_finite), "loaders": [list(each) for each in rules.loaders],
    }  # fmt: skip
    whole = {**store.head("sweep-verified", me), "sweep": plan.sweep, **body}
    put_whole(folder / VERIFIED, (json.dumps(whole, indent=1, sort_keys=True) + "\n").encode())
    mark_verified(store, plan.sweep, told.manifest, body, me)  # last: what the gate goes by


def _take_back(path: Path) -> None:
    """Remove what says that the folder was verified, if it says so. Raises StoreError."""
    if not (path.exists() or path.is_symlink()):
        return  # a disk that is read-only refuses to remove what is not there
    try:
        path.unlink(missing_ok=True)
    except OSError as wrong:
        raise StoreError(f"{path} does not hold any more, and cannot be removed: {wrong.strerror or wrong}") from wrong


def _fault(kind: str, path: str | None, what: str) -> Fault:
    return Fault(kind, path, what, _CURES[kind].format(cell=(path or "").partition("/")[0]))
