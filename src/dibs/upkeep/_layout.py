"""Which kind of object a key is, and which texts may be digests, by their shape alone. Pure.

A key that matches nothing is foreign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeGuard

from dibs.store import BLOCK, JournalKeys

__all__ = ["PER_ROLL", "RECORDS", "ROLLED", "Place", "digests_in", "is_digest", "is_folder", "place_of"]

_N = r"(?P<n>\d{8,})-(?P<attempt>\d+)"
_SEGMENT = r"[a-z0-9._%-]+"
_EITHER = rf"(study/(?P<study>{_SEGMENT})|sweep/(?P<sweep>{_SEGMENT}))"
_SHAPES = [
    (kind, re.compile(shape))
    for kind, shape in {
        "marker": r"dibs\.json",
        "verdict": r"verdict/\d+\.json",
        "adopted": r"(adopted|copy_of)\.json",
        "name": rf"name/{_SEGMENT}\.json",
        "blob": r"blobs/(?P<two>[0-9a-f]{2})/(?P<digest>(?P=two)[0-9a-f]{62})",
        "study": rf"study/(?P<study>{_SEGMENT})/study\.json",
        "trial": rf"{_EITHER}/trial/(?P<block>\d{{6,}})/{_N}\.json",
        "again": rf"{_EITHER}/again/(?P<block>\d{{6,}})/{_N}\.json",
        "live": rf"{_EITHER}/live/(?P<block>\d{{6,}})/{_N}\.json",
        "roll": rf"{_EITHER}/roll/(?P<level>[01])/(?P<seq>\d{{8,}})\.json",
        "given": rf"study/(?P<study>{_SEGMENT})/given/(?P<digest>[0-9a-f]{{64}})\.json",
        "wish": rf"study/(?P<study>{_SEGMENT})/note/wish/(?P<digest>[0-9a-f]{{64}})\.json",
        "release": rf"{_EITHER}/note/release/{_N}\.json",
        "stop": rf"{_EITHER}/note/(stop|go)/\d+\.json",
        "plan": rf"sweep/(?P<sweep>{_SEGMENT})/plan/\d{{8,}}\.json",
        "mark": rf"sweep/(?P<sweep>{_SEGMENT})/mark/{_SEGMENT}/{_SEGMENT}\.json",
        "slot": rf"{_EITHER}/slot/\d+/\d+\.json",
        "place": rf"sweep/(?P<sweep>{_SEGMENT})/host/{_SEGMENT}/\d+/\d+\.json",
        "entry": rf"optuna/(?P<journal>{_SEGMENT})/entry/(?P<folder>\d{{6,}})/(?P<number>\d{{8,}})\.json",
        "entries": rf"optuna/(?P<journal>{_SEGMENT})/roll/(?P<number>\d{{6,}})\.json",
        "work": rf"{_EITHER}/work/{_N}(/.*)?",
        "round": rf"(?P<round>round/{_SEGMENT}/\d{{8,}})/(terms|average|forgotten|(client|late)/{_SEGMENT}|averaging/\d+"
        rf"|again/(terms|average|client/{_SEGMENT})/\d+)\.json",
        "other": r"(sweep|champion|round)/.+",  # what other versions build on the same claim: not judged, but read
    }.items()
]
_FOLDER = re.compile(
    rf"study|sweep|name|blobs(/[0-9a-f]{{2}})?|tmp|{_EITHER}/((trial|again|live)(/\d{{6,}})?|roll(/[01])?|work|slot(/\d+)?"
    rf"|note(/(release|stop|go|wish))?)|study/{_SEGMENT}/given|sweep/{_SEGMENT}/(plan|final)"
    rf"|optuna(/{_SEGMENT}/(roll|entry(/\d{{6,}})?))?|round"
)
PER_ROLL = JournalKeys.PER_ROLL
RECORDS = ("trial", "again")  # the kinds that are attempts
ROLLED = re.compile(r"(\d{1,19})-(\d{1,19})", re.ASCII)  # the name of a copy in a roll: int() refuses 5000 digits
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Place(NamedTuple):
    """What a key is for. ``study`` is the escaped segment (``sweep/`` and a sweep's, all of a federated round's, or the
    journal's, whose entries have their number as n); n and attempt are -1 where there are none."""

    kind: str
    study: str = ""
    n: int = -1
    attempt: int = -1
    digest: str = ""


def place_of(key: str) -> Place:
    """The place of a key; kind "foreign" for what no version puts there."""
    for kind, shape in _SHAPES:
        found = shape.fullmatch(key)
        if found is None:
            continue
        parts = found.groupdict()
        place = Place(
            kind,
            parts.get("study")
            or parts.get("journal")
            or parts.get("round")
            or (f"sweep/{parts['sweep']}" if parts.get("sweep") else ""),
            int(parts.get("n") or parts.get("number") or -1),
            int(parts.get("attempt") or -1),
            parts.get("digest") or "",
        )
        if "block" in parts and not _in_its_block(kind, place, int(parts["block"])):
            return Place("foreign")
        if "folder" in parts and place.n // PER_ROLL != int(parts["folder"]):
            return Place("foreign")
        return place
    return Place("foreign")


def is_folder(key: str) -> bool:
    """Whether the store keeps objects below that very name. (The folder of a study has any name: it is not asked for.)"""
    return _FOLDER.fullmatch(key) is not None


def is_digest(value: Any) -> TypeGuard[str]:
    """Whether it may be the digest of a blob."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def digests_in(body: Any) -> Iterator[str]:
    """Every text in a record that may be the digest of a blob, wherever it stands."""
    stack = [body]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        elif is_digest(value):
            yield value


def _in_its_block(kind: str, place: Place, block: int) -> bool:
    """Attempt 0 lies under ``trial/``, the others under ``again/``, a live curve's attempt is any."""
    return place.n // BLOCK == block and (kind == "live" or (place.attempt > 0) == (kind == "again"))
