"""A process whose stores in folders are in a bucket: ``move_stores()`` comes before anything else (``sitecustomize``)."""

from __future__ import annotations

import hashlib
import os
from typing import Any

__all__ = ["ENDPOINT", "SITE", "move_stores"]

ENDPOINT = "DIBS_TESTS_ENDPOINT"
SITE = f"""
import os
if {ENDPOINT!r} in os.environ:
    from tests.services.buckets.moved_stores import move_stores
    move_stores()
"""


def move_stores() -> None:
    """From now on a store in a folder that pytest made is one in the bucket, under a prefix that its path tells."""
    from dibs.store import Store

    made = Store.__init__

    def moved(self: Store, url: Any, *args: Any, **more: Any) -> None:
        path = os.path.abspath(url) if isinstance(url, str | os.PathLike) and "://" not in str(url) else ""  # noqa: PTH100
        if "/pytest-of-" in path:
            prefix = hashlib.sha256(path.encode()).hexdigest()[:16]
            url = f"s3://studies/{prefix}?endpoint={os.environ[ENDPOINT]}"
        made(self, url, *args, **more)

    Store.__init__ = moved  # type: ignore[method-assign]
