"""Everything in a store, read once and held by kind: what check and gc look at. Reads, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dibs.backend import Entry
from dibs.errors import NewerFormat, RecordError
from dibs.record import TrialRecord, decode, decode_trial
from dibs.store import Store

from ._findings import Finding
from ._layout import RECORDS, ROLLED, Place, digests_in, is_digest, is_folder, place_of
from ._walk import entries_of, is_link, parts_of

__all__ = ["Inventory", "Step", "take_inventory"]

Step = Callable[[int], None]
# a roll that does not read is a cache lost: what it names, its originals name; curves and Optuna's entries name no blob
_NAMES_NOTHING = ("roll", "live", "entry", "entries")


@dataclass
class Inventory:
    """The store's objects by kind; ``references`` are the digests any readable object names."""

    objects: int = 0
    bytes: int = 0
    blobs: dict[str, Entry] = field(default_factory=dict)  # digest -> entry
    temporaries: list[Entry] = field(default_factory=list)
    parts: list[Entry] = field(default_factory=list)  # durable copies of sweeps that were never finished
    live: dict[tuple[str, int, int], Entry] = field(default_factory=dict)
    records: dict[str, dict[tuple[int, int], TrialRecord | None]] = field(default_factory=dict)  # study -> attempts
    rolls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)  # (study, key, "n-a" -> record)
    journals: dict[str, set[int]] = field(default_factory=dict)  # journal of Optuna's operations -> its entries
    joined: dict[str, set[int]] = field(default_factory=dict)  # the same -> the blocks that a roll has
    named: dict[str, str] = field(default_factory=dict)  # digest of a blob -> a record that names it
    references: dict[str, str] = field(default_factory=dict)  # whatever may be a digest -> a key that has it
    rounds: dict[str, dict[str, str]] = field(default_factory=dict)  # federated round -> digest -> a record of it
    forgotten: set[str] = field(default_factory=set)  # the rounds whose blobs were put away on purpose
    findings: list[Finding] = field(default_factory=list)
    unreadable: int = 0  # objects whose references nobody can know


def take_inventory(store: Store, step: Step | None = None) -> Inventory:
    """Read the whole store. ``step`` is told how many objects were seen, for progress."""
    found = Inventory()
    for entry in entries_of(store):
        found.objects += 1
        found.bytes += max(0, entry.size)
        if step is not None:
            step(found.objects)
        _sort_in(store, found, entry, place_of(entry.key))
    for study, key, records in found.rolls:
        _only_copies(found, found.records.get(study, {}), key, records)
    for round, named in found.rounds.items():
        if round not in found.forgotten:
            for digest, key in named.items():
                found.named.setdefault(digest, key)
    found.temporaries = list(store.backend.list("tmp/", details=True))
    found.parts = list(parts_of(store))
    return found


def _only_copies(
    found: Inventory, attempts: dict[tuple[int, int], TrialRecord | None], key: str, records: dict[str, Any]
) -> None:
    """The blobs named by copies whose originals somebody removed: for every reader such a copy is the record."""
    for name, copy in records.items():
        numbers = ROLLED.fullmatch(name)
        if numbers is None or not isinstance(copy, dict) or (int(numbers[1]), int(numbers[2])) in attempts:
            continue
        files = copy.get("files")
        for digest in (copy.get("blob"), *(files.values() if isinstance(files, dict) else ())):
            if is_digest(digest):
                found.named.setdefault(digest, key)


