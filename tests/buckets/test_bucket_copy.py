"""A store goes from a folder to a bucket and back, the same names and bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.buckets.servers import Server

from dibs import Float, RefusedError, Space, Store, Study
from dibs.store import _opening_bucket
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
