"""Whose a place of durable copies is: one sweep's of one store. It says so in ``.dibs-final``, and others are refused.

Two sweeps with one ``--final`` would put each other's results aside, and neither would ever be proven. That the place got its mark
stands in the store, so that a folder beneath a mount point, where there is none, is found out before anything is copied.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from dibs.errors import RefusedError, StoreError, UsageError
from dibs.store import Store

from ._homes import MARK, done_in
from ._marks import claim_placed, placed
from ._models import Plan
from ._standing import standing

__all__ = ["check_apart_from", "check_place", "claim_place"]

log = logging.getLogger("dibs")
_FILE = "owner.json"


def claim_place(store: Store, plan: Plan, *, anew: bool = False, me: str | None = None) -> None:
    """Make the folder of ``--final`` this sweep's, if it is nobody's, and write down that it is. Durable when this returns.

    ``anew``: somebody says that it is the right folder, although it has lost its mark. Raises RefusedError naming whose it is,
    StoreError if it is another folder than the one that got the mark, or if cells are done and none of them lies there; OSError. The
    store's own place needs none.
    """
    if plan.task.final is None:
        return
    place = Path(plan.task.final)
    ours = {"store": str(store.marker.get("nonce") or store.url), "sweep": plan.sweep, "url": store.url}
    known = None if anew else placed(store, plan.sweep, str(place))
    mark = _demand(place, ours)
    if mark is None and known is not None:
        raise StoreError(_elsewhere(place, plan, known, f"has not the {MARK} that it got"))
    if mark is None:
        done = done_in(store, plan, standing(store, plan))
        if done and not any((place / cell).is_dir() for cell in done):
            raise StoreError(
                f"{len(done)} cells are done, and {place}, where their copies should be, has none of them: is it mounted here?"
            )
        mark = _make(store, place, ours)
        if anew and placed(store, plan.sweep, str(place)) is not None:
            log.warning("%s had no mark here, and has a new one: other machines must see this same folder there", place)
    token = str(mark.get("token") or "")
    if known is None and not claim_placed(store, plan.sweep, str(place), token, me):
        known = placed(store, plan.sweep, str(place))
    if known is not None and token != known.get("token"):
        raise StoreError(_elsewhere(place, plan, known, f"has another {MARK} than it got"))


def _elsewhere(place: Path, plan: Plan, known: Mapping[str, Any], seen: str) -> str:
    who = known.get("who")
    host = who.get("host") if isinstance(who, dict) else None
    return (
        f"{place}, where copies go, {seen} on {host!s:.100}: is it mounted here, as it is there? If it is the right folder all the "
        f"same: dibs sweep plan --name {plan.sweep} --final {place} --new-version"
    )


def _make(store: Store, place: Path, ours: dict[str, str]) -> Mapping[str, object]:
    """The mark, made as a whole; another one of ours, if somebody was quicker."""
    mark = {**ours, "token": store.machine.entropy(16).hex()}
    place.mkdir(parents=True, exist_ok=True)
    part = place / f".part-.owner-{store.machine.entropy(16).hex()}"  # no cell's name begins with a dot
    try:
        part.mkdir()
        with (part / _FILE).open("x", encoding="utf-8") as file:
            json.dump(mark, file)
            file.flush()
            os.fsync(file.fileno())
        try:
            part.rename(place / MARK)
        except OSError as wrong:
            if wrong.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            return _demand(place, ours) or mark
        return mark
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_place(
    store: Store | None,
    root: Path | None,
    plan: Plan,
    new: Collection[str],
    outs: Iterable[tuple[str, str]],
    *,
    moved: bool = True,
) -> None:
    """Before anything is written: that no other thing is in the way of ``--final``. ``new``: cells that nobody can have
    run; ``outs``: (cell, the folder it would write to); ``moved``: it is another place than before. Raises UsageError, RefusedError (another sweep's)."""
    if plan.task.final is None:
        return
    place = Path(plan.task.final)
    if moved and place.is_file():
        raise UsageError(f"--final {place} is a file: name a folder")
    nonce = str(store.marker.get("nonce") or store.url) if store is not None else ""
    there = _owner(place)
    if there is not None:
        _demand(place, {"store": nonce, "sweep": plan.sweep})
    real = Path(os.path.realpath(place))
    if root is not None and _overlap(real, Path(os.path.realpath(root))):
        raise UsageError(
            f"--final {place}: one of it and the store {root} would lie in the other: give it a folder of its own, or leave it out"
        )
    for cell, out in outs:
        if _overlap(real, Path(os.path.realpath(out))):
            raise UsageError(
                f"--final {place}: one of it and {out}, where the cell {cell} would write, would lie in the other: "
                "give durable copies a folder of their own"
            )
    try:
        taken = sorted(set(new) & set(os.listdir(place)))  # noqa: PTH208 - names are all it takes
    except OSError:
        return
    if taken and there is None:
        raise UsageError(
            f"--final {place}: {taken[0]} is there already, and no sweep says that it is its own: move it away, or give "
            "durable copies another folder"
        )


def check_apart_from(before: Plan, plan: Plan) -> None:
    """That another ``--final`` than before is another place. Raises UsageError."""
    was, now = before.task.final, plan.task.final
    if was is not None and now is not None and _overlap(Path(os.path.realpath(was)), Path(os.path.realpath(now))):
        raise UsageError(
            f"--final {now}: one of it and {was}, where copies went so far, lies in the other: give it a folder of its own"
        )


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _demand(place: Path, ours: dict[str, str]) -> Mapping[str, object] | None:
    """The place's mark, which is ours; None if it has none yet. Raises RefusedError, OSError."""
    theirs = _owner(place)
    if theirs is None:
        return None
    if (theirs.get("store"), theirs.get("sweep")) != (ours["store"], ours["sweep"]):
        of = f"the sweep {theirs.get('sweep')!r:.200} of the store {theirs.get('url')!s:.200}"
        raise RefusedError(
            f"{place} keeps the results of {of}: plan this one with another --final (and --new-version)", field="final",
            theirs=theirs.get("store"), ours=ours["store"],
        )  # fmt: skip
    return theirs


def _owner(place: Path) -> dict[str, object] | None:
    """What the place says of itself; None if it says nothing. Something that does not read is somebody's."""
    try:
        data = (place / MARK / _FILE).read_bytes()
    except OSError:
        return None  # not there, or nobody can say: whoever writes there will see
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