def _sort_in(store: Store, found: Inventory, entry: Entry, place: Place) -> None:
    if (
        place.kind == "foreign"
        and entry.key.partition("/")[0] in ("study", "sweep", "name")
        and is_link(store, entry.key)
    ):
        _unreadable(found, entry.key, "link", "what is behind it was not looked at", place)
        return
    if is_folder(entry.key):
        _unreadable(
            found, entry.key, "in the way", "it is a link" if is_link(store, entry.key) else "it is a file", place
        )
        return
    if place.kind == "foreign":
        found.findings.append(Finding("foreign", entry.key, "no object of a store has such a name"))
        return
    if place.kind == "blob":
        if entry.size < 0:
            found.findings.append(Finding("damaged", entry.key, "a folder stands where its bytes belong"))
        else:
            found.blobs[place.digest] = entry
        return
    if place.kind == "live":
        found.live[place.study, place.n, place.attempt] = entry
    if place.kind == "entry":
        found.journals.setdefault(place.study, set()).add(place.n)
    try:
        there = store.backend.read(entry.key)
    except RecordError as wrong:
        _unreadable(found, entry.key, "torn", str(wrong), place)
        return
    if there is None:
        return  # removed meanwhile
    if not there.data:
        kind = "unwritten" if store.backend.traits.claim == "mkdir" else "torn"
        _unreadable(found, entry.key, kind, "it is empty", place)
        return
    try:
        if place.kind in RECORDS:
            _record(found, decode_trial(there.data, entry.key), entry.key, place)
            _references(found, decode(there.data, entry.key), entry.key)  # fields that this version does not know, too
        else:
            _other(found, decode(there.data, entry.key), entry.key, place)
    except NewerFormat as wrong:
        _unreadable(found, entry.key, "newer", str(wrong), place)
    except RecordError as wrong:
        _unreadable(found, entry.key, "torn", str(wrong), place)


def _unreadable(found: Inventory, key: str, kind: str, what: str, place: Place) -> None:
    spoilt = kind == "torn" and place.kind == "entry"
    found.findings.append(Finding("left out" if spoilt else kind, key, what))
    found.unreadable += kind == "newer" or place.kind not in _NAMES_NOTHING  # what a later version names, nobody knows
    if place.kind in RECORDS:
        found.records.setdefault(place.study, {})[place.n, place.attempt] = None


def _record(found: Inventory, record: TrialRecord, key: str, place: Place) -> None:
    if (record.n, record.attempt) != (place.n, place.attempt):
        found.findings.append(Finding("misplaced", key, f"it says it is trial {record.n} attempt {record.attempt}"))
        found.unreadable += 1
        return
    found.records.setdefault(place.study, {})[place.n, place.attempt] = record
    for digest in (record.blob, *record.files.values()):
        if digest:
            found.named.setdefault(digest, key)


def _other(found: Inventory, body: dict[str, Any], key: str, place: Place) -> None:
    if place.kind == "entry" and not isinstance(body.get("logs"), list):
        raise RecordError(f"{key} holds no operations", key=key)
    if place.kind == "entries":
        if not isinstance(body.get("entries"), list):
            raise RecordError(f"{key} holds no entries", key=key)
        found.joined.setdefault(place.study, set()).add(place.n)
    if place.kind == "roll":
        records = body.get("records")
        if isinstance(records, dict):
            found.rolls.append((place.study, key, records))
        else:
            found.findings.append(Finding("torn", key, "it holds no records"))
    elif place.kind == "plan":
        for digest in _planned(body, key):
            found.named.setdefault(digest, key)
    elif place.kind == "round":
        _of_round(found, body, key, place.study)
    _references(found, body, key)


def _of_round(found: Inventory, body: dict[str, Any], key: str, round: str) -> None:
    if body.get("kind") == "round-forgotten":
        found.forgotten.add(round)
    for name in ("blob", "layout", "base"):
        if isinstance(body.get(name), str):
            found.rounds.setdefault(round, {}).setdefault(body[name], key)


def _planned(body: dict[str, Any], key: str) -> list[str]:
    """The digests of the scripts and configs that a plan's cells run with. Raises RecordError."""
    try:
        digests = [*body["task"].get("scripts", {}).values(), *(cell.get("config") for cell in body["cells"])]
    except (KeyError, TypeError, AttributeError):
        raise RecordError(f"{key} is not the plan of a sweep", key=key) from None
    return [digest for digest in digests if isinstance(digest, str)]


def _references(found: Inventory, body: Any, key: str) -> None:
    """Any text of 64 hex digits may be a digest: better to keep one blob too many."""
    for digest in digests_in(body):
        found.references.setdefault(digest, key)
