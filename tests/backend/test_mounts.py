"""File system types: the judgement of each, the two parsers, and what this machine really says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dibs.backend import Judgement, judge, mount_type
from dibs.backend._mounts import type_in_mount_output, type_in_mountinfo

TAKEN = ["ext4", "ext3", "ext2", "xfs", "btrfs", "f2fs", "tmpfs", "nfs", "nfs4", "apfs", "hfs", "ntfs", "ntfs3"]
WARNED = ["overlay", "zfs", "lustre", "gpfs", "beegfs", "cifs", "smb3", "smbfs"]
REFUSED = [
    "fuse.sshfs",
    "fuse.s3fs",
    "fuse.rclone",
    "fuse.weed",
    "fuse.juicefs",
    "fuseblk",
    "fuse",
    "exfat",
    "9p",
    "unknown",
    "",
]


@pytest.mark.parametrize(
    ("fstype", "kind"),
    [
        *((name, "taken") for name in TAKEN),
        *((name, "warned") for name in WARNED),
        *((name, "refused") for name in REFUSED),
    ],
)
def test_each_type_is_judged(fstype: str, kind: str) -> None:
    judgement = judge(fstype)
    assert (judgement.kind, judgement.fstype) == (kind, fstype)
    assert judge(fstype.upper()).kind == kind


@pytest.mark.parametrize("fstype", REFUSED)
def test_a_refusal_names_the_type_and_the_remedy(fstype: str) -> None:
    sentence = judge(fstype).sentence
    assert sentence.startswith(fstype or "a nameless file system")
    assert "dibs doctor" in sentence
    assert "unchecked=True" in sentence


@pytest.mark.parametrize("fstype", ["overlay", "cifs", "lustre"])
def test_a_warning_says_what_to_do(fstype: str) -> None:
    assert judge(fstype).sentence.startswith(fstype)
    assert any(word in judge(fstype).sentence for word in ("run `dibs doctor`", "put the store"))


def test_a_judgement_is_a_value() -> None:
    assert judge("ext4") == Judgement("taken", "ext4", judge("ext4").sentence)


MOUNTINFO = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
30 22 0:40 / /mnt rw shared:2 master:3 - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /mnt/s3 rw - fuse.s3fs s3fs rw
32 22 0:42 / /mnt/with\\040blank\\134and\\011tab rw - fuse.sshfs host:/ rw
33 22 0:43 / /over rw - ext4 /dev/sdb1 rw
34 33 0:44 / /over rw - overlay overlay rw
garbage
35 22 0:45 /
"""


@pytest.mark.parametrize(
    ("path", "fstype"),
    [
        ("/", "ext4"),
        ("/home/me", "ext4"),
        ("/mnt", "nfs4"),
        ("/mnt/studies", "nfs4"),
        ("/mnt/s3", "fuse.s3fs"),
        ("/mnt/s3/studies/x", "fuse.s3fs"),
        ("/mnt/s3-not", "nfs4"),
        ("/mnt/with blank\\and\ttab/x", "fuse.sshfs"),
        ("/over/x", "overlay"),
        ("/proc/self", "proc"),
    ],
)
def test_the_innermost_and_last_mount_decides(path: str, fstype: str) -> None:
    assert type_in_mountinfo(MOUNTINFO, path) == fstype


def test_no_table_means_unknown() -> None:
    assert type_in_mountinfo("", "/x") == "unknown"
    assert type_in_mount_output("", "/x") == "unknown"


def test_the_output_of_mount_on_a_mac() -> None:
    text = "/dev/disk1s1 on / (apfs, sealed, local)\n//me@nas/x on /Volumes/my disk (smbfs, nodev)\n"
    assert type_in_mount_output(text, "/Users/me") == "apfs"
    assert type_in_mount_output(text, "/Volumes/my disk/studies") == "smbfs"


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="only Linux has /proc/self/mountinfo")
def test_real_paths(tmp_path: Path) -> None:
    here = mount_type(tmp_path)
    assert here != "unknown"
    assert mount_type(tmp_path / "not" / "yet") == here
    assert mount_type("/proc/self") == "proc"
    link = tmp_path / "link"
    link.symlink_to("/proc")
    assert mount_type(link / "self") == "proc", "where a link leads is what counts"
    assert mount_type(os.fspath(tmp_path)) == here
