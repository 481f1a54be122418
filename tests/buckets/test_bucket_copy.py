"""A store goes from a folder to a bucket and back, the same names and bytes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.buckets.servers import Server

from dibs import Float, RefusedError, Space, Store, StoreError, Study
from dibs.backend import Draft, Outcome
from dibs.store import _opening_bucket, blob_key
from dibs.study import finished
from dibs.study._attempt import Attempt
from dibs.upkeep import Copier, adopt_copy, check, open_copy

pytestmark = pytest.mark.usefixtures("credentials")

SPACE = Space(x=Float(0, 1))


@pytest.fixture
def url(server: Server, place: str) -> str:
    return _opening_bucket.bucket_url(server.endpoint, server.bucket, place)


def objects(store: Store) -> dict[str, bytes]:
    own = ("dibs.json", "copy_of.json", "adopted.json")
    keys = [entry.key for entry in store.backend.list("") if entry.key not in own]
    return {key: there.data for key in keys if (there := store.backend.read(key)) is not None}


def test_folder_to_bucket_and_back(url: str, tmp_path: Path) -> None:
    source = Store(tmp_path / "a")
    study = Study(source, "s", SPACE, goal="min", seed=0)
    for trial in study.trials(20):
        with trial:
            trial.report(1.0)
            trial.report(trial.point["x"])
    source.claim("champion", source.put(b"weights" * 100), {"k": 1})
    held = study.claimer(21).step()
    assert isinstance(held, Attempt)
    bucket = open_copy(source, url)
    copier = Copier(source, bucket)
    assert copier.run().troubles == []
    assert (bucket.marker["claim"], source.marker["claim"]) == ("put", "link")
    held.close("done", score=0.5)
    assert copier.run().records == 1
    assert objects(bucket) == objects(source)
    with pytest.raises(RefusedError, match="is a copy of"):
        next(Study(Store(url), "s").trials(30))
    adopt_copy(bucket)
    for trial in Study(Store(url), "s").trials(22):
        trial.done(1.0)
    back = open_copy(bucket, str(tmp_path / "c"))
    assert Copier(bucket, back).run().troubles == []
    assert objects(back) == objects(bucket)
    assert check(back, deep=True).clean
    assert len(finished(back, SPACE, study="s")) == 22


def test_a_blob_that_many_records_name_is_sent_once(url: str, tmp_path: Path) -> None:
    source = Store(tmp_path / "a")
    digests = [source.put(bytes([number]) * (2 << 20)) for number in range(6)]
    for number in range(120):
        source.claim(f"n{number}", digests[number % 6])
    bucket = open_copy(source, url)
    sent, at_once, most = [], 0, 0
    lock, stage, put = threading.Lock(), bucket.backend.stage, bucket.backend.put

    def staged(*words: Any, **more: Any) -> Draft:
        nonlocal at_once, most
        draft = stage(*words, **more)
        with lock:
            at_once += draft.size >= 2 << 20
            most = max(most, at_once)
        return draft

    def putting(key: str, draft: Draft) -> Outcome:
        nonlocal at_once
        sent.append(key)
        try:
            return put(key, draft)
        finally:
            with lock:
                at_once -= 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket.backend, "stage", staged)
        patch.setattr(bucket.backend, "put", putting)
        told = Copier(source, bucket).run()
    assert (told.blobs, told.records, told.troubles) == (6, 120, [])
    assert sorted(sent) == sorted(blob_key(digest) for digest in digests)
    assert most <= 3, "what is large is not in memory and in temporary files all at once"


def test_no_store_inside_another(url: str, tmp_path: Path) -> None:
    """The inner one's objects would be the outer one's, foreign ones, and a copy would copy itself."""
    outer = Store(url)
    place, _, query = url.partition("?")
    for inner in (f"{place}/inner?{query}", f"{place}/study/x?{query}"):
        with pytest.raises(StoreError, match="lies inside the store"):
            Store(inner)
        with pytest.raises(StoreError, match="lies inside the store"):
            open_copy(outer, inner)
    assert [entry.key for entry in outer.backend.list("")] == ["dibs.json"]
    Store(f"{place}x?{query}")
