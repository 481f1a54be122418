"""``run_sweep``: cells run here until nothing is left to claim, and what the sweep is then."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from dibs.cell import Limits, private_folder
from dibs.errors import StoreError
from dibs.store import Store
from dibs.study._definition import DEFAULT_STALE_S
from dibs.study._events import OnEvent
from dibs.study._run import run
from dibs.study._work import Halt

from ._cells import Cells
from ._halting import HaltRule
from ._place import claim_place
from ._plans import newest_plan
from ._program import CellProgram, rules_of
from ._rereading import reread
from ._runs import CellStanding
from ._scripts import Scripts
from ._selected import Only
from ._standing import standing

__all__ = ["SweepEnd", "run_sweep"]

log = logging.getLogger("dibs")


@dataclass(frozen=True)
class SweepEnd:
    """How a run of a sweep ended. ``cells``: all of them as they stand; ``taken``: the names of those this run would take.

    ``ran`` and ``failed``: attempts of this run. ``why``: "settled", "held" (others run the rest), "time", "halted",
    "stopped", or "empty" (there is no cell).
    """

    sweep: str
    version: int
    cells: tuple[CellStanding, ...]
    taken: frozenset[str]
    ran: int
    failed: int
    why: str

    @property
    def active(self) -> tuple[CellStanding, ...]:
        """The cells that are to be run, by this run or another one."""
        return tuple(each for each in self.cells if each.active)

    @property
    def states(self) -> dict[str, int]:
        """How many cells are in each state, dropped ones, too."""
        return dict(Counter(each.state for each in self.cells))

    @property
    def open(self) -> tuple[CellStanding, ...]:
        """Those of this run's that are not settled."""
        return tuple(each for each in self.active if each.cell.name in self.taken and each.state in _OPEN)

    @property
    def exit_code(self) -> int:
        """5 there is no cell; 1 or 7 halted, by its failures; 6 not all are settled; 7 a durable copy failed; 1 a cell failed; 0 otherwise.

        Failures count wherever they are in the sweep, what is open only among the cells that this run would take.
        """
        states = self.states
        failures = 7 if states.get("unsynced") else int(bool(states.get("failed")))
        if not self.active:
            return 5
        if self.why == "halted":
            return failures or 1
        return 6 if self.open else failures


_OPEN = ("waiting", "running", "interrupted")


def run_sweep(
    store: Store,
    sweep: str,
    *,
    workers: int = 1,
    host: str | None = None,
    only: Only | None = None,
    retries: int = 0,
    time_s: float | None = None,
    rescue_after_s: float | None = DEFAULT_STALE_S,
    grace_s: float = 30.0,
    halt: HaltRule | None = None,
    max_failures: int | None = 3,
    wait: bool = False,
    cpus: int | None = None,
    gpus: int | None = None,
    max_running: int | None = None,
    me: str | None = None,
    on_event: OnEvent | None = None,
) -> SweepEnd:
    """Run cells of the sweep here, ``workers`` at once, until nothing is left that this caller could claim.

    No two callers on any machines ever run one cell at once, or write to one folder; on this host no more than ``workers`` run,
    those of other callers counted. A cell is done once its artifacts are copied. The plan is followed: cells that are
    appended meanwhile are run, dropped ones are not. ``host``: count them under this name, where this machine is to be
    several, or one container of it. ``only``: see ``selected``. ``halt``: failures that end this run;
    ``max_failures``: as in ``Study.run``, None = never give up. Seconds throughout; the other arguments as in ``Study.run``.
    Raises NotFound, RefusedError (another sweep's results are where copies go), UsageError (a program that is not there, before anything is claimed), StoreError, DibsError (the first
    cells all failed), KeyboardInterrupt and SystemExit as signals ask for.
    """
    plan = newest_plan(store, sweep)
    cells = Cells(store, plan, me=me, workers=workers, host=host, only=only, reread=reread)
    cells.follow()
    if not cells.wanted():
        return _end(cells, 0, 0, "empty" if not cells.plan.active else "settled")
    try:
        claim_place(store, cells.plan, me=me)
    except StoreError:
        raise
    except OSError as wrong:  # mended meanwhile, perhaps; else each cell tells, and need not be run again
        log.warning("%s, where copies go, cannot be written now: %s", cells.plan.task.final, wrong.strerror or wrong)
    with ExitStack() as at_end:
        scripts, task = Scripts(at_end.enter_context(private_folder(store))), cells.plan.task
        program = CellProgram(
            scripts.command(store, task), grace_s=grace_s, cells=cells, scripts=scripts, **rules_of(task, store)
        )
        rule = Halt(halt.after(len(cells.wanted())), halt.now) if halt is not None else None
        summary = run(
            cells, program, cells.plan.size, workers, retries=retries, time_s=time_s, rescue_after_s=rescue_after_s,
            grace_s=grace_s, max_failures=max_failures, wait=wait, limits=Limits(cpus=cpus, gpus=gpus),
            max_running=max_running, halt=rule, on_event=on_event, progress=False,
        )  # fmt: skip
    return _end(cells, summary.ran, summary.failed, summary.why)


def _end(cells: Cells, ran: int, failed: int, why: str) -> SweepEnd:
    cells.follow()
    found: Sequence[CellStanding] = standing(cells.store, cells.plan)
    taken = frozenset(cell.name for cell in cells.wanted())
    return SweepEnd(cells.plan.sweep, cells.plan.version, tuple(found), taken, ran, failed, why)
