"""Buckets mounted as folders (s3fs, rclone) keep nothing exclusive: no store lies there, whoever asks."""

from __future__ import annotations

import pytest
from tests.services.machines import dibs, figures, meet, words_of
from tests.services.mounts import Mounts

from dibs import Store, StoreError

pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]


def test_s3fs_is_refused_unseen_and_by_two_machines(s3fs: Mounts) -> None:
    with pytest.raises(StoreError, match=r"fuse\.s3fs is not taken unseen: it keeps no name exclusive"):
        Store(s3fs.a / "store")
    assert dibs("doctor", s3fs.a / "store").code == 3
    north, south = meet(s3fs, "store", "--names", "100")
    assert (north.code, south.code) == (3, 3), north.err + south.err
    report = north.told
    print(figures(report))
    words = words_of(report)
    assert words == {"link": "missing", "open": "lies", "mkdir": "lies"}
    assert not report["fine"]
    assert "no store can lie here" in report["verdict"]
    assert "give the bucket itself" in report["verdict"]
    assert report["written"] == ["verdict/0.json"]
    with pytest.raises(StoreError, match=r"fuse\.s3fs is refused: `dibs doctor` found"):
        Store(s3fs.b / "store")
    assert not (s3fs.a / "store" / "dibs.json").exists()


def test_rclone_is_refused_unseen_and_shows_machines_not_even_to_each_other(rclone: Mounts) -> None:
    with pytest.raises(StoreError, match=r"fuse\.rclone is not taken unseen: it keeps no name exclusive"):
        Store(rclone.a / "store")
    assert dibs("doctor", rclone.a / "store").code == 3
    for ended in meet(rclone, "store", "--patience", "8s"):
        assert (ended.code, ended.out) == (3, "")
        assert "1 of 2 machines came to 'here' in 8 s" in ended.err
        assert "does not show one machine's names to another" in ended.err
    with pytest.raises(StoreError, match="is not taken unseen"):
        Store(rclone.b / "store")
