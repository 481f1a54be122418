"""An output folder has one owner: its real path is a name in the store, claimed before anything writes there.

Folders within one another are one place, too: two programs that share a prefix would read each other's checkpoints.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from dibs.errors import UsageError
from dibs.store import Store

__all__ = ["claim_folder", "folder_owner"]

_OWNER, _REFUSED = "owner", "refused"


def claim_folder(store: Store, path: Path, owner: str) -> None:
    """Give the folder, by its real path, to ``owner``; of all owners on all machines at most one ever has it.

    The same owner may ask again. Raises UsageError naming both owners if it, a folder above it or one within it is
    somebody else's, and whatever the store may raise.
    """
    real = os.path.realpath(path)
    ours = store.claim(_name(real), None, {_OWNER: owner})
    taken = None if ours else _owner(store, real, owner)
    others = [real] if taken else [*map(str, Path(real).parents), *_below(store, real)]
    for other in others:
        theirs = taken or _owner(store, other, owner, around=True)
        if theirs is None:
            continue
        if ours:  # who was refused has nothing there that could stand in the way of others
            store.bind(_name(real), None, {_OWNER: owner, _REFUSED: True})
        where = "" if other == real else f", which is {'within' if len(real) > len(other) else 'around'} {other}"
        raise UsageError(
            f"{owner} would write to {real}{where}, and that belongs to {theirs}: make output folders differ, such as "
            f"with {{name}} in them"
        )


def folder_owner(store: Store, path: Path) -> str | None:
    """Whose the folder is, None if nobody's, or if whoever asked for it was refused."""
    found = store.resolve(_name(os.path.realpath(path)))
    return None if found is None or found.meta.get(_REFUSED) else str(found.meta.get(_OWNER))


def _owner(store: Store, path: str, asking: str, *, around: bool = False) -> str | None:
    """Who else has that folder. A claim that was refused holds that one name, and nothing around it."""
    found = store.resolve(_name(path))
    if found is None or found.meta.get(_OWNER) == asking or (around and found.meta.get(_REFUSED)):
        return None
    return str(found.meta.get(_OWNER))


def _below(store: Store, real: str) -> Iterator[str]:
    prefix = _name(real.rstrip("/") + "/")
    for found in store.scan(prefix):
        yield found.name.removeprefix("out")


def _name(real: str) -> str:
    return f"out{real}"
