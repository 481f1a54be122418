"""A store's names never leave the store, whatever is planted in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dibs import Float, Space, Store, StoreError, Study, UsageError
from dibs.backend import FolderBackend
from dibs.store import escape

KEY = "study/s/trial/000000/00000001-0.json"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "000000").mkdir(parents=True)
    (folder / "00000001-0.json").write_text("secret")
    (folder / "000000" / "00000001-0.json").write_text("secret")
    return folder


@pytest.mark.parametrize("planted", ["study/s/trial/000000", "study/s/trial", "study/s", "study"])
@pytest.mark.parametrize("claim", ["link", "mkdir"])
def test_no_verb_goes_through_a_planted_link(tmp_path: Path, outside: Path, planted: str, claim: str) -> None:
    backend = FolderBackend(tmp_path / "s", claim=claim)
    backend.prepare()
    place = tmp_path / "s" / planted
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)
    before = sorted((p, p.read_text()) for p in outside.rglob("*") if p.is_file())
    for verb in (
        lambda: backend.create(KEY, backend.stage(b"x")),
        lambda: backend.replace(KEY, backend.stage(b"x"), None),
        lambda: backend.read(KEY),
        lambda: backend.stream(KEY),
        lambda: backend.touch(KEY),
        lambda: backend.delete(KEY),
    ):
        with pytest.raises(StoreError, match="is a link"):
            verb()
    assert sorted((p, p.read_text()) for p in outside.rglob("*") if p.is_file()) == before
    assert KEY not in [entry.key for entry in backend.list("study/")]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "..", "a/../../b", "a\\..\\b", "C:x", "x/"])
def test_a_name_is_one_segment(tmp_path: Path, name: str) -> None:
    assert "/" not in escape(name)
    store = Store(tmp_path / "s")
    assert store.claim(name)
    study = Study(store, name, Space(x=Float(0, 1)), goal="min")
    for trial in study.trials(1):
        with trial:
            trial.folder.joinpath("f").write_text("x")
            trial.done(1.0)
    assert {p.name for p in tmp_path.iterdir()} == {"s"}
    found = store.resolve(name)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("key", ["../x", "/x", "a/../b", "a//b", "", "a/", ".hidden", "a/.b", "A", "a\0b"])
def test_no_key_leaves_the_root(tmp_path: Path, key: str) -> None:
    backend = FolderBackend(tmp_path / "s")
    backend.prepare()
    with pytest.raises(UsageError):
        backend.read(key)


def test_a_link_in_the_place_of_an_attempts_folder_is_refused(tmp_path: Path, outside: Path) -> None:
    study = Study(tmp_path / "s", "s", Space(x=Float(0, 1)), goal="min")
    work = tmp_path / "s" / "study" / "s" / "work"
    work.mkdir(parents=True)
    (work / "00000000-0").symlink_to(outside)
    trials = study.trials(1)
    trial = next(trials)
    with pytest.raises(StoreError, match="is a link"):
        _ = trial.folder
    assert not (outside / "f").exists()


def test_no_temporary_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    Store(tmp_path / "store")
    backend = FolderBackend(tmp_path / "store")
    for each in (backend.root / "tmp").iterdir():
        each.unlink()
    (backend.root / "tmp").rmdir()
    (backend.root / "tmp").symlink_to(outside)
    with pytest.raises(StoreError, match="tmp is a link"):
        backend.stage(b"x")
    with pytest.raises(StoreError, match="tmp is a link"):
        backend.now()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("planted", ["study/spam/work", "study/spam/work/00000000-0"])
def test_no_private_folder_lies_behind_a_link(tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    store = Store(tmp_path / "store")
    study = Study(store, "spam", Space(x=Float(0, 1)), goal="min")
    (tmp_path / "store" / planted).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "store" / planted).symlink_to(outside)
    with pytest.raises(StoreError, match="is a link"):
        _ = next(study.trials(1)).folder
    assert list(outside.iterdir()) == []
