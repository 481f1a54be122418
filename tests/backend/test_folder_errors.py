"""Errors that a network file system gives and a local one does not: injected at the system call, then judged."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dibs.backend import Backend, FolderBackend, Outcome
from dibs.backend._oserrors import is_certain, store_error
from dibs.errors import StoreError, UsageError

WON, LOST, UNSURE = Outcome.WON, Outcome.LOST, Outcome.UNSURE


@pytest.fixture
def backend(tmp_path: Path) -> FolderBackend:
    return FolderBackend(tmp_path)


@pytest.fixture
def mkdir_backend(tmp_path: Path) -> FolderBackend:
    return FolderBackend(tmp_path, claim="mkdir")


def data(backend: Backend, key: str) -> bytes | None:
    held = backend.read(key)
    return None if held is None else held.data


class Failing:
    """A system call that answers with an error ``times`` times, having done its work first or not."""

    def __init__(self, call: Callable[..., Any], code: int, times: int = 1, *, done: bool = False) -> None:
        self.call, self.code, self.times, self.done = call, code, times, done

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.times == 0:
            return self.call(*args, **kwargs)
        self.times -= 1
        if self.done:
            self.call(*args, **kwargs)
        raise OSError(self.code, os.strerror(self.code))


# ---- link


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR])
@pytest.mark.parametrize("done", [False, True])
def test_a_link_that_fails_vaguely_is_unsure_and_the_same_draft_may_try_again(
    backend: FolderBackend, monkeypatch: pytest.MonkeyPatch, code: int, done: bool
) -> None:
    draft = backend.stage(b"1")
    monkeypatch.setattr(os, "link", Failing(os.link, code, done=done))
    assert backend.create("x", draft) is UNSURE
    assert data(backend, "x") == (b"1" if done else None)
    assert backend.create("x", draft) is WON, "an own name is told from another's by the inode"
    assert data(backend, "x") == b"1"


def test_a_link_that_was_asked_for_twice_is_won(backend: FolderBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", Failing(os.link, errno.EEXIST, done=True))  # the first answer was lost on the way
    assert backend.create("x", backend.stage(b"1")) is WON


def test_another_link_to_the_same_draft_does_not_make_a_lost_name_won(backend: FolderBackend) -> None:
    assert backend.create("x", backend.stage(b"theirs")) is WON
    draft = backend.stage(b"ours")
    assert backend.create("y", draft) is WON
    assert backend.create("x", draft) is LOST


@pytest.mark.parametrize(
    "code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP]
)
def test_a_link_that_fails_for_certain_is_a_store_error(
    backend: FolderBackend, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    draft = backend.stage(b"1")
    monkeypatch.setattr(os, "link", Failing(os.link, code))
    with pytest.raises(StoreError) as caught:
        backend.create("x", draft)
    assert (caught.value.key, caught.value.errno) == ("x", code)
    assert data(backend, "x") is None
    assert backend.create("x", draft) is WON


def test_eperm_is_how_sshfs_says_lost(backend: FolderBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert backend.create("x", backend.stage(b"theirs")) is WON
    monkeypatch.setattr(os, "link", Failing(os.link, errno.EPERM, times=9))
    assert backend.create("x", backend.stage(b"ours")) is UNSURE, "the name decides"


def test_eperm_everywhere_means_no_hard_links(backend: FolderBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = backend.stage(b"1")
    real = os.link
    monkeypatch.setattr(os, "link", Failing(real, errno.EPERM, times=1))
    assert backend.create("x", draft) is UNSURE, "a probe that nobody races could be linked"
    assert len(list(backend.list("tmp/"))) == 1, "and was removed"
    monkeypatch.setattr(os, "link", Failing(real, errno.EPERM, times=2))
    with pytest.raises(StoreError, match="type of the file system"):
        backend.create("x", draft)


# ---- rename


@pytest.mark.parametrize("done", [False, True])
def test_a_rename_that_fails_vaguely_is_unsure(
    backend: FolderBackend, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    draft = backend.stage(b"1")
    monkeypatch.setattr(os, "replace", Failing(os.replace, errno.EIO, done=done))
    assert backend.replace("x", draft, None) is UNSURE
    assert backend.replace("x", draft, None) is (LOST if done else WON), "LOST: the temporary is gone, ask the name"
    assert data(backend, "x") == b"1"
    assert backend.discard(draft)


def test_a_rename_that_fails_for_certain_is_a_store_error(
    backend: FolderBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = backend.stage(b"1")
    monkeypatch.setattr(os, "replace", Failing(os.replace, errno.EDQUOT))
    with pytest.raises(StoreError, match="quota"):
        backend.replace("x", draft, None)
    assert backend.replace("x", draft, None) is WON


def test_a_rename_onto_the_drafts_own_link_leaves_no_temporary(backend: FolderBackend) -> None:
    draft = backend.stage(b"1")
    assert backend.create("x", draft) is WON
    assert backend.replace("x", draft, None) is WON
    assert list(backend.list("tmp/")) == []
    assert data(backend, "x") == b"1"


# ---- mkdir


def bare(backend: FolderBackend, key: str) -> None:
    """A claim whose winner died before it wrote."""
    assert backend.root
    (backend.root / f"{key}.claim").mkdir(parents=True)


def test_a_bare_claim_is_a_taken_name_without_bytes(mkdir_backend: FolderBackend) -> None:
    backend = mkdir_backend
    bare(backend, "a/x.json")
    held = backend.read("a/x.json")
    assert held is not None
    assert held.data == b""
    assert b"".join(backend.stream("a/x.json") or [b"?"]) == b""
    assert [(entry.key, entry.size) for entry in backend.list("")] == [("a/x.json", 0)]
    (entry,) = backend.list("a/", details=True)
    assert entry == ("a/x.json", held.version, held.modified, 0)
    assert backend.folders("") == ["a"]
    assert backend.folders("a/") == []
    assert backend.create("a/x.json", backend.stage(b"1")) is LOST
    assert backend.root
    os.utime(backend.root / "a/x.json.claim", (1.0, 1.0))
    assert backend.touch("a/x.json") is True
    assert backend.read("a/x.json").modified > 1.0  # type: ignore[union-attr]
    assert backend.replace("a/x.json", backend.stage(b"2"), None) is WON
    assert data(backend, "a/x.json") == b"2"
    assert [entry.key for entry in backend.list("")] == ["a/x.json"]
    assert backend.delete("a/x.json") is True
    assert list(backend.list("")) == []
    bare(backend, "a/y.json")
    assert backend.delete("a/y.json") is True
    assert backend.create("a/y.json", backend.stage(b"3")) is WON


def test_a_claims_folder_is_no_name(mkdir_backend: FolderBackend) -> None:
    for key in ("a/x.claim", "study.claim/x.json"):
        with pytest.raises(UsageError, match=r"\.claim"):
            mkdir_backend.create(key, mkdir_backend.stage(b""))


def test_with_mkdir_eexist_is_lost_even_for_who_made_it(
    mkdir_backend: FolderBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = mkdir_backend.stage(b"1")
    monkeypatch.setattr(os, "mkdir", Failing(os.mkdir, errno.EIO, done=True))
    assert mkdir_backend.create("x", draft) is UNSURE
    assert mkdir_backend.create("x", draft) is LOST
    assert data(mkdir_backend, "x") == b""


@pytest.mark.parametrize("done", [False, True])
def test_who_won_the_mkdir_goes_on(mkdir_backend: FolderBackend, monkeypatch: pytest.MonkeyPatch, done: bool) -> None:
    draft = mkdir_backend.stage(b"1")
    monkeypatch.setattr(os, "replace", Failing(os.replace, errno.EIO, done=done))
    assert mkdir_backend.create("x", draft) is UNSURE
    assert mkdir_backend.create("x", mkdir_backend.stage(b"other")) is LOST
    assert mkdir_backend.create("x", draft) is (UNSURE if done else WON), "the temporary is gone: the name knows"
    assert data(mkdir_backend, "x") == b"1"


def test_a_claim_that_cannot_be_written_is_given_back(
    mkdir_backend: FolderBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = mkdir_backend.stage(b"1")
    monkeypatch.setattr(os, "replace", Failing(os.replace, errno.ENOSPC))
    with pytest.raises(StoreError, match="the disk is full"):
        mkdir_backend.create("x", draft)
    assert mkdir_backend.read("x") is None
    assert mkdir_backend.create("x", draft) is WON


# ---- reading and staging


@pytest.mark.parametrize(("times", "fine"), [(2, True), (3, False)])
def test_a_stale_handle_is_tried_again(
    backend: FolderBackend, monkeypatch: pytest.MonkeyPatch, times: int, fine: bool
) -> None:
    assert backend.create("x", backend.stage(b"1")) is WON
    monkeypatch.setattr(os, "read", Failing(os.read, errno.ESTALE, times))
    if fine:
        assert data(backend, "x") == b"1"
    else:
        with pytest.raises(StoreError, match="stale handle"):
            backend.read("x")
    monkeypatch.setattr(os, "scandir", Failing(os.scandir, errno.ESTALE, times))
    if fine:
        assert [entry.key for entry in backend.list("")] == ["x"]
    else:
        with pytest.raises(StoreError, match="stale handle"):
            list(backend.list(""))


@pytest.mark.parametrize("call", ["write", "close", "fsync"])
def test_a_disk_that_fills_up_leaves_no_temporary(
    backend: FolderBackend, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    backend.prepare()
    monkeypatch.setattr(os, call, Failing(getattr(os, call), errno.ENOSPC, done=call == "close"))
    with pytest.raises(StoreError, match="the disk is full") as caught:
        backend.stage(b"12345", durable=True)
    assert caught.value.errno == errno.ENOSPC
    assert list(backend.list("tmp/")) == []


def test_a_write_that_comes_in_pieces_is_whole(backend: FolderBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, chunk: real(fd, bytes(chunk[:3])))
    draft = backend.stage([b"0123456789", b"", b"abcdefg"])
    assert draft.size == 17
    assert backend.create("x", draft) is WON
    assert data(backend, "x") == b"0123456789abcdefg"


def test_a_disk_that_will_not_sync_a_folder_is_unsure(backend: FolderBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = backend.stage(b"1", durable=True)
    monkeypatch.setattr(os, "fsync", Failing(os.fsync, errno.EIO))
    assert backend.create("x", draft) is UNSURE
    assert backend.create("x", draft) is WON
    monkeypatch.setattr(os, "fsync", Failing(os.fsync, errno.EINVAL))
    second = backend.stage(b"2")
    second.durable = True
    assert backend.replace("x", second, None) is WON, "some file systems sync no folders"


# ---- the words


@pytest.mark.parametrize(
    "code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EFBIG, errno.EIO, errno.ESTALE]
)
def test_an_error_names_the_file_and_a_remedy(code: int) -> None:
    error = store_error(OSError(code, os.strerror(code)), "write", "/mnt/x", "x")
    assert str(error).startswith("cannot write /mnt/x: ")
    assert any(
        word in str(error) for word in ("make room", "remount", "give this user", "raise", "check", "ask for more")
    )
    assert (error.key, error.errno) == ("x", code)


def test_what_is_not_known_is_unsure() -> None:
    assert not any(
        is_certain(OSError(code, "")) for code in (errno.EIO, errno.ESTALE, errno.EPERM, errno.ETIMEDOUT, 9999)
    )
    assert not is_certain(OSError("without a number"))
