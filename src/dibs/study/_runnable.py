"""What a run needs of what it runs: a study, or the cells of a sweep. The loop, the pool and progress know no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dibs.search import Goals
from dibs.space import Space
from dibs.store import Store

from ._attempt import Attempt
from ._claimer import Claimer
from ._events import Counted
from ._pruning import Pruning
from ._slots import Rack
from ._view import View

__all__ = ["Cap", "Runnable"]


class Cap(NamedTuple):
    """Slots of which a worker holds one while it runs trials; ``what`` they are slots of, for people."""

    rack: Rack
    what: str
    names: bool = False  # say who holds them


class Runnable(Protocol):
    """``goal``: None where a trial need not end with a score. ``stale_s``: seconds after which a running one is quiet.

    Picklable, together with what it runs: every worker process gets a copy.
    """

    store: Store
    me: str | None

    @property
    def goal(self) -> Goals | None: ...
    @property
    def space(self) -> Space: ...
    @property
    def stale_s(self) -> float: ...
    @property
    def view(self) -> View: ...
    def claimer(self, n: int, rescue_after_s: float | None = None) -> Claimer:
        """One worker's way through it, to at most ``n`` trials."""
        ...

    def pruning(self, attempt: Attempt) -> Pruning | None: ...
    def counted(self, total: int) -> Counted:
        """It as it was last seen here. ``total``: how many trials there will be, as far as the caller knows."""
        ...

    def caps(self, max_running: int | None) -> Sequence[Cap]:
        """The caps a worker minds, the one to be taken last first. ``max_running``: at once, of all who say so."""
        ...
