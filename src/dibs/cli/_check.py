"""``dibs check``: is a store as it should be?"""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from dibs.cell import size_text
from dibs.upkeep import Report, check

from ._opening import open_store
from ._options import as_json, command, store_option, verbose
from ._text import json_text, out, safe, table

__all__ = ["counting", "verb"]

_EVERY = 5000  # objects between two lines of progress


@command("check")
@store_option
@click.option("--deep", is_flag=True, help="Read and hash every blob, too.")
@as_json
@verbose
def verb(store: str | None, deep: bool, as_json: bool) -> int:
    """Look for damage in a store, and say what to do.

    Reads every object: what is torn, foreign, orphaned, contradictory or of a later version is listed with what it
    means and the cure. It takes no lock and changes nothing, and may run while others work (what they write just
    then may show as a temporary).

    \b
    Example:
      dibs check --store /mnt/shared/studies
      dibs check --store /mnt/shared/studies --deep --json

    Exit codes: 0 no fault (leftovers may be there); 1 a promise does not hold; 2 usage; 3 store unusable.
    """
    report = check(open_store(store), deep=deep, step=counting("looked at"))
    if as_json:
        out(json_text(report.to_json()))
    else:
        _say(report)
    return 0 if report.clean else 1


def counting(what: str) -> Callable[[int], None]:
    """Progress on stderr, where somebody looks at it."""

    def step(count: int) -> None:
        if count % _EVERY == 0 and sys.stderr.isatty():
            out(f"{what} {count} objects", err=True)

    return step


def _say(report: Report) -> None:
    out(f"{report.objects} objects, {size_text(report.bytes)} in {safe(report.store)}")
    if not report.findings:
        out("all as it should be")
        return
    table(
        ("kind", "key", "what"),
        [
            (finding.kind if not finding.fault else finding.kind.upper(), finding.key, finding.what)
            for finding in report.findings
        ],
    )
    out()
    for kind, meaning, cure in dict.fromkeys((found.kind, found.meaning, found.cure) for found in report.findings):
        out(f"{kind}: {meaning}; {cure}")
    out()
    out("no fault; what is listed only costs room" if report.clean else "faults are in capitals")
