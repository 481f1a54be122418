"""``dibs sweep pull DEST``: the durable copies, brought here."""

from __future__ import annotations

import shlex
import sys

import click

from dibs.cell import size_text
from dibs.sweep import Pulled, pull

from ._options import Whole, as_json, command, store_option, sweep_option, verbose
from ._status import plural
from ._sweep_opening import open_plan
from ._text import json_text, out, place_of, safe, table

__all__ = ["verb"]


@command("pull")
@click.argument("dest", type=click.Path(file_okay=True))
@store_option
@sweep_option
@click.option("--jobs", type=Whole(min=1, max=64), default=4, show_default=True, help="Files at the same time.")
@as_json
@verbose
def verb(dest: str, store: str | None, sweep: str | None, jobs: int, as_json: bool) -> int:
    """Bring the durable copies here.

    Artefacts, log and record of every cell that is done go to DEST/<cell>/, each file hashed as it is read and again as it
    was written. What is there already and equal stays, so a pull that was stopped is begun again with the same words.
    DEST/MANIFEST.json, written last, is the exact roster: dibs sweep verify goes by it. What the plan no longer has is moved
    to DEST/.quarantine.

    \b
    Example:
      dibs sweep pull results --store /mnt/shared/studies --name A
      dibs sweep pull results --jobs 16 --store s3://bucket/studies --name A

    Exit codes: 0 every cell is here; 1 something is not; 2 usage; 3 store unusable, or DEST cannot be written; 5 it has no
    cells; 6 all that is missing is being run; 7 a durable copy failed.
    """
    opened, plan = open_plan(store, sweep)
    told = pull(opened, plan, dest, threads=jobs, step=_progress)
    if as_json:
        out(json_text(_plain(told)))
    else:
        _say(told, dest, place_of(opened.url, plan.sweep))
    return told.exit_code


def _progress(count: int, of: int, size: int) -> None:
    if sys.stderr.isatty() and (count == of or count % 10 == 0):
        out(f"pulled {count} of {of} files, {size_text(size)} copied", err=True)


def _plain(told: Pulled) -> dict[str, object]:
    manifest = told.manifest
    return {
        "sweep": manifest.sweep, "plan": manifest.plan, "manifest": told.digest, "cells": [one.name for one in manifest.cells],
        "active": told.active, "files": len(manifest.files), "copied": told.copied, "same": told.same, "bytes": told.bytes,
        "aside": list(told.aside),
        "troubles": [{"cell": one.cell, "file": one.file, "what": one.what} for one in told.troubles],
    }  # fmt: skip


def _say(told: Pulled, dest: str, place: str) -> None:
    out(f"{len(told.manifest.cells)} of {plural(told.active, 'cell')} in {safe(dest)}: {plural(told.copied, 'file')} copied "
        f"({size_text(told.bytes)}), {told.same} were there already")  # fmt: skip
    for path in told.aside:
        out(f"  put aside, since the plan no longer has it: {safe(path)}")
    if told.troubles:
        table(("not here", "file", "why"), [(one.cell, one.file or "", one.what) for one in told.troubles], indent=2)
    out(f"manifest {told.digest[:16]}; next: dibs sweep verify {safe(shlex.quote(dest))} {place}")
