"""``dibs sweep verify DEST``: every file that was pulled, loaded."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from dibs.cell import size_text
from dibs.sweep import Rules, Verified, verify
from dibs.sweep._kinds import loader_of

from ._options import SIZE, SPAN, Whole, as_json, command, me_option, store_option, sweep_option, verbose
from ._status import plural
from ._sweep_opening import steer_plan
from ._text import json_text, out, place_of, safe, table

__all__ = ["verb"]


@command("verify")
@click.argument("dest", type=click.Path(path_type=Path))
@store_option
@sweep_option
@click.option("--expect", type=Whole(min=1), metavar="N", help="How many cells there have to be.")
@click.option(
    "--loader", "loaders", multiple=True, metavar="PATTERN=MODULE:FUNCTION", help="How to load files of that name."
)
@click.option("--allow-pickle", is_flag=True, help="Load pickles, which runs the code in them.")
@click.option("--allow-unloaded", multiple=True, metavar="PATTERN", help="Files that need not be loaded.")
@click.option("--allow-not-finite", multiple=True, metavar="PATTERN", help="Files in which NaN and infinities may be.")
@click.option("--timeout", type=SPAN, default="5m", show_default=True, help="How long loading one file may take.")
@click.option("--memory", type=SIZE, help="What loading one may take.  [default: 2 GiB and 8 times its size]")
@click.option("--jobs", type=Whole(min=1, max=64), default=2, show_default=True, help="Files at the same time.")
@me_option
@as_json
@verbose
def verb(
    dest: Path, store: str | None, sweep: str | None, expect: int | None, loaders: tuple[str, ...], allow_pickle: bool,
    allow_unloaded: tuple[str, ...], allow_not_finite: tuple[str, ...], timeout: float, memory: int | None, jobs: int,
    me: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Load every file that was pulled.

    DEST against its manifest (missing, unexpected, size, hash), the manifest against the plan, and then every file is
    loaded in a process that may take so much time and memory and no more: PyTorch (.pt .pth .ckpt, weights only),
    safetensors, npz and npy, JSON, JSON lines, CSV, TSV, Parquet, TOML, text; tensors and metrics must be finite. What nobody
    knows how to load is refused. If all of it holds, that is written to DEST/VERIFIED.json and to the store.

    \b
    Example:
      dibs sweep verify results --store /mnt/shared/studies --name ablation
      dibs sweep verify results --expect 12 --loader '*.bin=mine:load'

    Exit codes: 0 all holds; 1 something does not; 2 usage, or no manifest; 3 store unusable; 5 there is nothing to verify.
    """
    rules = Rules(tuple(map(loader_of, loaders)), allow_pickle, allow_unloaded, allow_not_finite, timeout, memory, jobs)
    opened, plan = steer_plan(store, sweep)
    told = verify(opened, plan, dest, rules, expect=expect, me=me, step=_progress)
    if as_json:
        out(json_text(_plain(told)))
    else:
        _say(told, dest, place_of(opened.url, plan.sweep))
    return told.exit_code


def _progress(what: str, count: int, of: int) -> None:
    if sys.stderr.isatty() and (count == of or count % 10 == 0):
        out(f"{what} {count} of {of} files", err=True)


def _plain(told: Verified) -> dict[str, Any]:
    return {
        "passed": told.passed, "manifest": told.manifest, "plan": told.plan, "cells": told.cells, "files": told.files,
        "bytes": told.bytes, "loaded": told.loaded, "unloaded": list(told.unloaded),
        "faults": [fault.to_json() for fault in told.faults],
    }  # fmt: skip


def _say(told: Verified, dest: Path, place: str) -> None:
    kinds = ", ".join(f"{count} {safe(kind)}" for kind, count in sorted(told.loaded.items())) or "none"
    out(f"{plural(told.cells, 'cell')}, {plural(told.files, 'file')}, {size_text(told.bytes)}; loaded: {kinds}")
    if told.unloaded:
        out(f"  let pass without being loaded: {safe(', '.join(told.unloaded), 300)}")
    if told.faults:
        rows = [(fault.kind, fault.path or "", fault.what, fault.cure) for fault in told.faults]
        table(("what", "of", "seen", "cure"), rows, indent=2)
    if told.passed:
        release = f"dibs sweep release --approve NAME --verified {safe(shlex.quote(str(dest)))} {place}"
        out(f"verified, manifest {told.manifest[:16]}; next: {release}")
    elif told.cells == 0:
        out("there is no cell in it: 0 of 0 proves nothing")
