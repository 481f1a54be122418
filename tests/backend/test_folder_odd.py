"""What may lie or happen in a folder that only a person, a full disk or an unmounted share puts there."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dibs.backend import Backend, FolderBackend, Outcome
from dibs.errors import StoreError, UsageError

WON, LOST, UNSURE = Outcome.WON, Outcome.LOST, Outcome.UNSURE


@pytest.fixture
def backend(tmp_path: Path) -> FolderBackend:
    return FolderBackend(tmp_path)


def put(backend: Backend, key: str, data: bytes = b"{}") -> None:
    draft = backend.stage(data)
    assert backend.create(key, draft) is WON
    assert backend.discard(draft)


def keys(backend: Backend, prefix: str = "") -> list[str]:
    return [entry.key for entry in backend.list(prefix)]


def in_a_process(code: str, *arguments: object) -> str:
    """The output of a fresh Python that runs the code, which must end well."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


# ---- planted where a record belongs


def plant_fifo(path: Path) -> None:
    os.mkfifo(path)


def plant_link(path: Path) -> None:
    secret = path.parent / ".secret"
    secret.write_bytes(b"secret")
    path.symlink_to(secret)


def plant_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def plant_socket(path: Path) -> None:
    os.chdir(path.parent)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def plant_device(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make a device file")
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("root in a container without CAP_MKNOD cannot make a device file")


def plant_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    "plant", [plant_fifo, plant_link, plant_dangling_link, plant_socket, plant_device, plant_folder]
)
def test_what_is_no_file_is_neither_followed_nor_waited_for(
    backend: FolderBackend, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(".")  # put back, whatever plant_socket does
    put(backend, "a/0")
    assert backend.root
    path = backend.root / "a" / "x"
    plant(path)
    for verb in (backend.read, backend.stream):
        with pytest.raises(StoreError, match="remove it by hand") as caught:
            verb("a/x")
        assert caught.value.key == "a/x"
        assert str(path) in str(caught.value)
    draft = backend.stage(b"1")
    assert backend.create("a/x", draft) is LOST, "the name is taken"
    assert keys(backend) == (["a/0"] if plant is plant_folder else ["a/0", "a/x"])


def test_folders_that_are_links_are_not_entered(
    backend: FolderBackend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    put(backend, "a/x")
    outside = tmp_path_factory.mktemp("outside")
    (outside / "b").mkdir()
    (outside / "b" / "y").write_bytes(b"secret")
    assert backend.root
    (backend.root / "link").symlink_to(outside)
    (backend.root / "loop").symlink_to(backend.root)
    assert keys(backend) == ["a/x", "link", "loop"], "listed as names that are taken, not as folders"
    assert keys(backend, "link/") == keys(backend, "link/b/") == []
    assert backend.folders("") == ["a"]
    assert backend.folders("link/") == []


def test_foreign_names_are_not_listed(backend: FolderBackend) -> None:
    put(backend, "a/x")
    assert backend.root
    for name in (".nfs0001", "Desktop.ini", "x y", "é", ".hidden"):
        (backend.root / "a" / name).write_bytes(b"")
    (backend.root / "lost+found").mkdir()
    (backend.root / "lost+found" / "x").write_bytes(b"")
    assert keys(backend) == ["a/x"]
    assert backend.folders("") == ["a"]


def test_a_huge_file_is_streamed_and_not_read(backend: FolderBackend) -> None:
    put(backend, "blobs/00/x", b"start")
    assert backend.root
    os.truncate(backend.root / "blobs/00/x", (64 << 20) + 1)
    with pytest.raises(StoreError, match="can only be streamed"):
        backend.read("blobs/00/x")
    chunks = backend.stream("blobs/00/x")
    assert chunks is not None
    assert next(chunks).startswith(b"start\0")


# ---- no store, or none any more


def test_a_missing_root_reads_as_empty_and_is_never_made_by_a_write(tmp_path: Path) -> None:
    backend = FolderBackend(tmp_path / "mnt")
    assert (backend.read("a/x"), backend.stream("a/x"), keys(backend), keys(backend, "a/"), backend.folders("")) == (
        None,
        None,
        [],
        [],
        [],
    )
    assert (backend.delete("a/x"), backend.touch("a/x")) == (False, False)
    for verb in (lambda: backend.stage(b"1"), backend.now):
        with pytest.raises(StoreError, match=r"does not exist: is the share mounted\? If so, it was moved or removed"):
            verb()
    assert not (tmp_path / "mnt").exists()


def test_prepare_makes_one_level(tmp_path: Path) -> None:
    backend = FolderBackend(tmp_path / "mnt")
    backend.prepare()
    backend.prepare()
    put(backend, "a/x")
    with pytest.raises(StoreError, match=r"mnt2 does not exist\. Is the share mounted"):
        FolderBackend(tmp_path / "mnt2" / "studies").prepare()
    assert not (tmp_path / "mnt2").exists()


def test_a_root_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    backend = FolderBackend(tmp_path / "file")
    for verb in (
        backend.prepare,
        backend.now,
        lambda: backend.stage(b"1"),
        lambda: backend.read("a/x"),
        lambda: backend.stream("a/x"),
    ):
        with pytest.raises(StoreError, match="is not a folder"):
            verb()
    for prefix in ("", "a/"):
        with pytest.raises(StoreError, match="file"):
            keys(backend, prefix)
    with pytest.raises(StoreError, match="does not exist"):
        FolderBackend(tmp_path / "file" / "studies").prepare()


@pytest.mark.parametrize("claim", ["link", "mkdir"])
def test_a_share_that_is_unmounted_between_stage_and_create_loses_nothing(tmp_path: Path, claim: str) -> None:
    share, away = tmp_path / "share", tmp_path / "away"
    share.mkdir()
    backend = FolderBackend(share, claim=claim)
    put(backend, "a/0")
    draft = backend.stage(b"1")
    share.rename(away)
    for _ in range(2):  # the mount point is gone, or there and empty
        with pytest.raises(StoreError, match="mounted"):
            backend.create("b/x", draft)
        with pytest.raises(StoreError, match="mounted"):
            backend.replace("b/x", draft, None)
        assert backend.discard(draft) is False, "the temporary is still on the server"
        assert not draft.spent
        if not share.exists():
            share.mkdir()
    assert list(share.iterdir()) == [], "nothing was written into the mount point"
    share.rmdir()
    away.rename(share)
    assert backend.create("b/x", draft) is WON


def test_a_parent_that_is_a_file_is_said(backend: FolderBackend) -> None:
    put(backend, "a/x")
    with pytest.raises(StoreError, match="a part of the name is a file"):
        backend.create("a/x/y", backend.stage(b""))


# ---- temporaries


@pytest.mark.parametrize("plant", [lambda tmp: tmp.write_bytes(b"x"), plant_fifo])
def test_a_file_where_the_temporaries_belong_is_said(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    backend = FolderBackend(tmp_path)
    plant(tmp_path / "tmp")
    for verb in (lambda: backend.stage(b"{}"), backend.now):
        with pytest.raises(StoreError, match="a part of the name is a file"):
            verb()


def test_temporaries_say_who_left_them_and_can_be_cleaned_up(backend: FolderBackend) -> None:
    drafts = [backend.stage(b"%d" % i) for i in range(3)]
    temps = list(backend.list("tmp/", details=True))
    assert [entry.key for entry in temps] == sorted(draft.temp for draft in drafts)
    assert {entry.size for entry in temps} == {1}
    for draft in drafts:
        assert f"-{os.getpid()}-" in draft.temp
        assert len(draft.temp.rpartition("-")[2]) == 16
        assert backend.delete(draft.temp) is True
    assert backend.create("a/x", drafts[0]) is LOST
    assert drafts[0].spent
    assert backend.discard(drafts[1]) is True
    assert keys(backend) == []
    with pytest.raises(UsageError):
        backend.delete("tmp/../a/x")


def test_a_seeded_process_draws_other_names() -> None:
    code = """if True:
        import random, sys
        random.seed(0)
        from dibs.backend import FolderBackend
        print(FolderBackend(sys.argv[1]).stage(b"").temp.rpartition("-")[2])"""
    with tempfile.TemporaryDirectory() as folder:
        assert in_a_process(code, folder) != in_a_process(code, folder)


def test_the_time_is_asked_with_one_file_that_may_be_cleaned_up(backend: FolderBackend) -> None:
    times = [backend.now(), backend.now()]
    (probe,) = keys(backend, "tmp/")
    backend.delete(probe)
    times.append(backend.now())
    assert keys(backend, "tmp/") == [probe]
    assert backend.root
    (backend.root / probe).unlink()
    (backend.root / "tmp").rmdir()
    times.append(backend.now())
    assert times == sorted(times)


# ---- limits of the machine


def test_a_file_size_limit_is_a_store_error_and_leaves_no_temporary(tmp_path: Path) -> None:
    code = """if True:
        import resource, sys
        from dibs.backend import FolderBackend
        from dibs.errors import StoreError
        backend = FolderBackend(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        for data in (b"x" * 2000, [b"x" * 600, b"y" * 600]):
            try:
                backend.stage(data)
            except StoreError as error:
                print(error)
        assert list(backend.list("tmp/")) == []
        draft = backend.stage(b"x" * 900)
        print(backend.create("a/x", draft), backend.discard(draft))"""
    lines = in_a_process(code, tmp_path).splitlines()
    assert len(lines) == 3
    assert all("raise the limit (ulimit -f)" in line for line in lines[:2])
    assert lines[2] == "Outcome.WON True"


def test_a_read_only_store_can_be_read_and_says_why_it_is_not_written() -> None:
    # Permission bits do not bind root, so the process gives up being root first; it needs a folder that others may enter.
    code = """if True:
        import os, sys
        from dibs.backend import FolderBackend
        from dibs.errors import StoreError
        if os.getuid() == 0:
            os.setgroups([]); os.setgid(65534); os.setuid(65534)
        for root in (sys.argv[1], sys.argv[1] + "/new", sys.argv[2]):
            backend = FolderBackend(root)
            for verb in (backend.prepare, lambda: backend.stage(b"1"), backend.now):
                try:
                    verb()
                except StoreError as error:
                    print(error)
        backend = FolderBackend(sys.argv[1])
        print(backend.read("a/x").data, [entry.key for entry in backend.list("")])"""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        put(FolderBackend(root), "a/x", b"1")
        for path in (root / "tmp", root / "a", root):
            path.chmod(0o555)
        (root / "a" / "x").chmod(0o444)
        lines = in_a_process(code, root, "/proc/self/nothing").splitlines()
        root.chmod(0o755)
        (root / "a").chmod(0o755)
        (root / "tmp").chmod(0o755)
    assert lines[-1] == "b'1' ['a/x']"
    assert [("permission denied: give" in line, "mounted" in line) for line in lines[:-1]] == [
        (True, False),  # stage; prepare finds everything there
        (True, False),  # now
        (True, False),  # prepare
        (False, True),
        (False, True),
        (False, True),
        (False, True),
        (False, True),
    ]
