"""Whatever bytes and texts come along, the answer is a value or one of our errors: never another exception."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dibs import DibsError, Float, Int, RecordError, Space, SpaceError, UsageError
from dibs.record import decode, decode_roll, decode_trial, decode_who, nonce_of
from dibs.store import StudyKeys, escape, unescape
from dibs.study._fold import Seen, fold
from dibs.upkeep._layout import place_of

TRIAL = {
    "v": 1, "kind": "trial", "study": "s", "n": 3, "attempt": 0, "of": 9, "state": "done", "goal": "min", "seed": 5,
    "point": {"x": 0.5, "t": {"tuple": [1, 2.0]}}, "wish": None, "saw": None, "contract": None, "files": {"a": "b"},
    "started_at": "2026-11-29T12:00:00.123Z", "beat_s": 60, "nonce": "0" * 32, "score": 1.5, "step": 3, "took_s": 1.0,
    "reason": None, "again": False, "blob": None, "scores": [1.5, -2], "constraints": {"gb": -0.5},
    "who": {"me": "m", "host": "h", "boot": "b", "pid": 1, "token": "1-2"},
}  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
fuzz = settings(max_examples=300)


def mutated(data: bytes, at: int, with_: bytes, cut: int) -> bytes:
    at %= len(data) + 1
    return data[:at] + with_ + data[at + cut :]


@fuzz
@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_an_error(data: bytes) -> None:
    for read in (lambda: decode(data, "k"), lambda: decode_trial(data, "k"), lambda: decode_roll(data, "k", "s")):
        try:
            read()
        except RecordError:
            continue
    nonce_of(data)
    decode_who(data)


@fuzz
@given(st.integers(0, 600), st.binary(max_size=6), st.integers(0, 40))
def test_a_record_cut_and_patched_anywhere(at: int, with_: bytes, cut: int) -> None:
    data = mutated(json.dumps(TRIAL).encode(), at, with_, cut)
    try:
        record = decode_trial(data, "k")
    except RecordError:
        return
    fold([Seen(record.n, record.attempt, record, 0.0)])
    assert 0 <= record.n < 2**63
    roll = b'{"v":1,"kind":"roll","study":"s","records":{"3-0":' + data + b"}}"
    try:
        decode_roll(roll, "k", "s")
    except RecordError:
        return


@fuzz
@given(st.sampled_from(sorted(TRIAL)), json_values)
def test_a_record_with_any_value_in_any_field(field: str, value: Any) -> None:
    try:
        record = decode_trial(json.dumps({**TRIAL, field: value}).encode("utf-8", "replace"), "k")
    except RecordError:
        return
    fold([Seen(record.n, record.attempt, record, 0.0)], {0})


@fuzz
@given(st.text(max_size=150))
def test_any_name_is_one_legal_segment_or_a_usage_error(name: str) -> None:
    try:
        segment = escape(name)
    except UsageError:
        return
    assert 0 < len(segment) <= 100
    assert set(segment) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-%")
    assert not segment.startswith(".")
    assert segment not in ("", ".", "..")
    if "%-" not in segment:
        assert unescape(segment) == name


@fuzz
@given(st.text(alphabet="abcxyz0189._-%/\0 ", max_size=80))
def test_any_key_has_a_place_and_any_segment_a_meaning(key: str) -> None:
    place_of(key)
    StudyKeys.parse(key)
    unescape(key)


@fuzz
@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4) | json_values)
def test_any_json_is_a_space_or_a_space_error(obj: Any) -> None:
    try:
        space = Space.from_json(obj)
    except SpaceError:
        return
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space


KINDS = st.sampled_from(["float", "int", "choice", "constant", "log", "step", "when", "ordered", "prior", "what"])


@fuzz
@given(st.dictionaries(st.sampled_from("abc"), st.dictionaries(KINDS, json_values, max_size=4), max_size=3))
def test_near_misses_of_a_space(obj: Any) -> None:
    try:
        space = Space.from_json(obj)
    except SpaceError:
        return
    point = space.point(dict.fromkeys(space.axes, 0.5))
    assert space.check(point) == point


@fuzz
@given(st.text(alphabet="ab=[]{}\"'.,0123456789-\n floatintchoicewhen", max_size=60))
def test_any_toml_is_a_space_or_a_space_error(text: str) -> None:
    try:
        Space.from_toml(text)
    except SpaceError:
        return
    tomllib.loads(text)


SPACE = Space(x=Float(0, 1), n=Int(1, 9))


@fuzz
@given(st.text(alphabet='xn=01.9 "{}:,-e\\', max_size=40) | st.text(max_size=30))
def test_any_point_text_is_a_point_or_an_error(text: str) -> None:
    try:
        point = SPACE.read(text)
    except DibsError:
        return
    assert SPACE.check(point) == point
