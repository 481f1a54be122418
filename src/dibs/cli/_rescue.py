"""``dibs rescue``: free what is quiet."""

from __future__ import annotations

import click

from ._opening import open_study
from ._options import SPAN, command, me_option, store_option, study_option, verbose
from ._text import out

__all__ = ["verb"]


@command("rescue")
@store_option
@study_option
@click.option("--stale", type=SPAN, help="Call quiet what has not moved for so long.  [default: the study's]")
@me_option
@verbose
def verb(store: str | None, study: str | None, stale: float | None, me: str | None) -> int:
    """Free the trials of machines that went away.

    Every running attempt that is quiet or certainly dead is released: any worker may take up the trial. It runs and
    ends nothing. Should the first owner be alive after all, its result counts too; the trial has then run twice.

    \b
    Example:
      dibs rescue --store /mnt/shared/studies --study spam
      dibs rescue --study spam --stale 10m

    Exit codes: 0; 2 usage, or no such study; 3 store unusable.
    """
    freed = open_study(store, study, me).rescue(stale)
    if not freed:
        out("nothing is quiet")
    for n, attempt in freed:
        out(f"released trial {n}, attempt {attempt}")
    return 0
