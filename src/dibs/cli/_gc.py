"""``dibs gc``: remove what nothing can need."""

from __future__ import annotations

from typing import Any

import click

from dibs.cell import size_text
from dibs.errors import RefusedError
from dibs.store import Store
from dibs.upkeep import Garbage, collect, find_garbage

from ._check import counting
from ._options import as_json, command, needed, store_option, verbose
from ._text import json_text, out, table

__all__ = ["verb"]


@command("gc")
@store_option
@click.option("--yes", is_flag=True, help="Remove it. Without this, it is only listed.")
@as_json
@verbose
def verb(store: str | None, yes: bool, as_json: bool) -> int:
    """Remove what nothing in a store can need.

    That is: blobs no record names, a day old; live curves of closed attempts and writes that were never finished, an
    hour old, all by the store's own clock. Each is looked at again just before it goes. Records, rolls, notes and
    claims stay for ever. While any record does not read, or is a later version's, nothing is removed at all.

    \b
    Example:
      dibs gc --store /mnt/shared/studies
      dibs gc --store /mnt/shared/studies --yes

    Exit codes: 0; 2 usage; 3 store unusable; 4 refused, since something does not read.
    """
    opened = Store(needed(store, "store", "FOLDER"), create=False)
    garbage = find_garbage(opened, step=counting("looked at"))
    if garbage.refused:
        raise RefusedError(f"nothing is removed: {garbage.refused}")
    removed = collect(opened, garbage.removals) if yes else []
    if as_json:
        out(json_text(_plain(garbage, len(removed), yes)))
        return 0
    if garbage.removals:
        rows = [(r.key, r.why, size_text(r.size), f"{r.age_s / 3600:.1f} h") for r in garbage.removals]
        table(("key", "why", "size", "age"), rows, right=(2, 3))
    count = len(removed) if yes else len(garbage.removals)
    said = "removed" if yes else "would go; say --yes to remove them"
    out(f"{count} objects, {size_text(garbage.bytes)}: {said}" if count else "nothing to remove")
    if garbage.young:
        out(f"{garbage.young} more are too young to tell")
    return 0


def _plain(garbage: Garbage, removed: int, yes: bool) -> dict[str, Any]:
    return {
        "dry_run": not yes, "removed": removed, "young": garbage.young, "bytes": garbage.bytes,
        "objects": [
            {"key": r.key, "why": r.why, "size": r.size, "age_s": round(r.age_s, 1)} for r in garbage.removals
        ],
    }  # fmt: skip
