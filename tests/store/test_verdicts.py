"""Verdicts beside the marker: what they decide for a mount, with and without a store, and that every open obeys."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from dibs.backend import FolderBackend, judge
from dibs.errors import StoreError
from dibs.store import Here, Settler, Store, Verdict, _opening, weigh, write_verdict
from dibs.store._verdicts import read_verdicts

FUSE = "fuse.unheard-of"


@pytest.fixture(autouse=True)
def on_fuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_opening, "mount_type", lambda path: FUSE)
    monkeypatch.setattr(_opening, "_warned", set())


def found(link: str, mkdir: str, mount: str = FUSE, key: str = "verdict/0.json") -> Verdict:
    return Verdict(key, (mount,), {"link": link, "mkdir": mkdir})


def told(root: Path, link: str, mkdir: str, mount: str = FUSE) -> str:
    """Leave a verdict in a folder, as the doctor does."""
    backend = FolderBackend(root, claim="mkdir" if link != "exclusive" else "link")
    backend.prepare()
    body = {"v": 1, "kind": "verdict", "mounts": [mount], "methods": {"link": link, "mkdir": mkdir}}
    return write_verdict(Settler(backend, Here()), body)


LINK, MKDIR, UNCHECKED = {"claim": "link"}, {"claim": "mkdir"}, {"claim": "link", "verdict": "unchecked"}


@pytest.mark.parametrize(
    ("fstype", "marker", "link", "mkdir", "kind", "claim"),
    [
        # an unused folder: the method is chosen
        (FUSE, None, "exclusive", "exclusive", "taken", "link"),
        (FUSE, None, "lies", "exclusive", "taken", "mkdir"),
        (FUSE, None, "missing", "exclusive", "taken", "mkdir"),
        (FUSE, None, "unproven", "exclusive", "taken", "mkdir"),
        (FUSE, None, "lies", "lies", "refused", "link"),
        (FUSE, None, "missing", "lies", "refused", "link"),
        (FUSE, None, "lies", "unproven", "refused", "mkdir"),
        (FUSE, None, "unproven", "unproven", "refused", "link"),
        ("ext4", None, "unproven", "unproven", "taken", "link"),
        ("ext4", None, "unproven", "exclusive", "taken", "link"),
        ("ext4", None, "lies", "unproven", "taken", "mkdir"),
        ("ext4", None, "lies", "lies", "refused", "link"),
        ("cifs", None, "exclusive", "exclusive", "taken", "link"),
        ("cifs", None, "lies", "exclusive", "taken", "mkdir"),
        # a store: its method counts and no other
        (FUSE, LINK, "exclusive", "lies", "taken", "link"),
        (FUSE, LINK, "lies", "exclusive", "refused", "link"),
        (FUSE, MKDIR, "lies", "exclusive", "taken", "mkdir"),
        (FUSE, MKDIR, "exclusive", "unproven", "refused", "mkdir"),
        ("nfs4", LINK, "lies", "exclusive", "refused", "link"),
        ("nfs4", MKDIR, "lies", "unproven", "taken", "mkdir"),
        # what was taken on somebody's word is so until somebody knows better
        (FUSE, UNCHECKED, "unproven", "unproven", "warned", "link"),
        (FUSE, UNCHECKED, "lies", "exclusive", "refused", "link"),
        (FUSE, UNCHECKED, "exclusive", "exclusive", "taken", "link"),
    ],
)
def test_a_verdict_beats_the_type_of_the_mount(
    fstype: str, marker: dict[str, Any] | None, link: str, mkdir: str, kind: str, claim: str
) -> None:
    weighed = weigh(judge(fstype), marker, [found(link, mkdir, fstype)])
    assert (weighed.kind, weighed.claim, weighed.fstype) == (kind, claim, fstype)


def test_a_verdict_says_nothing_about_other_mounts() -> None:
    assert weigh(judge(FUSE), None, [found("exclusive", "exclusive", "fuse.other")]).kind == "refused"
    assert weigh(judge("ext4"), None, [found("lies", "lies", "fuse.other")]).kind == "taken"


def test_the_later_verdict_counts() -> None:
    good, bad = found("exclusive", "exclusive"), found("lies", "lies", key="verdict/1.json")
    assert weigh(judge(FUSE), LINK, [good, bad]).kind == "refused"
    assert weigh(judge(FUSE), LINK, [bad, good]).kind == "taken"
    elsewhere = found("lies", "lies", "nfs4", key="verdict/2.json")
    assert weigh(judge(FUSE), LINK, [good, elsewhere]).kind == "taken"


def test_a_refusal_says_what_was_found_and_the_way_out() -> None:
    said = weigh(judge(FUSE), LINK, [found("lies", "exclusive")]).sentence
    assert "claims by link are not exclusive" in said
    assert "verdict/0.json" in said
    assert "this store claims so; mkdir is: start a new store" in said
    said = weigh(judge(FUSE), None, [found("lies", "missing")]).sentence
    assert "several machines won the same name" in said
    assert "Use another file system" in said


def test_a_new_store_is_made_with_the_method_that_was_found(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with pytest.raises(StoreError, match="not taken unseen"):
        Store(root)
    assert told(root, "lies", "exclusive") == "verdict/0.json"
    store = Store(root)
    assert (store.marker["claim"], store.marker["verdict"]) == ("mkdir", FUSE)
    assert store.backend.traits.claim == "mkdir"
    assert store.claim("spam")
    assert not Store(root).claim("spam")
    assert (root / "name/spam.json.claim").is_dir()


def test_a_store_found_lying_is_refused_everywhere_and_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    monkeypatch.setattr(_opening, "mount_type", lambda path: "nfs4")
    Store(root).claim("spam")
    assert told(root, "lies", "exclusive", "nfs4") == "verdict/0.json"
    with pytest.raises(StoreError, match="nfs4 is refused: `dibs doctor` found"):
        Store(root)
    assert Store(root, unchecked=True).resolve("spam") is not None
    assert told(root, "exclusive", "exclusive", "nfs4") == "verdict/1.json"
    assert not Store(root).claim("spam")


def test_a_folder_found_unfit_never_becomes_a_store(tmp_path: Path) -> None:
    root = tmp_path / "store"
    told(root, "lies", "lies")
    for create in (None, True):
        with pytest.raises(StoreError, match="is refused"):
            Store(root, create=create)
    assert not (root / "dibs.json").exists()
    assert Store(root, unchecked=True).marker["verdict"] == "unchecked"


@pytest.mark.parametrize("junk", [b"", b"{", b'{"v":1}', b'{"v":1,"mounts":3,"methods":{}}', b'{"v":9,"mounts":[]}'])
def test_a_verdict_that_does_not_read_is_told_and_left_out(tmp_path: Path, junk: bytes, caplog: Any) -> None:
    root = tmp_path / "store"
    told(root, "exclusive", "exclusive")
    (root / "verdict/1.json").write_bytes(junk)
    (root / "verdict/note.txt").write_text("not one")
    with caplog.at_level(logging.WARNING, "dibs"):
        assert [verdict.key for verdict in read_verdicts(FolderBackend(root))] == ["verdict/0.json"]
    assert ("verdict/1.json" in caplog.text) is bool(junk)  # an empty one is a claim that is being written
    assert Store(root).claim("spam")


def test_each_verdict_has_a_number_of_its_own(tmp_path: Path) -> None:
    assert [told(tmp_path, "lies", "exclusive") for _ in range(3)] == [f"verdict/{k}.json" for k in range(3)]
    bodies = [json.loads((tmp_path / f"verdict/{k}.json").read_bytes()) for k in range(3)]
    assert len({body["nonce"] for body in bodies}) == 3
