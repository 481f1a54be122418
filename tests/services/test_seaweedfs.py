"""A SeaweedFS mount passes what one machine can try, and lets two machines win one link; by mkdir it carries a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.services.machines import dibs, figures, meet, tormented, words_of
from tests.services.mounts import Mounts

from dibs import Store, StoreError

pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]


def test_two_machines_catch_link_and_the_store_claims_by_mkdir(seaweedfs: Mounts) -> None:
    north, south = meet(seaweedfs, "store")
    assert (north.code, south.code) == (0, 0), north.err + south.err
    report = north.told
    print(figures(report))
    assert words_of(report) == {"link": "lies", "open": "lies", "mkdir": "exclusive"}
    methods = {each["name"]: each for each in report["methods"]}
    assert methods["link"]["several"] > 0, "seen by the race itself, not by what one machine can see"
    assert methods["mkdir"]["one"] == methods["mkdir"]["names"] >= 300
    assert south.told["methods"] == report["methods"]
    assert report["written"] == ["verdict/0.json", "dibs.json"]

    store = Store(seaweedfs.b / "store")
    assert (store.marker["claim"], store.backend.traits.claim) == ("mkdir", "mkdir")
    assert store.claim("spam")
    assert not Store(seaweedfs.a / "store").claim("spam")


def test_by_mkdir_it_carries_a_torture(seaweedfs: Mounts, tmp_path: Path) -> None:
    if not (seaweedfs.a / "store" / "dibs.json").exists():
        assert [each.code for each in meet(seaweedfs, "store")] == [0, 0]
    broken, happened = tormented(seaweedfs, "store", tmp_path, 15)
    print(happened)
    assert broken == []


def test_a_store_that_already_claims_by_link_is_refused_once_it_is_known(seaweedfs: Mounts) -> None:
    old = seaweedfs.a / "old"
    assert Store(old, unchecked=True).marker["claim"] == "link"
    assert Store(old).claim("before"), "somebody vouched for it"
    for ended in meet(seaweedfs, "old", "--names", "150"):
        assert ended.code == 3, ended.err
        assert "start a new store" in ended.told["verdict"]
        assert ended.told["written"] == ["verdict/0.json"]
    with pytest.raises(StoreError, match="claims by link are not exclusive"):
        Store(seaweedfs.b / "old")
    assert Store(seaweedfs.b / "old", unchecked=True).resolve("before") is not None
    assert dibs("status", "--store", seaweedfs.b / "old").code == 0, "whoever only reads may"
