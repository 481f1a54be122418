"""What `dibs doctor` found out about a folder, kept beside the marker as claims: ``verdict/<k>.json``.

The marker is never rewritten, so later knowledge lies next to it; of two verdicts about one type of mount the
later one counts. The weighing is pure: type of mount, marker and verdicts in, method or a refusal out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dibs.backend import Backend, Judgement
from dibs.errors import RecordError
from dibs.record import decode

from ._keys import VERDICTS, verdict_key
from ._settle import Settler

__all__ = ["METHODS", "Verdict", "Weighed", "read_verdicts", "weigh", "write_verdict"]

log = logging.getLogger("dibs")
METHODS = ("link", "mkdir")  # the ways a folder can claim, the preferred one first
_KEY = re.compile(r"(\d+)\.json\Z")
_BAD = {
    "lies": "several machines won the same name",
    "missing": "the file system cannot do it",
}


@dataclass(frozen=True)
class Verdict:
    """One meeting's finding: ``methods`` maps link and mkdir to exclusive, lies, missing or unproven."""

    key: str
    mounts: tuple[str, ...]  # the types of mount it was found through
    methods: Mapping[str, str]


@dataclass(frozen=True)
class Weighed:
    """Whether a store may be used through this mount, by which method, and the sentence to show."""

    kind: Literal["taken", "warned", "refused"]
    fstype: str
    claim: str
    sentence: str


def read_verdicts(backend: Backend) -> list[Verdict]:
    """All verdicts there are, the latest last; one that does not read is logged, never an exception."""
    numbers = sorted(int(match[1]) for name in backend.names(VERDICTS) if (match := _KEY.match(name)))
    found = (_read(backend, verdict_key(k)) for k in numbers)
    return [verdict for verdict in found if verdict is not None]


def write_verdict(settler: Settler, body: Mapping[str, Any]) -> str:
    """Claim the next number for a verdict and return its key. Raises StoreError, UnsureError."""
    numbers = [int(match[1]) for name in settler.backend.names(VERDICTS) if (match := _KEY.match(name))]
    k = max(numbers, default=-1) + 1
    while settler.claim(verdict_key(k), dict(body), durable=True) is None:
        k += 1
    return verdict_key(k)


def weigh(judgement: Judgement, marker: Mapping[str, Any] | None, verdicts: Sequence[Verdict]) -> Weighed:
    """Whether the store may be used through a mount that was judged so, and how. Pure.

    A verdict about this type of mount beats the judgement, for better and for worse. Without a marker it also
    chooses the method; with one the method is the marker's, whatever else would be exclusive.
    """
    about = next((v for v in reversed(verdicts) if judgement.fstype in v.mounts), None)
    words = about.methods if about is not None else {}
    claim = str(marker.get("claim", "link")) if marker is not None else _choice(words, judgement.kind == "taken")
    word, fstype = words.get(claim, "unproven"), judgement.fstype
    kind, sentence = judgement.kind, judgement.sentence
    if word == "exclusive":
        kind, sentence = "taken", f"{fstype} keeps claims by {claim} exclusive, as `dibs doctor` found"
    elif about is not None and word in _BAD:
        kind, sentence = "refused", _refusal(fstype, claim, about, marker is not None)
    elif kind == "refused" and marker is not None and marker.get("verdict") == "unchecked":
        kind = "warned"
    return Weighed(kind, fstype, claim, sentence)


def _choice(words: Mapping[str, str], taken: bool) -> str:
    """The method of a new store: a proven one, or on a mount that is ``taken`` anyway the first not known to be bad."""
    exclusive = [method for method in METHODS if words.get(method) == "exclusive"]
    possible = [method for method in METHODS if words.get(method) not in _BAD]
    return ((possible if taken else exclusive) or possible or ["link"])[0]


def _refusal(fstype: str, claim: str, about: Verdict, there: bool) -> str:
    why = f"{fstype} is refused: `dibs doctor` found ({about.key}) that claims by {claim} are not exclusive on it"
    other = [method for method in METHODS if about.methods.get(method) == "exclusive"]
    if there and other:
        return (
            f"{why}, and this store claims so; {other[0]} is: start a new store with `dibs doctor` on an empty folder"
        )
    return f"{why}: {_BAD[about.methods[claim]]}. Use another file system, or mount this one in another way and run `dibs doctor` again"


def _read(backend: Backend, key: str) -> Verdict | None:
    try:
        there = backend.read(key)
        if there is None or not there.data:
            return None  # claimed by mkdir, and not written yet
        body = decode(there.data, key)
    except RecordError as wrong:
        log.warning("%s", wrong)
        return None
    mounts, methods = body.get("mounts"), body.get("methods")
    if not isinstance(mounts, list) or not isinstance(methods, dict):
        log.warning("%s is not a verdict of the doctor: it is ignored", key)
        return None
    return Verdict(key, tuple(map(str, mounts)), {str(name): str(word) for name, word in methods.items()})
