"""Files of tensors: what was written comes back, the library reads it too, and hostile bytes cost an error and nothing else."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tests.federation.rounds import write_tensors

from dibs import UpdateError
from dibs.federation import Tensor
from dibs.federation._exports import flatten
from dibs.federation._fedavg import unfit
from dibs.federation._files import chunks_of, open_tensors
from dibs.record._safetensors import parse_header

TYPES = [
    np.bool_,
    np.uint8,
    np.int8,
    np.uint16,
    np.int16,
    np.int32,
    np.uint64,
    np.int64,
    np.float16,
    np.float32,
    np.float64,
]
NAMES = (
    st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__").filter(lambda name: name.isprintable())
)
TENSORS = st.sampled_from(TYPES).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
)


@given(st.dictionaries(NAMES, TENSORS, min_size=1, max_size=5), st.dictionaries(NAMES, st.text(), max_size=2))
def test_what_is_written_comes_back(tmp_path_factory: Any, tensors: dict[str, Any], metadata: dict[str, str]) -> None:
    path = tmp_path_factory.mktemp("files") / "x.safetensors"
    flat, _ = flatten(tensors, "c")
    write_tensors(path, flat, metadata)
    found = open_tensors(path)
    assert list(found) == sorted(tensors)
    assert found.metadata == metadata
    for name, array in tensors.items():
        assert found[name].layout == flat[name].layout
        assert found[name].words.tobytes() == np.ascontiguousarray(array).tobytes()


def test_the_bytes_are_those_of_the_format() -> None:
    flat, _ = flatten({"b": np.array([1.5], "<f4"), "a": np.array([[2]], "<i8")}, "c")
    data = b"".join(chunks_of(flat, {"run": "r"}))
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0
    assert json.loads(data[8 : 8 + length]) == {
        "__metadata__": {"run": "r"},
        "a": {"dtype": "I64", "shape": [1, 1], "data_offsets": [0, 8]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
    }
    assert data[8 + length :] == struct.pack("<qf", 2, 1.5)


def test_types_that_numpy_has_not_lie_as_they_are(tmp_path: Path) -> None:
    words = np.array([0x3F80, 0x4000], "<u2")
    write_tensors(tmp_path / "x", {"w": Tensor("BF16", words)}, {})
    found = open_tensors(tmp_path / "x")["w"]
    assert (found.dtype, found.words.tolist()) == ("BF16", words.tolist())


def test_tensors_outlive_their_file_and_cannot_be_written(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x", flatten({"w": np.arange(9.0)}, "c")[0], {})
    found = open_tensors(tmp_path / "x")["w"].words
    (tmp_path / "x").unlink()
    assert found.tolist() == list(range(9))
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def test_a_large_file_is_not_read_into_memory(tmp_path: Path) -> None:
    large = np.zeros((64, 1 << 18), np.float32)  # 64 MiB
    tracemalloc.start()
    write_tensors(tmp_path / "x", flatten({"w": large}, "c")[0], {})
    found = open_tensors(tmp_path / "x")
    assert unfit(found) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def file_of(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def one(**changes: Any) -> dict[str, Any]:
    return {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}}


HOSTILE: list[tuple[str, bytes]] = [
    ("no header", b""),
    ("no header", b"\x01"),
    ("no header", file_of(one(), b"\0" * 8, length=2**63)),
    ("no header", file_of(one(), b"", length=1000)),
    ("does not parse", file_of(b"{")),
    ("does not parse", file_of(b"\xff\xfe{}")),
    ("does not parse", file_of(b"[" * 100_000)),
    ("does not parse", file_of(b'{"w":' + b"9" * 10_000 + b"}")),
    ("no object", file_of([])),
    ("says something twice", file_of(b'{"w":1,"w":2}')),
    ("no tensor", file_of({})),
    ("metadata", file_of({"__metadata__": {"a": 1}, **one()}, b"\0" * 8)),
    ("metadata", file_of({"__metadata__": [], **one()}, b"\0" * 8)),
    ("nothing one can use", file_of({"w": 3})),
    ("nothing one can use", file_of({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0]}})),
    ("nothing one can use", file_of({"w": {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]}})),
    ("type nobody knows", file_of(one(dtype="F31"), b"\0" * 8)),
    ("type nobody knows", file_of(one(dtype=[]), b"\0" * 8)),
    ("shape or a place", file_of(one(shape=[-1, -2]), b"\0" * 8)),
    ("shape or a place", file_of(one(shape=[2.0]), b"\0" * 8)),
    ("shape or a place", file_of(one(shape=[True, 2]), b"\0" * 8)),
    ("shape or a place", file_of(one(shape=[1] * 33 + [2]), b"\0" * 8)),
    ("shape or a place", file_of(one(data_offsets=[-8, 0]), b"\0" * 8)),
    ("not as many bytes", file_of(one(shape=[3]), b"\0" * 8)),
    ("not as many bytes", file_of(one(shape=[2**61, 2]), b"\0" * 8)),
    ("not as many bytes", file_of(one(data_offsets=[8, 0]), b"\0" * 8)),
    ("begins at byte 8", file_of(one(data_offsets=[8, 16]), b"\0" * 16)),
    ("begins at byte 4", file_of({**one(), "v": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}, b"\0" * 12)),
    ("take 8 bytes, and there are 9", file_of(one(), b"\0" * 9)),
    ("take 8 bytes, and there are 7", file_of(one(), b"\0" * 7)),
]


@pytest.mark.parametrize(("said", "data"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_bytes_cost_an_error(tmp_path: Path, said: str, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(UpdateError, match=said):
        open_tensors(tmp_path / "x")


@given(st.binary(max_size=60), st.integers(0, 100))
def test_no_bytes_do_anything_else(text: bytes, room: int) -> None:
    try:
        parse_header(text, room)
    except ValueError:
        pass


def test_a_boolean_that_is_none_is_seen(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(file_of(one(dtype="BOOL"), b"").replace(b"[0, 8]", b"[0, 2]") + b"\x01\x02")
    assert "neither true nor false" in str(unfit(open_tensors(tmp_path / "x")))
