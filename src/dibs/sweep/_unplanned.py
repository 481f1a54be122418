"""What the queue files say by now and no version of the plan: lines that nobody would miss, since no cell is theirs yet.

Seen on the host that planned, where the files are; a file that is gone says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from dibs.errors import RefusedError, UsageError
from dibs.store import Store

from ._change import compare
from ._configs import source_path
from ._findings import Finding, finding
from ._models import Plan
from ._queue import is_comment, lines_of
from ._rosterfile import text_at

__all__ = ["unplanned"]

_KIND = "not planned"


def unplanned(store: Store, plan: Plan) -> Iterator[Finding]:
    """One finding for each file that asks for more, or for something else, than the plan."""
    if plan.where != str(store.machine.who("")["host"]):
        return
    for source, old in plan.sources.items():
        path = source_path(plan.task.here, source)
        if not path.is_file():
            continue
        try:
            new = lines_of(text_at(source, path))
            change = compare(source, old, new)
        except RefusedError:
            yield finding(_KIND, None, source, "its earlier lines are others than were planned")
            continue
        except UsageError as wrong:
            yield finding(_KIND, None, source, str(wrong))
            continue
        more = [n for n in change.appended if new[n - 1].strip() and not is_comment(new[n - 1])]
        for lines, what in ((more, "appended"), (change.restored, "uncommented")):
            if lines:
                numbers = f"line {lines[0]}" + (f" and {len(lines) - 1} more" if len(lines) > 1 else "")
                yield finding(
                    _KIND,
                    None,
                    source,
                    f"{numbers} {'was' if len(lines) == 1 else 'were'} {what}, and no plan has it yet",
                )
