"""``dibs federation verify``: averages computed once more, and compared bit for bit."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import click

from dibs.federation import verify
from dibs.view import run_status

from ._opening import open_store
from ._options import Whole, as_json, command, store_option, verbose
from ._text import json_text, out, safe

__all__ = ["verb"]


@command("verify")
@store_option
@click.option("--run", metavar="NAME", help="The run's name.  [default: the only one there is]")
@click.option(
    "--round", "rounds", type=Whole(min=0), multiple=True, metavar="K", help="Only this round; may be said again."
)
@as_json
@verbose
def verb(store: str | None, run: str | None, rounds: tuple[int, ...], as_json: bool) -> int:
    """Compute averages once more, and compare bit for bit.

    The updates of each round are fetched, checked and averaged as whoever averaged them did. The file must be the one
    that was published, and who was rejected must be the same. It needs room for a round's updates under DIBS_WORK, or in the
    machine's temporary folder, and writes nothing to the store.

    \b
    Example:
      dibs federation verify --store /mnt/shared/studies --run spam
      dibs federation verify --store /mnt/shared/studies --run spam --round 7

    Exit codes: 0 all the same; 1 something differs; 2 usage, or no such run; 3 store unusable.
    """
    opened = open_store(store)
    name = run if run is not None else run_status(opened).run
    told = []
    for each in verify(opened, name, list(dict.fromkeys(rounds)) or None):
        told.append(each)
        if not as_json and each.state == "differs":
            out(f"round {each.round} DIFFERS: {safe(each.why)}")
    counts = Counter(each.state for each in told)
    if as_json:
        out(json_text({"store": opened.url, "run": name, "rounds": [asdict(each) for each in told]}))
    else:
        out(f"run {safe(name)}: " + ", ".join(f"{count} {state}" for state, count in counts.items()))
    return 1 if counts["differs"] else 0
