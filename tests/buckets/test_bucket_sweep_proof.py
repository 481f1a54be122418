"""A sweep whose durable copies are blobs of a bucket: proven, pulled, verified and released as in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.sweep.cells import NAME, begin, finish, planned, result

from dibs import Store
from dibs.store import blob_key
from dibs.sweep import newest_plan, pull, reconcile, release, retry, standing, verify

pytestmark = pytest.mark.usefixtures("credentials")


def test_from_the_results_to_the_release(server: Server, place: str, tmp_path: Path) -> None:
    store = Store.on_bucket(server.endpoint, server.bucket, place)
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    mine = begin(store, plan, "b")
    mine.files["log.txt"] = store.put(b"epoch 1\n")
    finish(store, plan, "b", attempt=mine)
    assert [each.state for each in standing(store, plan)] == ["done", "done"]
    assert (reconcile(store, plan).clean, reconcile(store, plan, quick=True).clean) == (True, True)
    told = pull(store, plan, tmp_path / "d", threads=3)
    assert (told.exit_code, told.copied, pull(store, plan, tmp_path / "d").copied) == (0, 7, 0)
    assert (tmp_path / "d" / "b" / "best.npz").read_bytes() == result(1)["best.npz"]
    assert (tmp_path / "d" / "b" / "dibs-log.txt").read_text() == "epoch 1\n"
    assert verify(store, plan, tmp_path / "d").passed
    assert release(store, plan, approve="Jo").exit_code == 0
    kept = {each.cell.name: each.counts for each in standing(store, plan)}["a"]
    assert kept is not None
    store.backend.delete(blob_key(kept.files["final/best.npz"]))
    for quick in (False, True):
        found = reconcile(store, plan, quick=quick)
        assert [(each.kind, each.cell, each.file) for each in found.findings] == [("missing", "a", "best.npz")]
    assert release(store, plan, approve="Jo").exit_code == 1
    assert pull(store, plan, tmp_path / "other").troubles[0].what == "it is not there"
    assert retry(store, plan).freed == ("a",)
    assert newest_plan(Store(store.url), NAME).version == 1
