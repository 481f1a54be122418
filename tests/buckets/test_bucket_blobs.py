"""A blob is in the bucket, byte for byte, once its digest is told; whatever happened on the way."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import Any

import pytest
from tests.buckets.servers import Server

from dibs.backend import BucketBackend, Draft
from dibs.errors import StoreError
from dibs.store import Here, Store
from dibs.testing._fault_proxy import FaultProxy

MIB = 1 << 20


@pytest.mark.parametrize("size", [1, 200_000, 20 * MIB], ids=["a byte", "one request", "parts"])
def test_bytes_that_changed_on_their_way_are_sent_again(server: Server, place: str, size: int) -> None:
    with FaultProxy(server.endpoint, 3, {}) as proxy:
        options = replace(server, endpoint=proxy.endpoint).options()
        backend = BucketBackend(server.url(place), options)
        data = os.urandom(size)
        key = f"blobs/00/{hashlib.sha256(data).hexdigest()}"
        proxy.chances["flip"] = 1.0
        with pytest.raises(StoreError, match="has other bytes than were sent") as told:
            backend.put(key, backend.stage(data, durable=True))
        assert told.value.passing, "so that it is asked again"
        proxy.chances["flip"] = 0.0
        backend.put(key, backend.stage(iter([data]), durable=True))
        there = b"".join(backend.stream(key) or ())
        assert there == data


@pytest.mark.parametrize("size", [100, 20 * MIB], ids=["one request", "parts"])
def test_an_etag_that_says_nothing_costs_a_second_look_and_one_that_does_costs_none(
    server: Server, place: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Azure's, Google's, or where the server encrypts."""
    import obstore

    looked: list[str] = []
    stream, put = BucketBackend.stream, obstore.put
    monkeypatch.setattr(
        BucketBackend, "stream", lambda self, key, start=0: looked.append(key) or stream(self, key, start)
    )
    backend = BucketBackend(server.url(place), server.options())
    store = Store.over(backend, Here())
    digest = store.put(iter([os.urandom(size)]))
    assert looked == []
    monkeypatch.setattr(obstore, "put", lambda *words, **more: {**put(*words, **more), "e_tag": '"0x8DC"'})
    again = store.put(iter([os.urandom(size)]))
    assert [key.rpartition("/")[2] for key in looked] == [again] != [digest]


def test_what_need_not_last_is_not_looked_at(server: Server, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A running curve is rewritten soon."""

    def never(*words: Any) -> bool:
        raise AssertionError("looked")

    monkeypatch.setattr(BucketBackend, "_arrived", never)
    backend = BucketBackend(server.url(place), server.options())
    draft: Draft = backend.stage(b"{}")
    backend.put("study/s/live/000000/00000000-0.json", draft)
