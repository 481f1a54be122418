"""``dibs sweep status``: how far a sweep is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dibs.view import CellLine, CellRunning, SweepStatus, ago, duration, sweep_status

from ._options import as_json, command, store_option, sweep_option, verbose
from ._status import plural, say_problems
from ._sweep_opening import open_plan
from ._text import json_text, out, place_of, safe, table

__all__ = ["verb"]

_NAMES = {"waiting": "not begun"}
_MOST = 20  # cells that are named by a script's version


@command("status")
@store_option
@sweep_option
@as_json
@verbose
def verb(store: str | None, sweep: str | None, as_json: bool) -> int:
    """Show how far a sweep is.

    Cells by state, who runs what and since when, what stands still, what failed and why, results that could not be copied,
    which cells ran by which version of a script, whether the kernel keeps cells apart, and when it may be finished. It takes
    no lock and writes nothing; quiet means not seen for longer than its patience, not dead.

    \b
    Example:
      dibs sweep status --store /mnt/shared/studies --name ablation
      dibs sweep status --json

    Exit codes: 0; 2 usage, or no such sweep; 3 store unusable.
    """
    status = sweep_status(*open_plan(store, sweep))
    if as_json:
        out(json_text({**status.to_json(), "complete": status.complete}))
    else:
        _say(status)
    return 0


def _say(status: SweepStatus) -> None:
    out(f"sweep {safe(status.sweep)} in {safe(status.store)}")
    done, active = status.counts["done"], status.active
    share = f", {100 * done // active} %" if active else ""
    counts = [
        f"{count} {_NAMES.get(state, state)}" for state, count in status.counts.items() if count and state != "dropped"
    ]
    out(f"  cells     {active}: {', '.join(counts) or 'none'}{share}")
    if status.counts["dropped"]:
        out(f"  dropped   {status.counts['dropped']} more, by a comment in the queue")
    out(f"  plan      version {status.plan}" + (f", read on {safe(status.where)}" if status.where else ""))
    if status.left_s:
        out(f"  left      about {duration(status.left_s)}, if as many run as now")
    for at, script in enumerate(status.scripts):
        now = "" if script.planned else ", not the plan's"
        of = f": {safe(', '.join(script.cells), 80)}" if 0 < script.count <= _MOST and not script.planned else ""
        out(
            f"  {'' if at else 'script':8}  {safe(script.file)} {safe(script.digest, 15)}{now}, {plural(script.count, 'cell')}{of}"
        )
    out(f"  isolated  {safe(status.isolation)}")
    if status.released is not None:
        out(f"  released  approved by {safe(status.released)}")
    elif status.verified:
        out("  verified  a pull of this plan")
    for verb in _next(status):
        out(f"  next      dibs sweep {verb} {place_of(status.store, status.sweep)}")
    _running(status)
    _cells("not copied", status.unsynced)
    _cells("failed", status.failed)
    _cells("interrupted", status.interrupted)
    say_problems(status.problems)
    if status.newest_at:
        out()
        out(f"Last moved {status.newest_at} by the store's clock ({ago(status.still_s)} by this machine's).")


def _next(status: SweepStatus) -> Iterator[str]:
    """The verbs that are left, with what they need besides the place."""
    if status.released is not None:
        return
    if status.verified:
        yield "release --approve NAME"
    elif status.complete:
        yield "reconcile"
    if status.failed or status.unsynced:
        yield "retry"
    if not any(run.although is None for run in status.running) and (
        status.counts["waiting"] or status.counts["interrupted"]
    ):
        yield "run"


def _running(status: SweepStatus) -> None:
    if not status.running:
        return
    out()
    rows = [
        (
            run.cell,
            run.attempt,
            run.me,
            run.host,
            run.since or "",
            duration(run.beat_age_s),
            _said(run),
        )
        for run in status.running
    ]
    table(("running", "attempt", "who", "host", "since", "last beat", ""), rows, right=(1, 5), indent=2)
    ours = [run for run in status.running if run.although is None]  # the others nobody takes up
    gone, quiet = sum(run.gone for run in ours), sum(run.quiet and not run.gone for run in ours)
    if gone:
        out(f"  the process of {plural(gone, 'cell')} is gone: dibs sweep run takes up what is lost")
    if quiet:
        out(f"  {plural(quiet, 'cell')} moved last longer ago than its patience: dibs sweep run takes up what is lost")


def _said(run: CellRunning) -> str:
    still = "process gone" if run.gone else "quiet" if run.quiet else ""
    although = f"its cell is {run.although}" if run.although is not None else ""
    return ", ".join(part for part in (still, although) if part)


def _cells(title: str, lines: Sequence[CellLine]) -> None:
    if not lines:
        return
    out()
    rows = [(line.cell, line.attempt, line.cause or "", line.reason or "", line.me, line.host) for line in lines]
    table((title, "attempt", "cause", "why", "who", "host"), rows, right=(1,), indent=2)
