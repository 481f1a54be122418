"""``dibs federation status``: the rounds of a run at a glance."""

from __future__ import annotations

import click

from dibs.view import RoundStatus, run_status

from ._opening import open_store
from ._options import as_json, command, store_option, verbose
from ._text import json_text, out, safe, table

__all__ = ["verb"]

_SHOWN = 20  # rounds, the newest ones


@command("status")
@store_option
@click.option("--run", metavar="NAME", help="The run's name.  [default: the only one there is]")
@as_json
@verbose
def verb(store: str | None, run: str | None, as_json: bool) -> int:
    """Show the rounds of a run: who is in, missing, late, rejected.

    The newest 20 rounds are shown, all with --json. It takes no lock and writes nothing.

    \b
    Example:
      dibs federation status --store /mnt/shared/studies
      dibs federation status --store /mnt/shared/studies --run spam --json

    Exit codes: 0; 2 usage, or no such run; 3 store unusable.
    """
    told = run_status(open_store(store), run)
    if as_json:
        out(json_text(told.to_json()))
        return 0
    out(f"run {safe(told.run)} in {safe(told.store)}: {len(told.rounds)} round{'s' * (len(told.rounds) != 1)}")
    header = ("round", "state", "answered", "in", "missing", "late", "rejected", "averaged by")
    table(header, [_row(each) for each in told.rounds[-_SHOWN:]], right=(0, 2, 3), indent=2)
    if len(told.rounds) > _SHOWN:
        out(f"  and {len(told.rounds) - _SHOWN} before these: --json")
    for each in told.rounds[-_SHOWN:]:
        for client, why in each.rejected.items():
            out(f"  round {each.round}: {safe(client)} rejected: {safe(why)}")
        if each.reason:
            out(f"  round {each.round}: stopped: {safe(each.reason)}")
        for problem in each.problems:
            out(f"  round {each.round}: {safe(problem)}")
    return 0


def _row(each: RoundStatus) -> tuple[str | int, ...]:
    by = safe(each.by, 30) + (f" (attempt {each.attempt})" if each.attempt else "")
    return (
        each.round, each.state if each.kept else f"{each.state}, put away", f"{len(each.answered)}/{len(each.clients)}",
        len(each.weights) if each.state in ("done", "stopped") else "", _names(each.missing), _names(each.late),
        _names(tuple(each.rejected)), by,
    )  # fmt: skip


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(safe(name, 30) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
