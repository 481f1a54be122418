"""``dibs copy``: one store onto another, folder or bucket."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from dibs.cell import size_text
from dibs.errors import UsageError
from dibs.store import Store
from dibs.upkeep import Copied, Copier, adopt_copy, open_copy

from ._options import SPAN, as_json, command, verbose
from ._status import plural
from ._text import out, safe, table

__all__ = ["verb"]


@command("copy")
@click.argument("places", nargs=-1, metavar="SRC DST", required=True)
@click.option("--follow", is_flag=True, help="Go on copying what is new, until Ctrl-C.")
@click.option("--every", type=SPAN, default="10s", show_default=True, help="With --follow: how often to look.")
@click.option("--adopt", is_flag=True, help="Make DST a store of its own, for good: it hands out trials then.")
@as_json
@verbose
def verb(places: tuple[str, ...], follow: bool, every: float, adopt: bool, as_json: bool) -> int:
    """Copy a store onto another place, folder or bucket.

    Workers may go on in SRC meanwhile. Blobs are copied before the records that name them and everything is read back;
    a copy that was stopped is begun again with the same words. A closed record is never replaced by an open one, nor
    anybody's by somebody else's: that is reported. The copy can be read like any store but hands out nothing, until
    somebody adopts it (SRC should be given up by then). Running curves and the attempts' work folders stay behind.

    \b
    Example:
      dibs copy /mnt/shared/studies s3://bucket/studies
      dibs copy s3://bucket/studies /mnt/backup/studies --follow
      dibs copy --adopt /mnt/backup/studies

    Exit codes: 0; 1 something was not copied; 2 usage; 3 store unusable; 4 refused, since DST is no copy of SRC.
    """
    if adopt and follow:
        raise UsageError("--follow never ends, and an adopted copy takes nothing more: say --adopt afterwards")
    if len(places) == 1 and adopt:
        _adopt(Store(places[0], create=False), {}, as_json)
        return 0
    if len(places) != 2:
        raise UsageError("say what to copy and where to: dibs copy SRC DST (or dibs copy --adopt DST)")
    source = Store(places[0], create=False, unchecked=True)
    copy = open_copy(source, places[1])
    copier = Copier(source, copy, _progress)
    while True:
        told = copier.run()
        if not follow:
            break
        _say(told, source, copy, as_json, brief=True)
        source.machine.clock.sleep(every)
    if adopt and not told.troubles:
        _adopt(copy, _plain(told, source, copy), as_json)
    else:
        _say(told, source, copy, as_json)
        if adopt:
            out(
                "dibs: it is not adopted, since not all of it could be copied: say `dibs copy --adopt DST` to do so all the same",
                err=True,
            )
    return 1 if told.troubles else 0


def _adopt(copy: Store, before: dict[str, Any], as_json: bool) -> None:
    first = adopt_copy(copy)
    if as_json:
        out(json.dumps({**before, "destination": copy.url, "adopted": True}))
    else:
        out(f"{safe(copy.url)} {'is' if first else 'was'} a store of its own{' now' if first else ' already'}")


def _progress(count: int, size: int) -> None:
    if sys.stderr.isatty():
        out(f"looked at {count} objects, copied {size_text(size)}", err=True)


def _plain(told: Copied, source: Store, copy: Store) -> dict[str, Any]:
    return {
        "source": source.url, "destination": copy.url, "records": told.records, "blobs": told.blobs, "bytes": told.bytes,
        "same": told.same, "kept": told.kept, "skipped": told.skipped, "adopted": False,
        "troubles": [{"key": trouble.key, "what": trouble.what} for trouble in told.troubles],
    }  # fmt: skip


def _say(told: Copied, source: Store, copy: Store, as_json: bool, *, brief: bool = False) -> None:
    if as_json:
        out(json.dumps(_plain(told, source, copy)))
        return
    if brief and not (told.records or told.blobs or told.troubles):
        return
    out(
        f"{plural(told.records, 'record')} and {plural(told.blobs, 'blob')}, {size_text(told.bytes)}, copied to {safe(copy.url)}; "
        f"{told.same} were there"
    )
    if told.troubles:
        table(("key", "what"), [(trouble.key, trouble.what) for trouble in told.troubles])
