"""``dibs retry [N]``: failed trials may be tried again."""

from __future__ import annotations

import click

from dibs.errors import UsageError
from dibs.view import Source, trial_detail

from ._opening import open_study
from ._options import Whole, command, me_option, store_option, study_option, verbose
from ._text import out

__all__ = ["verb"]


@command("retry")
@click.argument("n", type=Whole(min=0), required=False)
@store_option
@study_option
@me_option
@verbose
def verb(n: int | None, store: str | None, study: str | None, me: str | None) -> int:
    """Let failed trials be tried again.

    Trial N, or all that failed for good. It runs nothing: workers take them up first, at the same points.

    \b
    Example:
      dibs retry --store /mnt/shared/studies --study spam
      dibs retry 17 --study spam

    Exit codes: 0; 2 usage, no such study, or a trial that has not failed; 3 store unusable.
    """
    opened = open_study(store, study, me)
    freed = opened.retry(n)
    if n is not None and not freed:
        row = trial_detail(Source.over(opened), n).row
        said = "is to be tried again already" if row.waiting else f"is {row.state}, not failed"
        raise UsageError(f"trial {n} {said}")
    out(f"to be tried again: {', '.join(map(str, freed)) or 'none, no trial has failed for good'}")
    return 0
