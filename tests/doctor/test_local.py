"""What one machine can see of a folder: a good one, one that lies in each way that one machine can notice, no trace."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dibs.doctor import Checkup, _local, checkup
from dibs.errors import StoreError
from dibs.store import Here, Store, _opening


@pytest.fixture(autouse=True)
def mounted(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """On ext4 by name, whatever the tests run on; call it for another type."""

    def type_is(fstype: str) -> None:
        monkeypatch.setattr(_opening, "mount_type", lambda path: fstype)

    monkeypatch.setattr(_opening, "_warned", set())
    type_is("ext4")
    return type_is


class Skewed(Here):
    """A machine whose clock is wrong."""

    def __init__(self, ahead_s: float) -> None:
        super().__init__()
        wall = self.clock.wall
        self.clock.wall = lambda: wall() + ahead_s  # type: ignore[method-assign]


def told(seen: Checkup) -> dict[str, tuple[str, str]]:
    return {finding.what: (finding.how, finding.said) for finding in seen.findings}


def test_a_good_folder_is_fine_and_left_as_it_was(tmp_path: Path) -> None:
    seen = checkup(tmp_path / "store", Here())
    assert list(tmp_path.iterdir()) == []
    assert seen.fine
    assert {how for how, _ in told(seen).values()} <= {"ok", "note"}
    assert set(told(seen)) >= {
        "mount",
        "hard links",
        "exclusive create",
        "mkdir",
        "rename",
        "listing",
        "stamps",
        "space",
    }
    assert told(seen)["hard links"] == ("ok", "40 names raced by 4 threads, one winner each")
    assert dict(seen.ways) == {"link": "", "open": "", "mkdir": ""}
    assert (seen.used, seen.claim, seen.mount) == (False, "link", "ext4")
    assert abs(seen.stamps.ahead_s) < 1


def test_a_store_is_looked_at_from_inside(tmp_path: Path) -> None:
    Store(tmp_path / "store")
    before = sorted(tmp_path.rglob("*"))
    seen = checkup(tmp_path / "store", Here())
    assert (seen.used, seen.fine) == (True, True)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("fstype", "fine", "said"),
    [
        ("fuse.unheard-of", False, "--join NAME --machines 2"),
        ("fuse.rclone", False, "it keeps no name exclusive"),
        ("lustre", True, "stamp files with their own clocks.*To be sure, run"),
        ("nfs4", True, "nothing here speaks against a store"),
    ],
)
def test_the_type_of_the_mount_has_a_say(
    tmp_path: Path, mounted: Callable[[str], None], fstype: str, fine: bool, said: str
) -> None:
    mounted(fstype)
    seen = checkup(tmp_path / "store", Here())
    assert seen.fine is fine
    assert re.search(said, seen.verdict)
    assert told(seen)["mount"][0] == ("ok" if fstype == "nfs4" else "note")


def refuse(*_: Any, **__: Any) -> None:
    raise OSError(errno.EOPNOTSUPP, "Operation not supported")


def test_a_folder_without_hard_links_may_still_do_by_mkdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refuse)
    seen = checkup(tmp_path / "store", Here())
    assert told(seen)["hard links"][0] == "bad"
    assert not seen.fine
    assert "the new store will claim by mkdir" in seen.verdict
    assert (seen.ways["link"] != "", seen.ways["mkdir"]) == (True, "")


def test_a_store_that_claims_by_what_does_not_work_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(tmp_path / "store")
    monkeypatch.setattr(os, "link", refuse)
    seen = checkup(tmp_path / "store", Here())
    assert not seen.fine
    assert "this store claims so" in seen.verdict


def test_a_link_that_everybody_wins_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def lying(source: str, target: str, **more: Any) -> None:
        try:
            link(source, target, **more)
        except FileExistsError:
            Path(target).unlink()
            link(source, target, **more)

    monkeypatch.setattr(os, "link", lying)
    seen = checkup(tmp_path / "store", Here())
    assert told(seen)["hard links"] == ("bad", "a second claim of one name is not refused")
    assert not seen.fine


def once(monkeypatch: pytest.MonkeyPatch, name: str, answer: str | OSError) -> None:
    """A reader gets this once when it reads the file of that name."""
    read, left = Path.read_text, [answer]

    def text(self: Path, *args: Any, **more: Any) -> str:
        if self.name == name and left:
            given = left.pop()
            if isinstance(given, OSError):
                raise given
            return given
        return read(self, *args, **more)

    monkeypatch.setattr(Path, "read_text", text)


def test_a_rewrite_that_shows_parts_is_fatal_to_every_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once(monkeypatch, "whole", "b" * 100)
    seen = checkup(tmp_path / "store", Here())
    assert told(seen)["rename"] == ("bad", "a reader of a file that is rewritten saw 100 of 4000 bytes")
    assert not seen.fine
    assert seen.ways["link"] == seen.ways["mkdir"] != ""


def test_a_rewrite_with_a_gap_is_fatal_to_link_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once(monkeypatch, "whole", FileNotFoundError(errno.ENOENT, "No such file or directory"))
    seen = checkup(tmp_path / "store", Here())
    assert told(seen)["rename"] == ("note", "a reader of a file that is rewritten was told: No such file or directory")
    assert "a second machine could win the name in it" in seen.ways["link"]
    assert seen.ways["mkdir"] == ""
    assert not seen.fine


def test_a_clock_that_is_not_this_machines_is_noted(tmp_path: Path) -> None:
    seen = checkup(tmp_path / "store", Skewed(3600.0))
    assert seen.fine
    how, said = told(seen)["clock"]
    assert how == "note"
    assert "another clock's than this machine's" in said
    assert "behind it" in said
    assert seen.stamps.ahead_s == pytest.approx(-3600.0, abs=1.0)


@pytest.mark.parametrize(("free", "how"), [(0, "bad"), (1, "note"), (1 << 20, "ok")])
def test_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, how: str) -> None:
    class Room:
        f_bavail, f_frsize, f_files, f_favail = free * 1024, 4096, 1 << 30, free

    monkeypatch.setattr(os, "statvfs", lambda path: Room)
    findings = {finding.what: finding.how for finding in _local._room(tmp_path)}
    assert findings == {"space": how, "inodes": how}


def test_no_folder_and_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*is the share mounted"):
        checkup(tmp_path / "missing" / "store", Here())
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file, not a folder"):
        checkup(tmp_path / "file", Here())


def test_a_folder_one_may_not_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(self: Path, *args: Any, **more: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(StoreError, match=r"cannot write to .*Read-only file system.*remount it writable"):
        checkup(tmp_path / "store", Here())
