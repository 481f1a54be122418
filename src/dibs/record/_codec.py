"""Bytes to records and back. Whatever the bytes are, the answer is a record or a RecordError.

Writing sorts every key, so equal records are equal bytes.
A hostile record (deep nesting, wrong types, binary) costs an error, never the process.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dibs._canon import dumps, from_json
from dibs.errors import NewerFormat, RecordError

from ._structs import Closed, Roll, TrialRecord, Who

__all__ = [
    "FORMAT", "decode", "decode_roll", "decode_trial", "decode_who", "encode", "nonce_of", "records_of", "verbatim",
]  # fmt: skip

FORMAT = 1
_any = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder(order="sorted")
_trial = msgspec.json.Decoder(TrialRecord)
_roll = msgspec.json.Decoder(Roll)
_who = msgspec.json.Decoder(Who)
_WRONG = (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError, TypeError, ValueError)


class _Parts(msgspec.Struct):
    records: dict[str, msgspec.Raw]


_parts = msgspec.json.Decoder(_Parts)


class _Head(msgspec.Struct):
    v: int
    nonce: str = ""


_head = msgspec.json.Decoder(_Head)


def encode(body: dict[str, Any]) -> bytes:
    """The bytes of a record: canonical JSON but for the notation of some exponents (0.00001 for 1e-05).

    Equal bodies are equal bytes. Digests are never taken of these bytes but of canonical text. Scores are finite
    and curves have words for what is not, before they come here: a bare NaN would become null.
    """
    try:
        return _encoder.encode(body)
    except UnicodeEncodeError:  # a lone surrogate, say in a traceback
        return dumps(_parsed(body))


def decode(data: bytes, key: str) -> dict[str, Any]:
    """Any record as a dict. Raises RecordError if it does not parse, NewerFormat if it is a later version's."""
    try:
        body = _any.decode(data)
    except _WRONG as wrong:
        raise _torn(data, key, wrong) from None
    if type(body) is not dict or type(body.get("v")) is not int:
        raise RecordError(f"{key} is not a record of dibs (no version field)", key=key)
    if body["v"] != FORMAT:
        raise _wrong_version(body["v"], key)
    return body


def decode_trial(data: bytes, key: str) -> TrialRecord:
    """A trial's record with its point as values. Raises RecordError or NewerFormat."""
    try:
        record = _trial.decode(data)
        if record.v == FORMAT:
            for value in record.point.values():
                if type(value) in (dict, list):  # a tuple; rare, so the others cost one look
                    return msgspec.structs.replace(
                        record, point={name: from_json(value) for name, value in record.point.items()}
                    )
            return record
    except _WRONG as wrong:
        decode(data, key)  # a later version may well have other fields: then this is the error to tell
        raise _torn(data, key, wrong) from None
    raise _wrong_version(record.v, key)


def decode_roll(data: bytes, key: str, study: str) -> list[Closed]:
    """The closed attempts in a roll. Raises RecordError (then the roll is skipped: it is only a cache) or NewerFormat."""
    try:
        roll = _roll.decode(data)
        records = list(roll.records.values())
        if b'"tuple"' in data:
            records = [
                msgspec.structs.replace(record, point={name: from_json(value) for name, value in record.point.items()})
                for record in records
            ]
    except _WRONG as wrong:
        decode(data, key)
        raise _torn(data, key, wrong) from None
    if roll.v != FORMAT:
        raise _wrong_version(roll.v, key)
    if roll.study != study:
        raise RecordError(f"{key} is a roll of {roll.study!r}, not of {study!r}", key=key)
    for record in records:
        if record.study != study or record.v != FORMAT:
            raise RecordError(f"{key} holds records of another study, or of another format", key=key)
    return records


def verbatim(data: bytes) -> Any:
    """A record's bytes as a value of another record's body, copied and not parsed; the bytes must have parsed before."""
    return msgspec.Raw(data)


def records_of(data: bytes, key: str) -> dict[str, Any]:
    """What a roll that has been decoded holds, each ``verbatim``."""
    try:
        return dict(_parts.decode(data).records)
    except _WRONG as wrong:
        raise _torn(data, key, wrong) from None


def decode_who(raw: bytes) -> Who:
    """The ``who`` of a record; an empty one if it does not parse."""
    try:
        return _who.decode(raw)
    except _WRONG:
        return Who()


def nonce_of(data: bytes) -> str | None:
    """The nonce the bytes carry, or None if they do not parse (then they are nobody's)."""
    try:
        return _head.decode(data).nonce or None
    except _WRONG:
        return None


def _parsed(body: Any) -> Any:
    if type(body) is dict:
        return {name: _parsed(value) for name, value in body.items()}
    return _any.decode(body) if type(body) is msgspec.Raw else body


def _wrong_version(version: int, key: str) -> RecordError:
    if version < FORMAT:
        return RecordError(f"{key} has format {version}, which never existed", key=key)
    return NewerFormat(
        f"{key} was written by a later version of dibs (format {version}, this one reads {FORMAT}): upgrade dibs",
        key=key,
    )


def _torn(data: bytes, key: str, wrong: Exception) -> RecordError:
    what = "is empty" if not data else f"does not parse ({str(wrong)[:120]})"
    verb = "dibs federation status" if key.startswith("round/") else "dibs status"
    return RecordError(f"{key} {what}; `{verb}` lists such records", key=key)
