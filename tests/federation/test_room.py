"""Where updates lie while they are averaged: no room there is one clear sentence, before anybody waits for it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.federation.rounds import keys_of, model, together

from dibs import Store, StoreError
from dibs.federation import gather, verify
from dibs.federation._room import room


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "s", create=True)


@pytest.mark.parametrize("there", ["nowhere", "file"])
def test_no_such_folder_is_told_before_anything_is_published(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / there))
    with pytest.raises(StoreError, match=rf"{there}, where updates lie .* set DIBS_WORK") as caught:
        gather(store, model("a"), run="r", round=0, clients=["a"], client="a")
    assert caught.value.exit_code == 3
    assert keys_of(store) == []


def test_a_full_disk_is_no_damage_of_the_store(store: Store) -> None:
    with pytest.raises(StoreError, match=r"cannot be used \(No space left on device\): make room there"), room():
        raise OSError(errno.ENOSPC, "No space left on device")


def test_verify_looks_there_too(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together(store, {"a": model("a")})
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "work"))
    assert [each.state for each in verify(store, "r")] == ["same"]
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "gone"))
    with pytest.raises(StoreError, match="gone, where updates lie"):
        list(verify(store, "r"))


def test_too_many_open_files_are_no_full_disk(store: Store) -> None:
    with pytest.raises(StoreError, match="ulimit -n"), room():
        raise OSError(errno.EMFILE, "Too many open files")
