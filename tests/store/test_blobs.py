"""Blobs: streamed and hashed on the way in, verified on the way out."""

from __future__ import annotations

import hashlib
import io
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.parts import at_once, store_over

from dibs.backend import CountingBackend, FaultyBackend, FolderBackend, MemoryBackend
from dibs.errors import NotFound, RecordError, StoreError, UsageError
from dibs.store import Store

MIB = 1 << 20


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def files(store: Store) -> list[str]:
    return [entry.key for entry in store.backend.list("blobs/")]


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 3000, b"\0" * (2 * MIB + 1)], ids=len)
def test_bytes_come_back_whatever_they_were_given_as(store: Store, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "given"
    path.write_bytes(data)
    chunks = [data[i : i + 1000] for i in range(0, len(data), 1000)]
    with path.open("rb") as file:
        digests = {
            store.put(data), store.put(bytearray(data)), store.put(memoryview(data)), store.put(path), store.put(file),
            store.put(io.BytesIO(data)), store.put(chunks), store.put(iter(chunks)),
        }  # fmt: skip
    assert digests == {sha(data)}
    assert store.get(sha(data)) == data
    assert store.has(sha(data))
    assert files(store) == [f"blobs/{sha(data)[:2]}/{sha(data)}"]


def test_a_large_blob_is_streamed_both_ways(tmp_path: Path) -> None:
    counting = CountingBackend(FolderBackend(tmp_path / "store"))
    counting.prepare()
    store = store_over(counting)

    def chunks() -> Iterator[bytes]:
        for k in range(24):
            on_disk = sum(path.stat().st_size for path in (tmp_path / "store" / "tmp").iterdir())
            assert on_disk == k * MIB, "what was given is written before more is asked for"
            yield bytes([k]) * MIB

    digest = store.put(chunks())
    assert counting.counts["read"] == 0
    path = store.fetch(digest, tmp_path / "out")
    assert path == tmp_path / "out"
    assert path.stat().st_size == 24 * MIB
    assert sha(path.read_bytes()) == digest
    assert (counting.counts["read"], counting.counts["stream"]) == (0, 1)


def test_the_same_bytes_are_written_once(tmp_path: Path) -> None:
    counting = CountingBackend(MemoryBackend())
    store = store_over(counting)
    assert store.put(b"x" * 5000) == store.put(b"x" * 5000)
    assert counting.counts["stage"] == 1


@pytest.mark.parametrize("given", ["a text", "", None, 7, 1.5, ["a"], [1], io.StringIO], ids=repr)
def test_what_is_no_bytes_is_refused_and_leaves_nothing(store: Store, given: Any) -> None:
    with pytest.raises(UsageError, match="bytes"):
        store.put(given("text") if given is io.StringIO else given)
    assert files(store) == []
    assert list(store.backend.list("tmp/")) == []


def test_an_error_of_the_source_passes_and_leaves_nothing(store: Store, tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x" * MIB
        raise RuntimeError("the network is gone")

    with pytest.raises(RuntimeError, match="the network is gone"):
        store.put(broken())
    with pytest.raises(FileNotFoundError):
        store.put(tmp_path / "missing")
    assert files(store) == []
    assert list(store.backend.list("tmp/")) == []


def test_a_missing_blob(store: Store, tmp_path: Path) -> None:
    assert not store.has("ab" * 32)
    with pytest.raises(NotFound, match="abab"):
        store.get("ab" * 32)
    with pytest.raises(NotFound):
        store.fetch("ab" * 32, tmp_path / "out")
    assert list(tmp_path.glob("*out*")) == []
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    "digest", ["", "spam", "AB" * 32, "ab" * 31, "ab" * 32 + "\n", "../" * 21 + "a", None, b"ab" * 32]
)
def test_what_is_no_digest_is_refused(store: Store, tmp_path: Path, digest: Any) -> None:
    for use in (store.get, store.has, lambda digest: store.fetch(digest, tmp_path / "out")):
        with pytest.raises(UsageError, match="64 characters"):
            use(digest)


@pytest.mark.parametrize("damage", [b"", b"short", b"y" + b"x" * 99, b"x" * 101])
def test_a_damaged_blob_is_noticed_and_never_handed_out(store: Store, tmp_path: Path, damage: bytes) -> None:
    digest = store.put(b"x" * 100)
    key = f"blobs/{digest[:2]}/{digest}"
    store.backend.delete(key)
    store.backend.create(key, store.backend.stage(damage))
    with pytest.raises(RecordError, match=r"damaged.*store it again") as told:
        store.get(digest)
    assert told.value.key == key
    (tmp_path / "out").write_bytes(b"what was there before")
    with pytest.raises(RecordError):
        store.fetch(digest, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"what was there before"
    assert list(tmp_path.glob(".*")) == []
    store.backend.delete(key)  # the cure the error names
    assert store.put(b"x" * 100) == digest
    assert store.get(digest) == b"x" * 100


def test_threads_storing_the_same_bytes(store: Store) -> None:
    data = random.Random(0).randbytes(300_000)
    chunks = [data[i : i + 5000] for i in range(0, len(data), 5000)]
    digests = at_once([lambda: store.put(list(chunks)) for _ in range(6)])
    assert set(digests) == {sha(data)}
    assert store.get(sha(data)) == data


@pytest.mark.parametrize("bucket", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_a_digest_told_is_a_blob_there_whatever_the_answers_were(bucket: bool, seed: int) -> None:
    inner = MemoryBackend(conditional_replace=bucket)
    faulty = FaultyBackend(inner, random.Random(seed), lost_answer=0.4, lost_request=0.3)
    store, sure = store_over(faulty), store_over(inner)
    stored = 0
    for k in range(20):
        data = bytes([k]) * 100
        try:
            digest = store.put([data])
        except StoreError:
            continue
        stored += 1
        assert sure.get(digest) == data
    assert stored > 10
    assert faulty.faults.total() > 0


class Breaking(MemoryBackend):
    """Its streams break once, after ``whole`` bytes in all."""

    def __init__(self, whole: int) -> None:
        super().__init__()
        self.whole, self.starts = whole, []  # type: ignore[var-annotated]

    def stream(self, key: str, start: int = 0):  # type: ignore[no-untyped-def]
        self.starts.append(start)
        chunks = super().stream(key, start)
        return chunks if chunks is None or start >= self.whole else self._some(b"".join(chunks), self.whole - start)

    def _some(self, data: bytes, size: int):  # type: ignore[no-untyped-def]
        yield data[:size]
        raise StoreError("the connection broke")


def test_a_fetch_that_broke_goes_on_where_it_was(tmp_path: Path) -> None:
    backend = Breaking(whole=700_000)
    store, data = store_over(backend), os.urandom(1_000_000)
    digest = store.put(data)
    with pytest.raises(StoreError, match="broke"):
        store.fetch(digest, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert store.fetch(digest, tmp_path / "out").read_bytes() == data
    assert backend.starts == [0, 700_000]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_part_that_is_something_else_is_fetched_anew(tmp_path: Path) -> None:
    store, data = store_over(MemoryBackend()), os.urandom(100_000)
    digest = store.put(data)
    (tmp_path / f".out.{digest[:16]}.part").write_bytes(b"x" * 50_000)
    assert store.fetch(digest, tmp_path / "out").read_bytes() == data


def test_two_fetches_of_one_file_do_not_share_a_part(tmp_path: Path) -> None:
    store, data = store_over(MemoryBackend()), os.urandom(3_000_000)
    digest = store.put(data)
    paths = at_once(4 * [lambda: store.fetch(digest, tmp_path / "out")])
    assert {path.read_bytes() for path in paths} == {data}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
