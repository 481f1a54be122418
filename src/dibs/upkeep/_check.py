"""Is the store as it should be? Says what is wrong, what it means and what to do; never changes anything.

It reads every object (``deep`` also every blob), so its cost is the store's size; run it when something looks odd,
before a store is archived, or never.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from dibs.errors import RecordError
from dibs.record import TrialRecord
from dibs.store import Store
from dibs.study._scoring import scores_in

from ._findings import Finding, Report
from ._inventory import Inventory, Step, take_inventory
from ._layout import PER_ROLL, ROLLED

__all__ = ["check"]


def check(store: Store, *, deep: bool = False, step: Step | None = None) -> Report:
    """Read the whole store and report. ``deep``: read and hash every blob too. Raises StoreError only for an outage."""
    found = take_inventory(store, step)
    findings = list(found.findings)
    for study, attempts in sorted(found.records.items()):
        findings += _study(study, attempts)
    findings += _rolls(found)
    findings += _holes(found)
    findings += _blobs(store, found, deep)
    unfinished = [*found.temporaries, *found.parts]
    findings += [Finding("temporary", entry.key, f"{max(0, entry.size)} bytes") for entry in unfinished]
    findings += [
        Finding("orphan", entry.key, "the live curve of an attempt that is closed or gone")
        for (study, n, attempt), entry in sorted(found.live.items())
        if not _is_running(found, study, n, attempt)
    ]
    return Report(
        store.url, found.objects, found.bytes, tuple(sorted(findings, key=lambda f: (not f.fault, f.kind, f.key)))
    )


def _is_running(found: Inventory, study: str, n: int, attempt: int) -> bool:
    attempts = found.records.get(study, {})
    if (n, attempt) not in attempts:
        return False
    record = attempts[n, attempt]
    return record is None or not record.closed


def _study(study: str, attempts: Mapping[tuple[int, int], TrialRecord | None]) -> Iterator[Finding]:
    """What the attempts of one study, or of one sweep, say about each other."""
    of_sweep = study.startswith("sweep/")
    base = f"{study}/" if of_sweep else f"study/{study}/"
    asked = max((record.of for record in attempts.values() if record is not None), default=0)
    goals = {record.goal for record in attempts.values() if record is not None and record.goal}
    if len(goals) > 1 and not of_sweep:
        yield Finding("contradictory", base, "its records have different goals")
    carried: dict[str, int] = {}
    all_read = all(record is not None for record in attempts.values())
    for (n, attempt), record in sorted(attempts.items()):
        key = f"{base}{n}-{attempt}"
        if n >= asked and all_read:
            yield Finding("beyond", key, f"the largest number of trials asked for is {asked}")
        if attempt and (n, attempt - 1) not in attempts:
            yield Finding("gap", key, f"attempt {attempt - 1} is not there")
        if record is None:
            continue
        first = attempts.get((n, 0))
        if attempt and first is not None and (first.point, first.seed) != (record.point, record.seed):
            yield Finding("contradictory", key, "its point or seed is not the first attempt's")
        if record.state == "done" and not scores_in(record) and not of_sweep:  # a cell is done by its copies
            wanted = (
                f"not a score for each of its {len(record.goal)} goals" if type(record.goal) is tuple else "no score"
            )
            yield Finding("contradictory", key, f"it is done and has {wanted}")
        if record.wish and carried.setdefault(record.wish, n) != n:
            yield Finding("contradictory", key, f"its wish is also carried by trial {carried[record.wish]}")


def _rolls(found: Inventory) -> Iterator[Finding]:
    """Copies must be what they are copies of; a copy without its original is the record."""
    for study, key, records in found.rolls:
        attempts = found.records.get(study, {})
        for name, copy in records.items():
            numbers = ROLLED.fullmatch(name)
            if numbers is None or not isinstance(copy, dict):
                yield Finding("torn", key, f"it holds something under the name {name!r:.80}")
                continue
            original = attempts.get((int(numbers[1]), int(numbers[2])))
            if original is None:
                continue  # removed by hand, or does not read (told already): the copy is the record
            ends = ("state", "score", "scores", "constraints", "nonce")
            scores = None if original.scores is None else list(original.scores)
            if [copy.get(end) for end in ends] != [
                original.state, original.score, scores, original.constraints, original.nonce,
            ]:  # fmt: skip
                yield Finding("contradictory", key, f"its copy of {name} is not what the original says")


def _holes(found: Inventory) -> Iterator[Finding]:
    """The numbers of a journal are consecutive; where a roll has the entries, nobody misses their originals."""
    for journal, numbers in sorted(found.journals.items()):
        for start, end in _missing(sorted(numbers)):
            if not set(range(start // PER_ROLL, (end - 1) // PER_ROLL + 1)) <= found.joined.get(journal, set()):
                yield Finding("hole", f"optuna/{journal}/entry/{start:08d}", f"{end - start} missing")


def _missing(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """The intervals below the highest number that are not in the sorted list."""
    before = -1
    for number in numbers:
        if number > before + 1:
            yield before + 1, number
        before = number


def _blobs(store: Store, found: Inventory, deep: bool) -> Iterator[Finding]:
    for digest, key in sorted(found.named.items()):
        # the blobs were listed before the records were read: a worker may have brought both since
        if digest not in found.blobs and not store.has(digest):
            yield Finding("missing", key, f"it names the blob {digest}")
    for digest, entry in sorted(found.blobs.items()):
        needed = found.references.get(digest)
        if needed is None:
            yield Finding("orphan", entry.key, f"{max(0, entry.size)} bytes")
        if deep:  # an orphan, too: who stores these bytes again is told that they are there
            try:
                whole = _digest(store.backend.stream(entry.key) or ()) == digest
            except RecordError as wrong:  # a link, a FIFO: there are no bytes
                yield Finding("damaged", entry.key, str(wrong))
                continue
            if not whole:
                yield Finding("damaged", entry.key, f"{needed} needs it" if needed else "nothing refers to it yet")


def _digest(chunks: Iterable[bytes]) -> str:
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
    return hasher.hexdigest()
