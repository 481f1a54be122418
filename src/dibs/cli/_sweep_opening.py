"""What the verbs of sweeps share: the sweep as they open it, and how they say how far they are."""

from __future__ import annotations

import sys
from collections.abc import Callable

from dibs.store import Store
from dibs.sweep import Plan, newest_plan

from ._opening import open_store
from ._options import needed, needed_sweep
from ._text import out

__all__ = ["files_step", "open_plan", "steer_plan"]


def open_plan(store: str | None, sweep: str | None) -> tuple[Store, Plan]:
    """The sweep for reading, at its newest plan. Raises NotFound, UsageError, StoreError."""
    name = needed_sweep(sweep)
    opened = open_store(store)
    return opened, newest_plan(opened, name)


def steer_plan(store: str | None, sweep: str | None) -> tuple[Store, Plan]:
    """The sweep for changing it."""
    name = needed_sweep(sweep)
    opened = Store(needed(store, "store", "FOLDER"), create=False)
    return opened, newest_plan(opened, name)


def files_step(what: str) -> Callable[[int, int], None]:
    """Progress on stderr, where somebody looks at it."""

    def step(count: int, of: int) -> None:
        if sys.stderr.isatty() and (count == of or count % 20 == 0):
            out(f"{what} {count} of {of} files", err=True)

    return step
