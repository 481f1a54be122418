"""Bytes to records and back: whatever the bytes are, the answer is a record or a RecordError."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs._canon import dumps
from dibs.errors import NewerFormat, RecordError, StoreError
from dibs.record import (
    CLOSED,
    FORMAT,
    STATES,
    TrialRecord,
    Who,
    decode,
    decode_trial,
    encode,
    nonce_of,
    records_of,
    verbatim,
)
from dibs.space._values import typed

NONCE = "0123456789abcdef" * 2
RUNNING: dict[str, Any] = {
    "v": 1, "kind": "trial", "study": "spam", "n": 7, "attempt": 0, "state": "running", "nonce": NONCE,
    "point": {"lr": 0.003, "layers": 2, "opt": "adam"},
}  # fmt: skip
DONE: dict[str, Any] = {
    **RUNNING, "state": "done", "of": 100, "goal": "min", "seed": 4242, "score": 0.051, "step": 29, "took_s": 12.5,
    "reason": None, "again": False, "blob": "ab" * 32, "files": {"ck.pt": "cd" * 32}, "wish": None, "saw": None,
    "contract": None, "started_at": "2026-11-29T12:00:00.123Z", "beat_s": 60,
    "who": {"me": "node3", "host": "node3", "boot": "b", "pid": 4711, "token": "1-2"},
}  # fmt: skip

HOSTILE = {
    "empty": b"",
    "blanks": b"  \n",
    "half": encode(DONE)[:100],
    "all but a byte": encode(DONE)[:-1],
    "a byte too many": encode(DONE) + b"}",
    "twice": encode(DONE) * 2,
    "binary": bytes(range(256)),
    "zeros": bytes(4096),
    "not utf-8": b'{"v":1,"nonce":"\xff\xfe"}',
    "utf-16": json.dumps(DONE).encode("utf-16"),
    "bare nan": encode(DONE).replace(b"0.051", b"NaN"),
    "beyond a float": encode(DONE).replace(b"0.051", b"1e999"),
    "a list": b"[1,2,3]",
    "a text": b'"trial"',
    "null": b"null",
    "no head": b"{}",
    "foreign": b'{"name":"package","version":"1.0.0"}',
    "v is a text": b'{"v":"1"}',
    "v is true": b'{"v":true}',
    "v is 1.0": encode(DONE).replace(b'"v":1', b'"v":1.5'),
    "deep lists": b"[" * 200_000 + b"]" * 200_000,
    "deep objects": b'{"v":1,"a":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
    "ten megabytes of text": b'{"text":"' + b"x" * 10_000_000 + b'"}',
    "ten megabytes of digits": b'{"v":' + b"9" * 10_000_000,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_does_not_parse_is_a_record_error_that_names_the_key(data: bytes) -> None:
    for read in (decode_trial, decode):
        with pytest.raises(RecordError) as told:
            read(data, "study/spam/trial/000000/00000007-0.json")
        assert told.value.key == "study/spam/trial/000000/00000007-0.json"
        assert "00000007-0.json" in str(told.value)
        assert len(str(told.value)) < 400
        assert isinstance(told.value, StoreError)
    assert nonce_of(data) in (None, NONCE)


WRONG_TYPES = {
    "kind": ["study", "", 1, None, ["trial"]],
    "study": [7, None, {}],
    "n": ["7", 7.5, None, True, []],
    "attempt": ["0", 0.5, None],
    "state": ["finished", "", None, 1, ["done"], {"done": 1}],
    "nonce": [None, 5, [], {}],
    "point": [None, [], "lr", 1, [["lr", 1]], {"lr": [1]}, {"lr": {"list": []}}, {"lr": {"tuple": 1}}, {"lr": {}}],
    "goal": ["MIN", "", 1, ["min"], [], ["min", "MAX"], ["min"] * 9, {}],
    "of": ["100", None, 1.5],
    "seed": ["1", None],
    "score": ["0.5", [], {}, True],
    "scores": [0.5, "ab", ["a", "b"], [True, False], [None, 1], {}],
    "constraints": [0.5, [1], {"a": "b"}, {"a": None}, {"a": True}],
    "step": ["1", 1.5],
    "reason": [1, []],
    "again": [None, 1, "no"],
    "wish": [1, []],
    "files": [None, [], {"ck.pt": 1}],
    "beat_s": ["60", None],
    "who": [None, "node3", {"pid": "4711"}, {"me": 1}],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, bad in WRONG_TYPES.items() for value in bad])
def test_a_field_of_the_wrong_type_is_a_record_error(field: str, value: Any) -> None:
    with pytest.raises(RecordError, match="does not parse"):
        decode_trial(dumps({**DONE, field: value}), "k")


@pytest.mark.parametrize("field", ["v", "kind", "study", "n", "attempt", "state", "nonce", "point"])
def test_the_head_has_no_defaults(field: str) -> None:
    with pytest.raises(RecordError):
        decode_trial(dumps({name: value for name, value in RUNNING.items() if name != field}), "k")


def test_everything_but_the_head_has_a_default() -> None:
    record = decode_trial(encode(RUNNING), "k")
    assert (record.of, record.seed, record.score, record.files, record.beat_s, record.who) == (
        0, 0, None, {}, 60.0, Who(),
    )  # fmt: skip
    assert not record.closed


def test_a_whole_record_reads_field_by_field() -> None:
    record = decode_trial(encode(DONE), "k")
    for name, value in DONE.items():
        if name not in ("saw", "who"):
            assert getattr(record, name) == value, name
    assert record.who == Who("node3", "node3", "b", 4711, "1-2")
    assert record.closed


def test_records_are_frozen() -> None:
    record = decode_trial(encode(DONE), "k")
    with pytest.raises(AttributeError):
        record.state = "failed"  # type: ignore[misc]


def test_several_goals_and_constraints_read_as_they_were_written() -> None:
    body = {**DONE, "goal": ["min", "max"], "score": None, "scores": [0.1, 20], "constraints": {"gb": -0.5}}
    record = decode_trial(encode(body), "k")
    assert (record.goal, record.score, record.scores, record.constraints) == (
        ("min", "max"),
        None,
        (0.1, 20.0),
        {"gb": -0.5},
    )


def test_unknown_fields_and_a_later_minor_writer_read() -> None:
    record = decode_trial(dumps({**DONE, "colour": "blue", "who": {**DONE["who"], "gpu": 1}}), "k")
    assert record.score == 0.051


@pytest.mark.parametrize(
    "extra", [{}, {"state": "resting"}, {"point": [1]}, {"kind": "experiment"}, {"nonce": {"a": 1}}, {"study": None}]
)
def test_a_later_format_says_upgrade_whatever_its_fields_are(extra: dict[str, Any]) -> None:
    for read in (decode_trial, decode):
        with pytest.raises(NewerFormat, match=r"format 2, this one reads 1.*upgrade"):
            read(dumps({**DONE, "v": FORMAT + 1, **extra}), "k")


@pytest.mark.parametrize("version", [0, -1])
def test_a_version_that_never_was_is_a_record_error(version: int) -> None:
    for read in (decode_trial, decode):
        with pytest.raises(RecordError, match="never existed") as told:
            read(dumps({**DONE, "v": version}), "k")
        assert not isinstance(told.value, NewerFormat)


def test_the_nonce_of_any_record() -> None:
    assert nonce_of(encode(DONE)) == NONCE
    assert nonce_of(dumps({"v": 99, "nonce": NONCE, "what": "ever"})) == NONCE  # of a later version too
    for nobody in (b"", b"{", b'{"v":1}', b'{"v":1,"nonce":""}', b'{"v":1,"nonce":7}', b'{"nonce":"a"}', b"[]"):
        assert nonce_of(nobody) is None


def test_equal_records_are_equal_bytes() -> None:
    assert encode(DONE) == encode(dict(reversed(DONE.items())))
    assert encode(decode(encode(DONE), "k")) == encode(DONE)


def test_a_record_in_a_roll_is_copied_and_not_parsed() -> None:
    odd = b'{ "v": 1, "later": [1e400, "\\u00e9"], "score": 0.10 }'  # as another program may write it
    for me in ("somebody", "\udcff"):  # the second cannot be encoded as it is
        roll = encode({"v": 1, "kind": "roll", "who": {"me": me}, "records": {"0-0": verbatim(encode(DONE))}})
        assert decode(roll, "k")["records"]["0-0"] == DONE
    roll = encode({"v": 1, "records": {"0-0": verbatim(odd)}})
    assert odd in roll
    assert encode({"records": records_of(roll, "k")}) == b'{"records":{"0-0":' + odd + b"}}"
    with pytest.raises(RecordError):
        records_of(roll[:-1], "k")


def test_the_states() -> None:
    assert STATES == ("running", "done", "pruned", "failed", "interrupted")
    assert set(STATES) - CLOSED == {"running"}
    literal = {field.name: field.type for field in msgspec.structs.fields(TrialRecord)}["state"]
    assert literal.__args__ == STATES


@pytest.mark.parametrize(
    "value", [None, True, False, 1, 1.0, "1", 0, -0.0, 2**70, 1e-320, "é\U0001f600\0", (1, (2.0, ()))]
)
def test_a_point_comes_back_as_values(value: Any) -> None:
    from dibs._canon import to_json

    record = decode_trial(encode({**DONE, "point": {"x": to_json(value), "y": 1.0}}), "k")
    assert typed(record.point["x"]) == typed(value)
    assert typed(record.point["y"]) == typed(1.0)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_survives_to_the_last_bit(value: float) -> None:
    record = decode_trial(encode({**DONE, "score": value, "point": {"x": value}}), "k")
    assert record.score is not None
    assert (record.score.hex(), record.point["x"].hex()) == (value.hex(), value.hex())


@given(st.binary(max_size=80), st.integers(0, 400), st.integers(0, 40))
def test_damage_anywhere_never_raises_anything_else(junk: bytes, at: int, cut: int) -> None:
    whole = encode(DONE)
    damaged = whole[:at] + junk + whole[at + cut :]
    for read in (decode_trial, decode, lambda data, key: nonce_of(data)):
        try:
            read(damaged, "k")  # type: ignore[operator]
        except RecordError:
            continue
