"""What the verbs of sweeps share: the sweep as they open it, and how they say how far they are."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

from dibs.store import Store
from dibs.sweep import Plan, newest_plan

from ._opening import open_store
from ._options import needed, needed_sweep
from ._text import out, safe

__all__ = ["files_step", "open_plan", "place_of", "steer_plan"]


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


def place_of(store: str, sweep: str) -> str:
    """The options by which a command that is shown finds the sweep from anywhere."""
    return safe(f"--store {shlex.quote(store)} --name {shlex.quote(sweep)}")


def files_step(what: str) -> Callable[[int, int], None]:
    """Progress on stderr, where somebody looks at it."""

    def step(count: int, of: int) -> None:
        if sys.stderr.isatty() and (count == of or count % 20 == 0):
            out(f"{what} {count} of {of} files", err=True)

    return step
