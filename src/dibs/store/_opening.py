"""Opening a store: which backend a URL means, whether its mount can be trusted, and the marker.

A store is created only where its parent exists, and never by accident: an unmounted share, or one of a
thousand array tasks, must not begin a private search. The marker is created once and never rewritten.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dibs.backend import Backend, FolderBackend, judge, mount_type
from dibs.errors import StoreError, UsageError

from ._keys import MARKER
from ._machine import Machine
from ._marker import create_marker, read_marker
from ._verdicts import METHODS, Weighed, read_verdicts, weigh

__all__ = ["BUCKETS", "in_job_array", "is_bucket", "local_path", "look", "open_folder"]

log = logging.getLogger("dibs")
_ARRAY_VARIABLES = (
    "SLURM_ARRAY_TASK_ID",
    "PBS_ARRAY_INDEX",
    "PBS_ARRAYID",
    "SGE_TASK_ID",
    "LSB_JOBINDEX",
    "JOB_COMPLETION_INDEX",
)
BUCKETS = ("s3", "gs", "az")
_warned: set[str] = set()


def in_job_array(environ: Mapping[str, str]) -> bool:
    """Whether this process is one of many that a scheduler's array started."""
    return any(environ.get(name, "undefined") not in ("", "0", "undefined") for name in _ARRAY_VARIABLES) or (
        "0" in (environ.get(name) for name in ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "JOB_COMPLETION_INDEX"))
    )


def is_bucket(url: object) -> bool:
    """Whether a store's URL is a bucket's; a folder may be called ``s3``."""
    scheme, colon, _ = url.partition("://") if isinstance(url, str) else ("", "", "")
    return bool(colon) and scheme in BUCKETS


def local_path(url: str | os.PathLike[str]) -> Path:
    """The absolute folder a store's URL means. Raises UsageError for what is not a folder's URL."""
    text = os.fspath(url) if isinstance(url, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise UsageError(f"a store is a folder or file:// URL, not {url!r}")
    if "://" in text:
        parts = urlsplit(text)
        if parts.scheme in (*BUCKETS, "http", "https"):
            raise UsageError(f"{text} is no folder; a bucket is s3://BUCKET/PREFIX?endpoint=URL, gs:// or az://")
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise UsageError(f"{text}: a store is a folder, a file:/// URL, or a bucket: s3://, gs://, az://")
        text = unquote(parts.path)
    elif ":/" in text and text.partition(":/")[0] in BUCKETS:  # what a Path makes of a URL, and what is easily mistyped
        raise UsageError(
            f"{text} is no folder: a bucket's URL is a text with two slashes, {text.replace(':/', '://', 1)}"
        )
    return Path(text).expanduser().absolute()


def open_folder(
    root: Path, machine: Machine, *, create: bool | None, unchecked: bool, fsync: str = "result"
) -> tuple[Backend, dict[str, Any]]:
    """The backend behind a folder and the marker's body. Raises StoreError with the remedy if it cannot be one."""
    marker, weighed = look(root)
    if marker is None:
        _may_create(root, create)
    verdict = _trusted(root, weighed, unchecked)
    backend = FolderBackend(root, claim=weighed.claim, fsync=fsync)
    if marker is None:
        backend.prepare()
        marker = create_marker(backend, machine, str(root), verdict)
        if marker.get("claim") != weighed.claim:  # somebody was faster, on a mount of another type
            return open_folder(root, machine, create=create, unchecked=unchecked, fsync=fsync)
    return backend, marker


def look(root: Path) -> tuple[dict[str, Any] | None, Weighed]:
    """The marker's body, if there is one, and what this mount is worth. Raises StoreError for what is no store."""
    try:
        root.exists()
    except OSError as error:  # a name that no file system takes
        raise StoreError(f"{str(root)[:80]}... cannot be a folder: {error.strerror}") from None
    if root.exists() and not root.is_dir():
        raise StoreError(f"{root} is a file, not a folder: give the path of a folder")
    backend = FolderBackend(root)
    marker = read_marker(backend, str(root)) if root.is_dir() else None
    method = (marker or {}).get("claim", "link")
    if method == "put":
        raise StoreError(
            f"{root} holds the files of a store in a bucket, whose claims no folder can go on with: open the bucket, or "
            f"bring it into a folder by `dibs copy s3://... {root}-copy`"
        )
    if method not in METHODS:
        raise StoreError(
            f"{root}/{MARKER} names the claim method {method!r}, which this version does not know: upgrade dibs"
        )
    fstype = mount_type(root if root.exists() else root.parent)
    return marker, weigh(judge(fstype), marker, read_verdicts(backend) if root.is_dir() else [])


def _may_create(root: Path, create: bool | None) -> None:
    if create is False:
        raise StoreError(
            f"there is no store at {root}: check the path and the mount, or create it: dibs run, exec and sweep plan do"
        )
    if create is None and in_job_array(os.environ):
        raise StoreError(
            f"there is no store at {root}, and a task of a job array does not create one (is the share mounted "
            "here?): create it once beforehand, or say --create (create=True)"
        )
    if not root.parent.is_dir():
        raise StoreError(
            f"there is no store at {root} and no folder {root.parent} to create it in: is the share mounted?"
        )


def _trusted(root: Path, weighed: Weighed, unchecked: bool) -> str:
    """The marker's word for the mount; raises StoreError for one that nobody vouches for."""
    if weighed.kind == "refused" and not unchecked:
        raise StoreError(f"{root}: {weighed.sentence}")
    if weighed.kind != "taken" and str(root) not in _warned:
        _warned.add(str(root))
        log.warning("%s: %s", root, weighed.sentence)
    return "unchecked" if weighed.kind == "refused" else weighed.fstype
