"""What kind of file system a path lies on, and whether its claims can be trusted; the judgement is pure.

A mount can pass every check that one machine can make and still let two machines win one name (a FUSE mount
of an object store does), so the type decides what is taken unseen and what needs ``dibs doctor`` first.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Judgement", "judge", "mount_type"]


@dataclass(frozen=True)
class Judgement:
    """``taken``: use it. ``warned``: use it and show the sentence. ``refused``: only after the remedy in the sentence."""

    kind: Literal["taken", "warned", "refused"]
    fstype: str
    sentence: str


# link(2) is exclusive on all of these, over all machines where there are several
_TAKEN = frozenset(
    [
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs"),
        *("nfs", "nfs3", "nfs4", "apfs", "hfs", "hfsplus", "ntfs", "ntfs3"),
    ]
)
_WARNED = {
    "overlay": "a container's own layer is seen by nobody else and goes with the container: put the store on a mounted volume",
    "zfs": "it has not been measured: run `dibs doctor` on it once",
    "lustre": "its clients stamp files with their own clocks: keep them in step (NTP) and run `dibs doctor` on two machines once",
    "gpfs": "it has not been measured: run `dibs doctor` on two machines once",
    "beegfs": "hard links may be off, and then only the claim method mkdir works: run `dibs doctor` on two machines once",
    "cifs": "hard links and caching depend on the server: mount with cache=none or actimeo=0 and run `dibs doctor` on two machines once",
}
_ALIASES = {
    "smb": "cifs",
    "smb2": "cifs",
    "smb3": "cifs",
    "smbfs": "cifs",
    "gpfs2": "gpfs",
    "mmfs": "gpfs",
    "beegfs_nodev": "beegfs",
}
_REASONS = {
    "fuse.sshfs": "it shows other machines' names up to 20 s late",
    "fuse.seaweedfs": "it lets several machines win one link, and keeps only the claim method mkdir exclusive",
    "fuse.s3fs": "it keeps no name exclusive: several machines win the same one. Give the bucket itself as the store",
    "fuse.rclone": "it keeps no name exclusive: several machines win the same one. Give the bucket itself as the store",
    "vfat": "it has no hard links, so only the claim method mkdir can work",
    "exfat": "it has no hard links, so only the claim method mkdir can work",
    "msdos": "it has no hard links, so only the claim method mkdir can work",
    "unknown": "its type could not be found out",
}
_FUSE = "a FUSE mount keeps names exclusive or not as its author chose, and two machines may both win one"
_REMEDY = "Run `dibs doctor STORE --join NAME --machines 2` on two machines at once, or pass unchecked=True (`--unchecked`) if you know that it is exclusive"


def judge(fstype: str) -> Judgement:
    """Whether a store may lie on a file system of this type, with the sentence to show. Pure."""
    name = fstype.lower()
    known = _ALIASES.get(name, name)
    if known in _TAKEN:
        return Judgement("taken", fstype, f"{fstype} keeps claims exclusive")
    if known in _WARNED:
        return Judgement("warned", fstype, f"{fstype} is taken with a warning: {_WARNED[known]}")
    reason = _REASONS.get(name) or (
        _FUSE if name.startswith("fuse") else "it is not known whether it keeps names exclusive"
    )
    return Judgement(
        "refused", fstype, f"{fstype or 'a nameless file system'} is not taken unseen: {reason}. {_REMEDY}"
    )


def mount_type(path: Path | str) -> str:
    """The type of the file system ``path`` lies on (or will, once it exists); "unknown" if that cannot be found out."""
    real = os.path.realpath(path)
    try:
        return type_in_mountinfo(Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape"), real)
    except OSError:  # not Linux
        return type_in_mount_output(_mount_output(), real) if os.name == "posix" else "unknown"


def type_in_mountinfo(table: str, real: str) -> str:
    """The type of the mount ``real`` (absolute, without links) lies on, out of proc_pid_mountinfo(5)'s text. Pure."""
    mounts = []
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if len(fields) >= 5 and kind[0]:
            mounts.append((_unescaped(fields[4]), kind[0]))
    return _innermost(mounts, real)


def type_in_mount_output(text: str, real: str) -> str:
    """The same out of mount(8)'s output on macOS and BSD: ``/dev/disk1s1 on /Volumes/x (apfs, local)``. Pure."""
    found = re.findall(r"^.* on (/.*?) \((\w+)[,)]", text, re.MULTILINE)
    return _innermost(found, real)


def _innermost(mounts: list[tuple[str, str]], real: str) -> str:
    """The longest mount point wins, and of equal ones the last: it lies over the others."""
    best, fstype = -1, "unknown"
    for point, kind in mounts:
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, fstype = len(point), kind
    return fstype


def _unescaped(field: str) -> str:
    """The kernel writes blank, tab, newline and backslash as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def _mount_output() -> str:
    import subprocess  # only here: starting Python is not the place to load it

    try:
        return subprocess.run(["mount"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
