"""A copy hands out nothing: ``copy_of.json`` beside its marker bars claims until ``adopted.json`` is claimed, too.

Two stores with the same trials must not both be worked on. Both files are claims, so that what a store is can be
said once and is the same for everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dibs.backend import Backend
from dibs.errors import RecordError, RefusedError, StoreError
from dibs.record import decode

from ._keys import ADOPTED, COPY_OF
from ._settle import Settler

__all__ = ["Bar", "adopt", "mark_copy", "source_of"]


class Bar:
    """Called before every claim in a copy: refuses until somebody has adopted it."""

    def __init__(self, backend: Backend, url: str, source: str) -> None:
        self.backend, self.url, self.source = backend, url, source
        self._lifted = False

    def __call__(self) -> None:
        if self._lifted or self.backend.version(ADOPTED) is not None:
            self._lifted = True
            return
        import shlex  # to refuse, and for nothing else

        raise RefusedError(
            f"{self.url} is a copy of {self.source} and hands out nothing: work on the original, or, when that is given up, "
            f"say `dibs copy --adopt {shlex.quote(self.url)}`",
            field="copy_of",
            theirs=self.source,
        )


def source_of(backend: Backend) -> str | None:
    """What the store is a copy of; None if it is no copy, or adopted. Raises StoreError."""
    try:
        there = backend.read(COPY_OF)
        if there is None or backend.version(ADOPTED) is not None:
            return None
        return str(decode(there.data, COPY_OF).get("source") or "another store")
    except RecordError:
        return "another store"


def mark_copy(settler: Settler, head: Mapping[str, Any], source: str) -> str:
    """Say that the store is a copy of ``source``, once; returns what it is a copy of. Raises StoreError, UnsureError."""
    held = settler.claim(COPY_OF, {**head, "source": source}, durable=True)
    if held is not None:
        return source
    there = settler.backend.read(COPY_OF)
    if there is None:
        raise StoreError(f"{COPY_OF} went away while it was read", key=COPY_OF)
    return str(decode(there.data, COPY_OF).get("source"))


def adopt(settler: Settler, head: Mapping[str, Any]) -> bool:
    """Make the copy a store of its own, for good; False if it was already. Raises StoreError, UnsureError."""
    return settler.claim(ADOPTED, dict(head), durable=True) is not None
