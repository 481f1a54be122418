"""Names become segments: FORMAT.md's table, injectivity, case, length and Windows devices."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dibs.backend._names import legal_segment
from dibs.errors import UsageError
from dibs.store import StudyKeys, escape, unescape
from dibs.store._names import LIMIT_BYTES

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
NASTY = st.text(st.sampled_from("aA.%-_/ \\é\U0001f6000c2e:*\0\n"), min_size=1, max_size=40)
DEVICES = ["con", "nul", "aux", "prn", *(f"{port}{i}" for port in ("com", "lpt") for i in range(1, 10))]


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("spam", "spam"),
        ("Spam", "%53pam"),
        ("spam v2", "spam%20v2"),
        ("é", "%c3%a9"),
        ("x.", "x%2e"),
        ("..", "%2e%2e"),
        ("a/b", "a%2fb"),
        ("100%", "100%25"),
        ("nul", "%6eul"),
        (".", "%2e"),
        (".hidden", "%2ehidden"),
        ("a.b", "a.b"),
        ("a\\b", "a%5cb"),
        ("a\0b", "a%00b"),
        ("\U0001f600", "%f0%9f%98%80"),
        ("NUL", "%4e%55%4c"),
        ("con.txt", "%63on.txt"),
        ("console", "console"),
        ("com10", "com10"),
        ("%2e", "%252e"),
        ("a-b_c.9", "a-b_c.9"),
    ],
)
def test_the_table_of_names(name: str, segment: str) -> None:
    assert escape(name) == segment
    assert unescape(segment) == name


@pytest.mark.parametrize("name", ["", None, 7, b"spam", "\ud800", ["spam"]])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="name"):
        escape(name)  # type: ignore[arg-type]


@given(TEXT | NASTY)
@example("." * 40)
@example("é" * 60)
@example("a" * LIMIT_BYTES)
@example("a" * (LIMIT_BYTES + 1))
@example("x" * 79 + "é" * 20)
def test_every_name_is_a_legal_harmless_segment(name: str) -> None:
    segment = escape(name)
    assert legal_segment(segment)
    assert len(segment) <= LIMIT_BYTES
    assert segment == segment.lower(), "a mount that folds case must not join two names"
    assert not segment.startswith(".")
    assert not segment.endswith((".", " "))
    assert segment.split(".")[0] not in DEVICES
    assert escape(name) == segment
    whole = unescape(segment)
    assert whole == name or (whole is None and len(segment) > 80)


@given(NASTY, NASTY)
@example("a/b", "a%2fb")
@example("A", "%41")
@example("a" * 200, "a" * 201)
def test_two_names_never_meet(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (one == other)


@given(st.text(st.sampled_from("aé.\U0001f600"), min_size=60, max_size=90), st.integers(0, 59), TEXT)
def test_two_long_names_never_meet(name: str, at: int, other: str) -> None:
    changed = name[:at] + other + name[at:]
    assert escape(changed) != escape(name)


def test_a_long_name_keeps_a_readable_prefix_of_whole_units() -> None:
    for name in ("Spam filters of the year, " * 12, "é" * 300, "a" * 79 + "é" * 20, "x" * 300):
        segment = escape(name)
        prefix, mark, digest = segment.rpartition("%-")
        assert mark
        assert re.fullmatch(r"[0-9a-f]{16}", digest)
        assert 74 < len(prefix) <= 80
        assert re.fullmatch(r"([a-z0-9._-]|%[0-9a-f]{2})*", prefix), "a unit is never cut"
        raw = re.sub(rb"%(..)", lambda unit: bytes([int(unit[1], 16)]), prefix.encode())
        assert name.encode().startswith(raw)
        assert unescape(segment) is None


def test_a_short_name_that_looks_like_a_shortened_one_is_not_taken_for_it() -> None:
    long = "a" * 300
    assert escape(escape(long)) != escape(long)
    assert "%-" not in escape("a%-0123456789abcdef")


@pytest.mark.parametrize("device", DEVICES)
def test_windows_devices(device: str) -> None:
    for name in (device, f"{device}.json", f"{device}.a.b"):
        assert escape(name) == f"%{ord(device[0]):02x}{name[1:]}"
    assert escape(device + "x") == device + "x"


@pytest.mark.parametrize("segment", ["%", "%f", "%zz", "a%c3", "%-0123456789abcdef", "é"])
def test_a_foreign_segment_is_nobodys_name(segment: str) -> None:
    assert unescape(segment) is None


def test_keys_of_a_study() -> None:
    keys = StudyKeys("spam")
    assert keys.study == "study/spam/study.json"
    assert keys.attempt(7, 0) == "study/spam/trial/000000/00000007-0.json"
    assert keys.attempt(7, 1) == "study/spam/again/000000/00000007-1.json"
    assert keys.attempt(255, 0) == "study/spam/trial/000000/00000255-0.json"
    assert keys.attempt(256, 12) == "study/spam/again/000001/00000256-12.json"
    assert keys.attempt(123_456_789, 0) == "study/spam/trial/482253/123456789-0.json"
    assert keys.live(7, 0) == "study/spam/live/000000/00000007-0.json"
    assert keys.wish("ab") == "study/spam/note/wish/ab.json"
    assert keys.release(7, 0) == "study/spam/note/release/00000007-0.json"
    assert (keys.stop(0), keys.go(0)) == ("study/spam/note/stop/0.json", "study/spam/note/go/0.json")
    assert keys.given_score("ab") == "study/spam/given/ab.json"
    assert keys.work(7, 1) == "study/spam/work/00000007-1"


def test_a_study_of_any_name_has_legal_keys() -> None:
    assert StudyKeys("Spam/v2").study == "study/%53pam%2fv2/study.json"


@given(st.integers(0, 10**10), st.integers(0, 1000))
def test_a_trials_key_says_which_it_is(n: int, attempt: int) -> None:
    keys = StudyKeys("1-0.json")
    for key in (keys.attempt(n, attempt), keys.release(n, attempt), keys.live(n, attempt)):
        assert StudyKeys.parse(key) == (n, attempt)


@pytest.mark.parametrize(
    "key",
    [
        "study/spam/study.json",
        "study/spam/trial/000000/7-0.json",
        "study/spam/trial/000000/00000007.json",
        "study/spam/trial/000000/00000007-0.json.bak",
        "study/spam/trial/000000/00000007-0.tmp",
        "study/spam/trial/000000/0000000a-0.json",
        "study/spam/trial/000000/00000007--1.json",
        "study/spam/trial/000000/x00000007-0.json",
    ],
)
def test_other_files_are_no_trials(key: str) -> None:
    assert StudyKeys.parse(key) is None
