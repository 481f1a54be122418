"""``dibs enqueue``: a wish for a point, once for the whole study."""

from __future__ import annotations

import shlex

import click

from dibs.view import Source, point_text, study_status

from ._opening import open_study
from ._options import command, me_option, store_option, study_option, verbose
from ._text import out, safe

__all__ = ["verb"]


@command("enqueue")
@click.argument("point", nargs=-1, required=True)
@store_option
@study_option
@me_option
@verbose
def verb(point: tuple[str, ...], store: str | None, study: str | None, me: str | None) -> int:
    """Ask for a point to be tried.

    POINT is name=value for each parameter, or one JSON object. Some worker tries it, once for the whole study, before
    it goes on with the sampler's. It needs room: a wish with no trial left below the study's N waits until somebody
    asks for more trials.

    \b
    Example:
      dibs enqueue lr=0.01 opt=adam --store /mnt/shared/studies --study spam
      dibs enqueue '{"lr": 0.01, "opt": "adam"}' --study spam

    Exit codes: 0; 2 usage, no such study, or a point outside its space; 3 store unusable.
    """
    opened = open_study(store, study, me)
    text = point[0] if len(point) == 1 and point[0].lstrip().startswith("{") else shlex.join(point)
    wish = opened.space.read(text)
    new = opened.enqueue(wish)
    out(f"{'queued' if new else 'was wished for before'}: {safe(point_text(wish))}")
    status = study_status(Source.over(opened))
    if wish in status.queued and not status.counts["unclaimed"]:
        out(f"no trial below {status.of} is free: it waits for a larger --trials", err=True)
    return 0
