"""What must always hold, by name: once, whole, kept, exact, alone, readers, same, typed, told.

Each is a function of plain data, a list of events in order and a fresh reading of the study at the end, and
returns sentences about what it found broken (none: it holds). Trials that were touched by hand are left out of
once, kept and same, as the design says. Used by the simulator; a torture test of real processes can use them too.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dibs.record import CLOSED, TrialRecord, decode, nonce_of
from dibs.store import StudyKeys

__all__ = [
    "ALL",
    "Event",
    "Reading",
    "Stands",
    "alone",
    "broken",
    "exact",
    "kept",
    "once",
    "readers",
    "same",
    "told",
    "typed",
    "whole",
]


class Stands(NamedTuple):
    """How a reader says a trial stands, and which attempt counts."""

    state: str
    settled: bool
    attempt: int
    score: float | None


@dataclass(frozen=True)
class Reading:
    """What one look at a study gave. ``attempts``: (n, attempt) -> the record or a roll's copy, None where none reads."""

    attempts: Mapping[tuple[int, int], TrialRecord | None] = field(default_factory=dict)
    trials: Mapping[int, Stands] = field(default_factory=dict)
    problems: Collection[str] = ()  # keys that are shown as not readable
    queued: Collection[str] = ()  # wishes shown as waiting
    stopped: bool = False
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    study: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, in order. ``what`` and the fields it fills:

    asked (number: N)        this process may claim indexes below N from now on
    claimed, refused, unsure (key, nonce)     what a claim told its caller
    blind (key)                               a later attempt is about to be claimed, and no earlier one could be read
    owns (key, nonce, point)                  an attempt in its owner's hands
    wrote (key, data, before, note=verb)      a name's bytes changed; data None: removed; ``by_hand``
    closed (key, nonce, state, score)         a close returned to its caller
    saved (key, note=name, digest)            a file is kept, its caller was told
    lost (key, nonce, note)                   an owner was told that the attempt is not its own any more
    wished (digest)                           an enqueue returned
    steps                                     a worker begins to look for something to claim
    stopped, resuming (note)                  a stop returned, a resume is about to be called (note: nobody knows)
    looked (reading, since)                   a fresh reader; ``since``: the position of the event before it began
    held (reading)                            a reader that held an old view, at the very end
    idle (number: N, note)                    a worker of N trials ended because nothing is left
    killed, hung, crashed (note)              a process died on purpose, never ended, ended by itself
    """

    at: float
    who: str
    what: str
    key: str = ""
    nonce: str = ""
    state: str = ""
    number: int = 0
    note: str = ""
    digest: str = ""
    score: float | None = None
    point: Mapping[str, Any] | None = None
    data: bytes | None = None
    before: bytes | None = None
    by_hand: bool = False
    role: str = ""
    reading: Reading | None = None
    since: int = 0


Events = Sequence[Event]


def once(events: Events, final: Reading) -> Iterator[str]:
    """At most one process owns an attempt, whatever was answered; at most one trial carries a wish.

    Told lost although the name carries our nonce is broken too: nothing else sees a blind retry.
    """
    hands = _by_hand(events)
    owner: dict[str, Event] = {}
    refused: dict[str, Event] = {}
    landed: dict[str, Event] = {}
    for event in events:
        if _trial_of(event.key) in hands:
            continue
        if event.what == "claimed":
            other = owner.setdefault(event.key, event)
            if other is not event:
                yield f"{event.key} was won by {other.who} and by {event.who}"
        elif event.what == "refused":
            refused[event.nonce] = event
        elif event.what == "wrote" and event.data is not None and _is_record(event.key):
            nonce, before = nonce_of(event.data), nonce_of(event.before or b"")
            if nonce is None:
                continue
            landed.setdefault(nonce, event)
            if before is not None and before != nonce:
                yield f"{event.who} wrote over {event.key}, which carries another nonce"
            elif before is not None and (event.key not in owner or owner[event.key].who != event.who):
                yield f"{event.who} rewrote {event.key} without owning it"
    for nonce, event in refused.items():
        if nonce in landed:
            yield f"{event.who} was told it lost {event.key}, but the name carries its nonce"
    carriers: defaultdict[str, set[int]] = defaultdict(set)
    for (n, attempt), record in final.attempts.items():
        if record is not None and record.wish and attempt == 0 and n not in hands:
            carriers[record.wish].add(n)
    for wish, trials in carriers.items():
        if len(trials) > 1 and not any(_rescued_unread(events, n) for n in trials):
            yield f"the wish {wish[:8]} is carried by trials {sorted(trials)}"


def whole(events: Events, final: Reading) -> Iterator[str]:
    """Nobody sees part of a write: a record that was written whole reads, and a digest named by one is a whole blob."""
    hands = _by_hand(events)
    for event in events:
        ours = event.what == "wrote" and not event.by_hand and _is_record(event.key)
        if ours and event.data is not None and nonce_of(event.data) is None:
            yield f"{event.who} wrote a part of {event.key}"
    for (n, attempt), record in final.attempts.items():
        if record is None or n in hands:
            continue
        for digest in [*record.files.values(), *([record.blob] if record.blob else [])]:
            data = final.blobs.get(digest)
            if data is None or hashlib.sha256(data).hexdigest() != digest:
                yield f"trial {n} attempt {attempt} names the blob {digest[:8]}, which is not there whole"


def kept(events: Events, final: Reading) -> Iterator[str]:
    """A close that returned stays, to the byte; a done trial stays done for every later fresh reader and the last one.

    A held reader agrees in the end. A file that ``save`` acknowledged stays in the record.
    """
    hands = _by_hand(events)
    bytes_of: dict[str, bytes | None] = {}
    closed: dict[str, bytes] = {}  # key -> the bytes it was closed with
    promised: list[tuple[int, Event]] = []
    for at, event in enumerate(events):
        if _trial_of(event.key) in hands:
            continue
        if event.what == "wrote":
            if event.key in closed and event.data != closed[event.key]:
                yield f"{event.who} changed {event.key} after it was closed"
            bytes_of[event.key] = event.data
            if event.data is not None and _state(event.data) in CLOSED:
                closed.setdefault(event.key, event.data)
        elif event.what == "closed":
            promised.append((at, event))
            if _state(bytes_of.get(event.key) or b"") != event.state:
                yield f"{event.who} was told {event.key} is {event.state}, and it is not"
        elif event.what == "saved" and event.digest.encode() not in (bytes_of.get(event.key) or b""):
            yield f"{event.who} was told {event.note!r} is kept in {event.key}, and it is not"
        elif event.what == "looked" and event.reading is not None:
            yield from _remembers(event.reading, [old for when, old in promised if when < event.since], hands)
    yield from _remembers(final, [event for _, event in promised], hands)
    yield from _files_remain(events, hands)
    for event in events:
        if event.what == "held" and event.reading is not None:
            for n in sorted(final.trials.keys() | event.reading.trials.keys()):
                ours, theirs = event.reading.trials.get(n), final.trials.get(n)
                if n not in hands and ours != theirs:
                    yield f"{event.who} holds trial {n} as {ours}, a fresh reader as {theirs}"
            if not hands and set(event.reading.queued) != set(final.queued):
                yield f"{event.who} holds the wishes {event.reading.queued}, a fresh reader {final.queued}"


def exact(events: Events, final: Reading) -> Iterator[str]:
    """No index at or above the largest N asked for, ever; all below it settled once a worker of N has nothing left.

    Nothing is claimed in a step that began after a stop had returned.
    """
    yield from _after_stop(events)
    most = 0
    for event in events:
        if event.what == "asked":
            most = max(most, event.number)
        elif event.what == "wrote" and event.data is not None and not event.by_hand:
            n = _trial_of(event.key)
            if n is not None and _is_attempt(event.key) and n >= most:
                yield f"{event.who} claimed trial {n}, and nobody asked for more than {most}"
    if final.stopped:
        return
    hands = _by_hand(events)
    served = 0
    for event in events:
        if event.what == "idle" and event.note != "stopped":
            served = max(served, event.number)
        elif event.what == "wrote" and "/note/release/" in event.key:
            served = 0  # somebody has freed a trial again
    for n in range(served):
        stands = final.trials.get(n)
        if n not in hands and (stands is None or not stands.settled):
            how = "missing" if stands is None else stands.state
            yield f"trial {n} is {how} though a worker of {served} trials found nothing left"


def alone(events: Events, final: Reading) -> Iterator[str]:
    """Whoever is killed, the rest end, and by themselves."""
    for event in events:
        if event.what in ("hung", "crashed"):
            yield f"{event.who} {event.what}: {event.note}"


def readers(events: Events, final: Reading) -> Iterator[str]:
    """Who only reads writes nothing."""
    for event in events:
        if event.what == "wrote" and event.role == "reader":
            yield f"the reader {event.who} wrote {event.key}"


def same(events: Events, final: Reading) -> Iterator[str]:
    """Every attempt has the point and seed of the first one, unless nothing lower could be read when it was claimed."""
    hands = _by_hand(events)
    first: dict[int, tuple[int, Any]] = {}
    blind = {_trial_of(event.key) for event in events if event.what == "blind"}
    for event in events:
        n = _trial_of(event.key)
        if event.what != "wrote" or event.data is None or n is None or n in hands | blind:
            continue
        record = final.attempts.get((n, _attempt_of(event.key))) if _is_attempt(event.key) else None
        if record is None:
            continue
        terms = (repr(sorted(record.point.items())), record.seed, record.contract)
        attempt, theirs = first.setdefault(n, (record.attempt, terms))
        if theirs != terms:
            yield f"trial {n} attempt {record.attempt} has {terms}, attempt {attempt} has {theirs}"


def typed(events: Events, final: Reading) -> Iterator[str]:
    """A point comes out equal and of the same types as it went in."""
    hands = _by_hand(events)
    for event in events:
        n = _trial_of(event.key)
        if event.what != "owns" or event.point is None or n is None or n in hands:
            continue
        record = final.attempts.get((n, _attempt_of(event.key)))
        if record is not None and repr(sorted(record.point.items())) != repr(sorted(event.point.items())):
            yield f"{event.key} went in as {event.point} and came out as {record.point}"


def told(events: Events, final: Reading) -> Iterator[str]:
    """Nothing is skipped silently: what does not read is shown, and a wish is carried by a trial or shown as waiting."""
    keys, hands = StudyKeys(final.study), _by_hand(events)
    for (n, attempt), record in final.attempts.items():
        if record is None and keys.attempt(n, attempt) not in final.problems:
            yield f"trial {n} attempt {attempt} does not read, and nobody is told"
    carried = {record.wish for record in final.attempts.values() if record is not None}
    for event in events:
        shown = event.digest in carried or event.digest in final.queued or keys.wish(event.digest) in final.problems
        if event.what == "wished" and not shown and not hands:
            yield f"the wish {event.digest[:8]} is neither carried nor shown as waiting"


ALL: Mapping[str, Callable[[Events, Reading], Iterator[str]]] = {
    check.__name__: check for check in (once, whole, kept, exact, alone, readers, same, typed, told)
}


def broken(events: Events, final: Reading) -> list[str]:
    """Everything that does not hold, as ``name: sentence``."""
    return [f"{name}: {sentence}" for name, check in ALL.items() for sentence in check(events, final)]


def _remembers(reading: Reading, promised: Sequence[Event], hands: Collection[int | None]) -> Iterator[str]:
    """A reader must know of every end that was acknowledged before it looked."""
    better = {"done": ("done",), "pruned": ("done", "pruned")}
    for event in promised:
        n = _trial_of(event.key)
        if n is None or n in hands or event.state not in better:
            continue
        stands = reading.trials.get(n)
        if stands is None or stands.state not in better[event.state] or not stands.settled:
            yield f"trial {n} was {event.state} ({event.key}, told to {event.who}) and a fresh reader says {stands}"
            continue
        done = [old for old in promised if _trial_of(old.key) == n and old.state == stands.state]
        top = max((_attempt_of(old.key) for old in done), default=0)
        if stands.attempt < top:
            yield f"trial {n} is judged by attempt {stands.attempt} though attempt {top} is {stands.state}"


def _after_stop(events: Events) -> Iterator[str]:
    stopped = False
    began: dict[str, bool] = {}  # who -> whether its last step began in a stopped study
    for event in events:
        if event.what == "steps":
            began[event.who] = stopped
        elif event.what == "stopped":
            stopped = True
        elif event.what == "resuming":
            stopped = False
            began.clear()
            if event.note == "unsure":
                return
        elif event.what == "wrote" and event.note == "create" and _is_attempt(event.key) and began.get(event.who):
            yield f"{event.who} claimed {event.key} in a stopped study"


def _files_remain(events: Events, hands: Collection[int | None]) -> Iterator[str]:
    """A file that was kept stays named, and never goes back to an older one. (A newer one nobody was told of may be.)"""
    saved = {event.key for event in events if event.what == "saved"}
    past: defaultdict[tuple[str, str], list[str]] = defaultdict(list)  # digests in the order they were first written
    kept: dict[tuple[str, str], str] = {}
    for event in events:
        if event.key not in saved or _trial_of(event.key) in hands:
            continue
        if event.what == "saved":
            kept[event.key, event.note] = event.digest
        elif event.what == "wrote" and event.data is not None:
            files = decode(event.data, event.key).get("files") or {}
            for name, digest in files.items():
                if digest not in past[event.key, name]:
                    past[event.key, name].append(digest)
            for (key, name), digest in kept.items():
                order = past[key, name]
                if key == event.key and (name not in files or order.index(files[name]) < order.index(digest)):
                    yield f"{event.who} wrote {key} without {name!r} as it was kept"


def _by_hand(events: Events) -> set[int | None]:
    return {_trial_of(event.key) for event in events if event.by_hand}


def _trial_of(key: str) -> int | None:
    at = StudyKeys.parse(key) if key else None
    return at[0] if at is not None else None


def _attempt_of(key: str) -> int:
    at = StudyKeys.parse(key)
    return at[1] if at is not None else 0


def _is_record(key: str) -> bool:
    """Whether the name is one that is claimed."""
    return "/live/" not in key and not key.startswith("blobs/")


def _is_attempt(key: str) -> bool:
    return "/trial/" in key or "/again/" in key


def _state(data: bytes) -> str:
    for state in (*CLOSED, "running"):
        if f'"state":"{state}"'.encode() in data:
            return state
    return ""


def _rescued_unread(events: Events, n: int) -> bool:
    """Whether attempt 0 of the trial was written only after a later one: a mkdir claim that was rescued meanwhile."""
    for event in events:
        if event.what == "wrote" and _is_attempt(event.key) and _trial_of(event.key) == n:
            return _attempt_of(event.key) > 0
    return False
