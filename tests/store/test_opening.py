"""Opening a store: where one is created, whose mount is trusted, and the marker that is never rewritten."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.parts import at_once

from dibs.backend import judge
from dibs.cli import main
from dibs.errors import NewerFormat, StoreError, UsageError
from dibs.store import Store, _opening
from dibs.store._machine import Here
from dibs.store._opening import in_job_array, local_path

ARRAYS = ["SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "SGE_TASK_ID", "LSB_JOBINDEX"]


@pytest.fixture(autouse=True)
def plain_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No job array, and a mount that is taken, wherever the tests run."""
    for name in ARRAYS:
        monkeypatch.delenv(name, raising=False)
    mounted(monkeypatch, "ext4")


def mounted(monkeypatch: pytest.MonkeyPatch, fstype: str) -> None:
    monkeypatch.setattr(_opening, "mount_type", lambda path: fstype)
    monkeypatch.setattr(_opening, "_warned", set())


def marker_of(root: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((root / "dibs.json").read_bytes())
    return body


def test_a_store_is_created_where_its_parent_exists(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    marker = marker_of(tmp_path / "store")
    assert marker == store.marker
    assert (marker["v"], marker["kind"], marker["backend"], marker["claim"], marker["verdict"]) == (
        1, "dibs", "folder", "link", "ext4",
    )  # fmt: skip
    assert len(marker["nonce"]) == 32
    assert store.url == str(tmp_path / "store")


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    Store(tmp_path / "store")
    before = (tmp_path / "store" / "dibs.json").stat()
    for create in (None, True, False):
        assert Store(tmp_path / "store", create=create).marker == marker_of(tmp_path / "store")
    after = (tmp_path / "store" / "dibs.json").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


@pytest.mark.parametrize("form", [str, Path, lambda path: f"file://{path}", lambda path: f"file://localhost{path}"])
def test_the_forms_of_a_folders_url(tmp_path: Path, form: Any) -> None:
    assert Store(form(tmp_path / "a store")).url == str(tmp_path / "a store")


def test_a_relative_path_and_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path("store") == tmp_path / "store"
    assert local_path("~/store") == tmp_path / "store"
    assert local_path("file:///a%20b") == Path("/a b")


@pytest.mark.parametrize("url", ["", "  ", "a\0b", 7, None, b"/tmp/x", "https://x/y", "ftp://x", "file://host/x"])
def test_what_is_no_folder_is_refused(url: Any) -> None:
    with pytest.raises(UsageError):
        Store(url)


def test_a_missing_parent_is_most_likely_a_missing_mount(tmp_path: Path) -> None:
    for create in (None, True):
        with pytest.raises(StoreError, match="is the share mounted"):
            Store(tmp_path / "missing" / "store", create=create)
    assert list(tmp_path.iterdir()) == []


def test_create_false_never_creates(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("missing", "empty"):
        with pytest.raises(StoreError, match="there is no store at"):
            Store(tmp_path / name, create=False)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_a_file_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    for create in (None, True, False):
        with pytest.raises(StoreError, match="is a file, not a folder"):
            Store(tmp_path / "file", create=create)
    with pytest.raises(StoreError):
        Store(tmp_path / "file" / "store")
    assert (tmp_path / "file").read_text() == "hello"


@pytest.mark.parametrize("variable", ARRAYS)
def test_a_task_of_a_job_array_creates_no_store_unless_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "3")
    with pytest.raises(StoreError, match=r"job array does not create one.*--create"):
        Store(tmp_path / "store")
    assert not (tmp_path / "store").exists()
    assert Store(tmp_path / "store", create=True).marker
    assert Store(tmp_path / "store").marker


@pytest.mark.parametrize(
    ("environ", "array"),
    [
        ({}, False),
        ({"SLURM_ARRAY_TASK_ID": "0"}, True),
        ({"SLURM_ARRAY_TASK_ID": "12"}, True),
        ({"SLURM_JOB_ID": "77"}, False),
        ({"PBS_ARRAY_INDEX": "0"}, True),
        ({"SGE_TASK_ID": "undefined"}, False),
        ({"SGE_TASK_ID": "1"}, True),
        ({"LSB_JOBINDEX": "0"}, False),
        ({"SLURM_ARRAY_TASK_ID": ""}, False),
    ],
)
def test_what_counts_as_a_job_array(environ: dict[str, str], array: bool) -> None:
    assert in_job_array(environ) is array


@pytest.mark.parametrize(
    "junk",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"v":1}', b'{"v":1,"kind":"study"}', b'{"name":"some-package"}', b"\0" * 300],
)
def test_a_torn_or_foreign_marker_is_left_alone(tmp_path: Path, junk: bytes) -> None:
    root = tmp_path / "store"
    root.mkdir()
    (root / "dibs.json").write_bytes(junk)
    for create in (None, True, False):
        with pytest.raises(StoreError, match=r"dibs\.json") as told:
            Store(root, create=create)
        assert told.value.key == "dibs.json"
    assert [path.name for path in root.iterdir()] == ["dibs.json"]
    assert (root / "dibs.json").read_bytes() == junk


def test_a_newer_store_says_upgrade_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "store"
    Store(root)
    (root / "dibs.json").write_text(json.dumps({**marker_of(root), "v": 2}))
    with pytest.raises(NewerFormat, match="upgrade dibs") as told:
        Store(root)
    assert "restore" not in str(told.value)
    assert str(root) in str(told.value)


def test_an_unknown_claim_method_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "store"
    Store(root)
    (root / "dibs.json").write_text(json.dumps({**marker_of(root), "claim": "flock"}))
    with pytest.raises(StoreError, match="'flock'"):
        Store(root)


def test_a_store_that_claims_by_mkdir_is_opened_so(tmp_path: Path) -> None:
    root = tmp_path / "store"
    Store(root)
    (root / "dibs.json").write_text(json.dumps({**marker_of(root), "claim": "mkdir"}))
    store = Store(root)
    assert store.backend.traits.claim == "mkdir"
    assert store.claim("spam")
    assert (root / "name" / "spam.json.claim").is_dir()
    assert not Store(root).claim("spam")


def test_all_who_create_at_once_have_one_store(tmp_path: Path) -> None:
    for k in range(5):
        stores = at_once([lambda k=k: Store(tmp_path / f"store{k}") for _ in range(8)])
        assert len({store.marker["nonce"] for store in stores}) == 1
        assert stores[0].marker == marker_of(tmp_path / f"store{k}")


# mounts


@pytest.mark.parametrize("fstype", ["fuse.s3fs", "fuse.rclone", "fuse.unheard-of", "9p", "unknown"])
def test_a_mount_nobody_vouches_for_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fstype: str
) -> None:
    mounted(monkeypatch, fstype)
    for create in (None, True):
        with pytest.raises(StoreError, match=rf"{fstype} is not taken unseen.*dibs doctor.*unchecked"):
            Store(tmp_path / "store", create=create)
    assert not (tmp_path / "store").exists()


