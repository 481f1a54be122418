"""``dibs resume``: a stopped study goes on."""

from __future__ import annotations

from ._opening import open_study
from ._options import command, me_option, store_option, study_option, verbose
from ._text import out, safe

__all__ = ["verb"]


@command("resume")
@store_option
@study_option
@me_option
@verbose
def verb(store: str | None, study: str | None, me: str | None) -> int:
    """Let a stopped study go on.

    It starts no worker: that is what `dibs run` does. A search that was merely interrupted needs no resume, only the
    same `dibs run` again.

    \b
    Example:
      dibs resume --store /mnt/shared/studies --study spam

    Exit codes: 0; 2 usage, or no such study; 3 store unusable.
    """
    opened = open_study(store, study, me)
    new = opened.resume()
    out(f"study {safe(opened.name)} {'goes on: start workers with `dibs run`' if new else 'was not stopped'}")
    return 0
