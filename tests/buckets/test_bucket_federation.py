"""Federated rounds in a bucket: the five clients of `tests/federation`, and what an averager's beats are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.federation.clients import check_five_clients
from tests.federation.rounds import model, same, together

from dibs import Store
from dibs.federation import fedavg

pytestmark = pytest.mark.usefixtures("credentials")


def test_five_clients_make_what_one_process_makes(server: Server, place: str, tmp_path: Path) -> None:
    store = Store.on_bucket(server.endpoint, server.bucket, place)
    check_five_clients(tmp_path, store.url)


def test_rounds_in_threads(server: Server, place: str) -> None:
    store = Store.on_bucket(server.endpoint, server.bucket, place)
    exports = {name: model(name) for name in "abc"}
    for round in range(3):
        got = together(store, exports, round=round, keep=1)
        assert [same(each, fedavg(exports)) for each in got.values()] == [True] * 3, got
    assert len(list(store.backend.list("blobs/"))) == 5  # three updates, the average and the layout: the last round's
