"""``dibs stop``: no new trials on any machine."""

from __future__ import annotations

from ._opening import open_study
from ._options import command, me_option, store_option, study_option, verbose
from ._text import out, safe, study_at

__all__ = ["verb"]


@command("stop")
@store_option
@study_option
@me_option
@verbose
def verb(store: str | None, study: str | None, me: str | None) -> int:
    """Stop new trials on all machines.

    Running trials finish; workers look before each claim and then end with exit code 6. `dibs resume` undoes it.

    \b
    Example:
      dibs stop --store /mnt/shared/studies --study spam

    Exit codes: 0; 2 usage, or no such study; 3 store unusable.
    """
    opened = open_study(store, study, me)
    new = opened.stop()
    said = "is stopped" if new else "was stopped already"
    out(f"study {safe(opened.name)} {said}; to go on: dibs resume {study_at(opened.store.url, opened.name)}")
    return 0
