"""What can be wrong with a store, each kind with what it means and what to do. Pure.

Two weights: a *fault* is a promise that does not hold (a damaged result, two answers to one question); a *leftover*
costs room and nothing else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from ._layout import place_of

__all__ = ["KINDS", "Finding", "Report"]

#: kind -> (is it a fault, what it means, what to do)
KINDS: dict[str, tuple[bool, str, str]] = {
    "torn": (True, "the object does not parse: who reads goes on without it", "restore the file from a copy, or remove it by hand"),
    "newer": (True, "a later version of dibs wrote it", "upgrade dibs on this machine"),
    "foreign": (False, "no version of dibs puts a file there", "move it out of the store"),
    "link": (True, "a link stands where a folder of the store belongs: nobody follows it, and what it leads to is not seen",
             "put what it leads to in its place, or remove it by hand"),
    "in the way": (True, "a file or a link stands where a folder of the store belongs: nothing can be written below that name",
                   "move it out of the store; what was there before, restore from a copy"),
    "misplaced": (True, "the object under this name belongs to another one", "remove the file by hand"),
    "missing": (True, "a record names bytes that are not there", "the score is whole; curve, traceback or file are lost"),
    "damaged": (True, "the bytes under a digest are others", "remove the file by hand; who has the original puts it again"),
    "contradictory": (True, "two objects say different things about one trial", "the fold decides; tell the authors if nobody edited files"),
    "left out": (True, "an entry of an Optuna journal does not parse: readers leave it out, unless a roll has it",
                 "what it said is lost; processes that had read it before and go on may number later trials differently: start them again"),
    "hole": (True, "an entry of an Optuna journal is gone: readers stop before it until the next write takes its place",
             "put it back from a copy, or write anything (a study attribute will do) and start all processes again"),
    "gap": (True, "an attempt is there and the one before it is not", "somebody removed a record by hand; nothing to do"),
    "beyond": (True, "a trial at or above the largest number ever asked for", "tell the authors if nobody edited files"),
    "orphan": (False, "nothing refers to it", "`dibs gc` removes it once it is old"),
    "temporary": (False, "a write that was never finished, or is just going on", "`dibs gc` removes it once it is old"),
    "unwritten": (False, "a claim whose record was never written", "it counts as running and is rescued when quiet"),
}  # fmt: skip

_FREE = "remove the file by hand, which frees the name"
#: place of an object that does not parse (or was never written) -> what it means there, what to do
_BY_PLACE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("trial", "again"), (
        "the record does not parse: it counts as running since its last write, without a score",
        "a running trial mends itself or is rescued; else remove the file by hand and the trial runs again")),
    "study": ("the study's definition does not parse: nobody can join, results are still read",
              "restore the file from a copy; without one remove it by hand: who brings space, goal and seed writes it anew"),
    "roll": ("a cache of closed trials does not parse: reading takes longer, nothing is lost while their own records are there",
             "nothing to do"),
    "entries": ("a cache of an Optuna journal does not parse: reading takes longer, nothing is lost", "nothing to do"),
    "live": ("the curve of a running trial does not parse: no pruner hears it", "nothing to do: its owner writes it anew"),
    "wish": ("a wish does not parse: nobody serves it", "remove the file by hand and enqueue the point again"),
    "given": ("an attached result does not parse: no sampler sees it", "remove the file by hand and attach it again"),
    "name": ("a claimed name does not parse: it stays claimed, and nobody can tell by whom", _FREE),
    "verdict": ("a verdict of the doctor does not parse: it is not minded", "let the machines meet again: dibs doctor --join"),
}  # fmt: skip
_CLAIM = "if the process that did so is dead, remove the folder beside it that ends in .claim, and whoever comes next"
_UNWRITTEN: dict[str, tuple[str, str]] = {
    "study": ("a study was claimed and its definition never written: nobody can join", f"{_CLAIM} creates it"),
    "plan": ("a version of a sweep's plan was claimed and never written: the one before counts, and none can be added", f"{_CLAIM} plans it"),
    "mark": ("a step of a sweep was claimed and never written: it counts as not taken", f"{_CLAIM} takes it"),
}  # fmt: skip


def _said(kind: str, key: str) -> tuple[str, str]:
    """(what it means, what to do): of what does not read, that depends on what it is."""
    place, (_, meaning, cure) = place_of(key).kind, KINDS[kind]
    by_place = {"torn": _BY_PLACE, "unwritten": _UNWRITTEN}.get(kind, {})
    return by_place.get(place, (meaning, cure))


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found: its kind, the key it is about, and what exactly."""

    kind: str
    key: str
    what: str

    @property
    def fault(self) -> bool:
        """Whether a promise does not hold (else it only costs room)."""
        return KINDS[self.kind][0]

    @property
    def meaning(self) -> str:
        return _said(self.kind, self.key)[0]

    @property
    def cure(self) -> str:
        return _said(self.kind, self.key)[1]


@dataclass(frozen=True, slots=True)
class Report:
    """What a check looked at and found. ``clean``: no fault (leftovers may be there)."""

    store: str
    objects: int
    bytes: int
    findings: tuple[Finding, ...]

    @property
    def clean(self) -> bool:
        return not any(finding.fault for finding in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(finding.kind for finding in self.findings))

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "store": self.store, "objects": self.objects, "bytes": self.bytes, "clean": self.clean, "counts": self.counts,
            "findings": [
                {**asdict(finding), "fault": finding.fault, "meaning": finding.meaning, "cure": finding.cure}
                for finding in self.findings
            ],
        }  # fmt: skip