def test_unchecked_is_remembered_in_the_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    mounted(monkeypatch, "fuse.unheard-of")
    with caplog.at_level(logging.WARNING, "dibs"):
        Store(tmp_path / "store", unchecked=True)
    assert "fuse.unheard-of" in caplog.text
    assert marker_of(tmp_path / "store")["verdict"] == "unchecked"
    assert Store(tmp_path / "store").marker["verdict"] == "unchecked"


def test_a_store_that_was_fine_elsewhere_is_refused_on_a_mount_that_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each machine mounts in its own way: the marker's verdict was another machine's."""
    Store(tmp_path / "store")
    mounted(monkeypatch, "fuse.s3fs")
    with pytest.raises(StoreError, match="not taken unseen"):
        Store(tmp_path / "store")
    assert Store(tmp_path / "store", unchecked=True).marker["verdict"] == "ext4"


def test_a_doubtful_mount_warns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    mounted(monkeypatch, "lustre")
    with caplog.at_level(logging.WARNING, "dibs"):
        for _ in range(3):
            Store(tmp_path / "store")
    assert [record.message.count("lustre") > 0 for record in caplog.records] == [True]
    assert marker_of(tmp_path / "store")["verdict"] == "lustre"


def test_the_mount_of_the_parent_is_looked_at_before_there_is_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(_opening, "mount_type", lambda path: looked.append(path) or "ext4")
    Store(tmp_path / "store")
    Store(tmp_path / "store")
    assert looked == [tmp_path, tmp_path / "store"]
    assert judge("ext4").kind == "taken"


# the machine


def test_who_says_which_process_it_is() -> None:
    who = Here().who("me")
    assert (who["me"], who["pid"]) == ("me", os.getpid())
    assert set(who) == {"me", "host", "boot", "pid", "token"}


@pytest.mark.parametrize(
    ("environ", "me"),
    [
        ({"DIBS_ME": "worker 7", "SLURM_JOB_ID": "5"}, "worker 7"),
        ({"SLURM_JOB_ID": "5"}, "slurm-5_0"),
        ({"SLURM_JOB_ID": "5", "SLURM_PROCID": "3"}, "slurm-5_3"),
        ({"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": "12"}, "slurm-5_12"),
    ],
)
def test_the_readable_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], me: str) -> None:
    for name in ("DIBS_ME", "SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    store = Store(tmp_path / "store")
    host = store.me()
    assert host
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert store.me() == me
    assert store.me("said") == "said"
    assert store.head("note")["who"]["me"] == me


@pytest.mark.parametrize("name", ["s3", "gs", "az"])
def test_a_folder_may_be_called_like_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert Store(name).backend.root == tmp_path / name
    doctor = CliRunner().invoke(main, ["doctor", name, "--json"])
    assert json.loads(doctor.stdout)["store"] == str(tmp_path / name)


def test_files_of_a_bucket_are_no_store_in_a_folder(tmp_path: Path) -> None:
    Store(tmp_path / "store", create=True)
    marker = tmp_path / "store/dibs.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "backend": "bucket", "claim": "put"}))
    with pytest.raises(StoreError, match=r"files of a store in a bucket.*by `dibs copy s3://"):
        Store(tmp_path / "store")
