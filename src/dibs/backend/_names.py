"""Which keys and prefixes a backend takes; pure text.

A key that could leave the store (``..``, a leading ``/``), or that a listing would not show again,
is a mistake of the caller and never reaches a file system or a bucket.
"""

from __future__ import annotations

import re

from dibs.errors import UsageError

__all__ = ["TEMPS", "check_key", "check_prefix", "legal_segment"]

TEMPS = "tmp/"  # the one folder no key may lie in

_SEGMENT = r"[a-z0-9_%-][a-z0-9._%-]*"
_KEY = re.compile(rf"(?!tmp/){_SEGMENT}(?:/{_SEGMENT})*", re.ASCII).fullmatch
_PREFIX = re.compile(rf"(?:{_SEGMENT}/)*", re.ASCII).fullmatch

legal_segment = re.compile(_SEGMENT, re.ASCII).fullmatch


def check_key(key: str) -> None:
    """UsageError unless ``key`` may be written: ``/``-separated segments of ``[a-z0-9._%-]``, none with a leading dot."""
    if not _KEY(key):
        raise UsageError(
            f"{key!r} is not a key: use '/'-separated segments of [a-z0-9._%-] outside {TEMPS}, none of "
            "them empty or with a leading dot (escape the rest as %hh)"
        )


def check_prefix(prefix: str) -> None:
    """UsageError unless ``prefix`` is empty or whole segments with a closing ``/``."""
    if not _PREFIX(prefix):
        raise UsageError(f"{prefix!r} is not a prefix: give whole segments of [a-z0-9._%-] and a closing '/'")
