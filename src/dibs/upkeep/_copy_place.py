"""Which place may become a copy of which store, and when it stops being one.

A copy says in ``copy_of.json`` whose it is, and takes nothing from another store, nor anything once it is adopted.
"""

from __future__ import annotations

from dibs.errors import RefusedError, UsageError
from dibs.record import decode
from dibs.store import ADOPTED, COPY_OF, Settler, Store, adopt, is_bucket, local_path, mark_copy

__all__ = ["adopt_copy", "demand_copy", "open_copy"]


def open_copy(source: Store, url: str) -> Store:
    """The store at ``url``, which is or becomes a copy of ``source``. Raises RefusedError if it is anything else."""
    _demand_apart(source, url)
    copy = Store(url, create=True)
    theirs = source.marker.get("nonce")
    if copy.marker.get("nonce") == theirs:
        raise UsageError(f"{url} is the store it would be copied from")
    there = copy.backend.read(COPY_OF)
    if there is None:
        if found := [name for name in copy.backend.names("") if name not in ("dibs.json", "verdict", "tmp", "probe")]:
            raise RefusedError(f"{url} is a store of its own (it holds {found[0]!r}), not a copy: give another place")
        mark_copy(Settler(copy.backend, copy.machine), {**copy.head("copy_of"), "marker": theirs}, source.url)
        there = copy.backend.read(COPY_OF)
    body = decode(there.data, COPY_OF) if there is not None else {}
    if body.get("marker") != theirs:
        raise RefusedError(f"{url} is a copy of {body.get('source')}, not of {source.url}")
    demand_copy(copy)
    return copy


def adopt_copy(copy: Store) -> bool:
    """Make a copy a store of its own, for good; False if it was already. Raises RefusedError for what is no copy."""
    if copy.backend.version(COPY_OF) is None:
        raise RefusedError(f"{copy.url} is no copy: there is nothing to adopt")
    return adopt(Settler(copy.backend, copy.machine), copy.head("adopted"))


def _demand_apart(source: Store, url: str) -> None:
    """A copy inside what it is copied from would be copied, too. (A bucket's store is nowhere made inside another.)"""
    root = source.backend.root
    if root is None or is_bucket(url):
        return
    ours, theirs = local_path(url).resolve(), root.resolve()
    if ours != theirs and (ours.is_relative_to(theirs) or theirs.is_relative_to(ours)):
        raise UsageError(f"{url} and {source.url} lie inside one another: give the copy a place of its own")


def demand_copy(copy: Store) -> None:
    """RefusedError if the copy has been adopted: nothing is copied into it any more."""
    if copy.backend.version(ADOPTED) is not None:
        raise RefusedError(f"{copy.url} has been adopted: it is a store of its own now, and nothing is copied into it")
