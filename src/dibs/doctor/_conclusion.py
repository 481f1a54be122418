"""What a meeting means for a store: the worst of its mounts, in a sentence, and written down where every open looks.

The figures were judged before (``_judge``); here they meet the mounts' types and the marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dibs._clock import iso
from dibs.backend import FolderBackend, judge
from dibs.record import FORMAT
from dibs.store import MARKER, METHODS, Machine, Settler, Verdict, Weighed, open_folder, weigh, write_verdict

from ._models import Delay, Guest, Method

__all__ = ["sentence", "worst_of", "write"]


def worst_of(marker: dict[str, Any] | None, guests: Sequence[Guest], methods: Sequence[Method]) -> Weighed:
    """What the store is worth on the worst of the mounts, given what was found just now."""
    mounts = tuple(dict.fromkeys(guest.mount for guest in guests))
    verdict = Verdict("this meeting", mounts, _words(methods))
    weighed = [weigh(judge(mount), marker, [verdict]) for mount in mounts]
    return max(weighed, key=lambda each: ("taken", "warned", "refused").index(each.kind))


def sentence(worst: Weighed, methods: Sequence[Method]) -> str:
    """The verdict as people read it."""
    if all(each.bad for each in methods if each.name in METHODS):
        return (
            f"{worst.fstype} keeps no claim exclusive: no store can lie here. Use another file system; if a bucket is "
            "behind this mount, give the bucket itself"
        )
    unproven = [each for each in methods if each.name == worst.claim and each.word == "unproven"]
    if unproven:
        return f"nothing is proven about claims by {worst.claim}: {unproven[0].why}. Taken unseen: {worst.sentence}"
    return worst.sentence


def write(
    root: Path, machine: Machine, guests: Sequence[Guest], methods: Sequence[Method], worst: Weighed, late: Sequence[Delay],
    *, used: bool,
) -> list[str]:  # fmt: skip
    """Write the verdict, and the marker of a store that is new (not ``used``); the keys. Nothing where nothing is proven.

    Raises StoreError.
    """
    words = _words(methods)
    if set(words.values()) == {"unproven"}:
        return []
    claim = next((name for name in METHODS if words[name] == "exclusive"), worst.claim)
    body = {
        "v": FORMAT, "kind": "verdict", "created_at": iso(machine.clock.wall()), "who": machine.who(guests[0].me),
        "mounts": sorted({guest.mount for guest in guests}), "machines": len(guests),
        "methods": words, "names": {each.name: each.names for each in methods},
        "several": {each.name: each.several for each in methods},
        "late_s": {delay.what: _rounded(delay.late_s) for delay in sorted(late, key=Delay.rank)},
    }  # fmt: skip
    backend = FolderBackend(root, claim="mkdir" if words["link"] == "missing" else claim)
    keys = [write_verdict(Settler(backend, machine), body)]
    if not used and worst.kind != "refused":
        open_folder(root, machine, create=True, unchecked=False)
        keys.append(MARKER)
    return keys


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


def _words(methods: Sequence[Method]) -> dict[str, str]:
    """What was found about the methods a store can claim by."""
    return {each.name: each.word for each in methods if each.name in METHODS}
