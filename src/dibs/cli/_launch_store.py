"""The store of a launch: which one, and that it is there before anybody works in it."""

from __future__ import annotations

import logging
from pathlib import Path

from dibs.errors import StoreError
from dibs.launch import Profile
from dibs.store import Store, is_bucket, local_path

from ._options import needed
from ._text import safe

__all__ = ["open_beforehand", "store_of"]

log = logging.getLogger("dibs")


def store_of(said: str | None, job: Path) -> str:
    """The store's URL as a worker elsewhere can be given it: a folder is made absolute. Raises UsageError."""
    url = needed(said, "store", "FOLDER", more=f'or store = "FOLDER" in {job}')
    return url if is_bucket(url) else str(local_path(url))


def open_beforehand(url: str, profile: Profile, *, create: bool) -> None:
    """Open the store, or create it, so that no worker has to; says which. Raises StoreError if that fails.

    Where the workers do not have this machine's folders, a folder is theirs to find; a bucket that cannot be reached from
    here may be reached from there.
    """
    if not is_bucket(url) and not profile.shares:
        log.info("the store %s is not looked at: %s has folders of its own", safe(url), safe(profile.name))
        return
    try:
        _open(url, create=create)
    except StoreError as wrong:
        if profile.shares:
            raise
        log.warning("the store cannot be opened from here, and may be from %s: %s", safe(profile.name), safe(wrong))


def _open(url: str, *, create: bool) -> None:
    try:
        Store(url, create=False, unchecked=True)
    except StoreError:
        Store(url, create=create or None)  # says that it was created, or what is wrong
    else:
        log.info("the store %s is there", safe(url))
