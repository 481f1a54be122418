"""The invariants as functions of plain data: what somebody with events of their own may rely on."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from dibs.record import TrialRecord
from dibs.testing.invariants import ALL, Event, Reading, Stands, broken

KEY = "study/s/trial/000000/00000000-0.json"
NEXT = "study/s/again/000000/00000000-1.json"


def body(nonce: str, state: str = "running", **more: Any) -> bytes:
    fields = {"v": 1, "kind": "trial", "study": "s", "n": 0, "attempt": 0, "state": state, "nonce": nonce, "point": {}}
    return json.dumps({**fields, **more}, separators=(",", ":")).encode()


def record(attempt: int = 0, state: str = "done", n: int = 0, **more: Any) -> TrialRecord:
    fields: dict[str, Any] = {"point": {"x": 1}, **more}
    return TrialRecord(v=1, kind="trial", study="s", n=n, attempt=attempt, state=state, nonce="a", **fields)  # type: ignore[arg-type]


def said(what: str, who: str = "w", **fields: Any) -> Event:
    return Event(0.0, who, what, **fields)


DONE = Stands("done", True, 0, 1.0)
GOOD = [
    said("asked", number=1),
    said("wrote", key=KEY, data=body("a"), note="create"),
    said("claimed", key=KEY, nonce="a"),
    said("owns", key=KEY, nonce="a", point={"x": 1}),
    said("wrote", key=KEY, data=body("a", "done", score=1.0), before=body("a"), note="replace"),
    said("closed", key=KEY, nonce="a", state="done"),
    said("looked", "r", reading=Reading(trials={0: DONE}), since=6),
    said("idle", number=1, note="settled"),
]
FINAL = Reading({(0, 0): record(score=1.0)}, {0: DONE}, study="s")


def test_a_good_run_breaks_nothing() -> None:
    assert broken(GOOD, FINAL) == []


@pytest.mark.parametrize(
    ("name", "events", "final"),
    [
        ("once", [*GOOD, said("claimed", "v", key=KEY, nonce="b")], FINAL),
        ("once", [*GOOD, said("refused", "v", key=KEY, nonce="a")], FINAL),
        ("once", [*GOOD[:4], said("wrote", "v", key=KEY, data=body("b"), before=body("a"))], Reading(study="s")),
        ("once", [*GOOD[:4], said("wrote", "v", key=KEY, data=body("a", x=1), before=body("a"))], Reading(study="s")),
        ("once", [], Reading({(n, 0): record(n=n, wish="d") for n in (0, 1)}, study="s")),
        ("whole", [said("asked", number=1), said("wrote", key=KEY, data=body("a")[:30])], Reading(study="s")),
        ("whole", [], Reading({(0, 0): record(blob="d" * 64)}, study="s")),
        ("whole", [], Reading({(0, 0): record(files={"f": "d" * 64})}, blobs={"d" * 64: b"x"}, study="s")),
        ("kept", [*GOOD, said("wrote", key=KEY, data=body("a"), before=body("a", "done"))], FINAL),
        ("kept", [*GOOD[:4], *GOOD[5:]], FINAL),
        ("kept", GOOD, Reading({(0, 0): record()}, {0: Stands("failed", True, 1, None)}, study="s")),
        ("kept", [*GOOD, said("looked", "r", reading=Reading(), since=8)], FINAL),
        ("kept", [*GOOD, said("held", "r", reading=Reading())], FINAL),
        ("kept", [*GOOD[:4], said("saved", key=KEY, note="f", digest="d" * 64)], Reading(study="s")),
        ("exact", [said("wrote", key=KEY, data=body("a"))], Reading(study="s")),
        ("exact", GOOD, Reading({(0, 0): record()}, {0: Stands("running", False, 0, None)}, study="s")),
        ("exact", [said("asked", number=1), said("idle", number=1, note="settled")], Reading(study="s")),
        ("exact", [said("asked", number=1), said("stopped"), said("steps"), GOOD[1]], Reading(study="s")),
        ("alone", [said("hung", note="it waits")], Reading(study="s")),
        ("alone", [said("crashed", note="KeyError")], Reading(study="s")),
        (
            "readers",
            [said("asked", number=1), said("wrote", key=KEY, data=body("a"), role="reader")],
            Reading(study="s"),
        ),
        (
            "same",
            [said("asked", number=1), said("wrote", key=KEY, data=body("a")), said("wrote", key=NEXT, data=body("b"))],
            Reading({(0, 0): record(), (0, 1): record(1, point={"x": 2})}, study="s"),
        ),
        ("typed", [said("owns", key=KEY, point={"x": True})], Reading({(0, 0): record()}, study="s")),
        ("typed", [said("owns", key=KEY, point={"x": 1.0})], Reading({(0, 0): record()}, study="s")),
        ("told", [], Reading({(0, 0): None}, study="s")),
        ("told", [said("wished", digest="d")], Reading(study="s")),
    ],
)
def test_each_can_be_broken(name: str, events: list[Event], final: Reading) -> None:
    assert [sentence for sentence in broken(events, final) if sentence.startswith(f"{name}: ")] != []


def test_what_is_done_by_hand_is_outside() -> None:
    by_hand = [said("wrote", "person", key=KEY, by_hand=True), said("wrote", "v", key=KEY, data=body("b"))]
    assert broken([*GOOD, *by_hand, said("claimed", "v", key=KEY, nonce="b")], Reading(study="s")) == []


def test_blobs_are_looked_into() -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    assert list(ALL["whole"]([], Reading({(0, 0): record(blob=digest)}, blobs={digest: b"x"}))) == []
