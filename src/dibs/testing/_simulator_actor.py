"""Whoever takes part in a simulated study, as a process: its way to the store, its machine, its chance, its end.

What a process does is elsewhere; all that it is told goes to the oracle from here.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, cast

from dibs._canon import digest as digest_of
from dibs._canon import to_json
from dibs.errors import UnsureError
from dibs.store import Store
from dibs.study import Study
from dibs.study import _functions as functions
from dibs.study._attempt import Attempt
from dibs.study._view import View, view_of

from ._simulator_machine import Host, SimMachine
from ._simulator_plan import WorkerPlan
from ._simulator_watch import NAME, Watched
from ._simulator_wire import Faults, Wire
from ._simulator_world import GreenletExit, Process, SimLock
from .invariants import Event

if TYPE_CHECKING:
    from ._simulator import Stage

__all__ = ["BEHIND_S", "Actor"]

BEHIND_S = 150.0  # how long a view may be behind: an old listing, then trust in its stamp


class Actor:
    """A process that takes part: its way to the store, its machine, its own chance."""

    def __init__(self, stage: Stage, name: str, host: Host, role: str, *, mortal: bool, faults: Faults) -> None:
        plan = stage.plan
        self.stage, self.name, self.role, self.plan = stage, name, role, plan
        self.world, self.truth = stage.world, stage.truth
        self.rng = Random(f"{stage.seed} {name}")
        self.process = Process(
            name, host.name, doom=plan.doom if mortal else 0.0, stall=plan.stall, stall_s=plan.stall_s
        )
        self.machine = SimMachine(self.world, host, self.process, Random(f"{stage.seed} {name} entropy"))
        self.faults, self.host = faults, host
        wire = self.wire(faults)
        self.store = Store.over(wire, self.machine, f"simulated:{stage.seed}/{name}", plan.patience_s)
        settler = Watched(wire, self.machine, plan.patience_s)
        settler.actor = self
        self.store.settler = settler
        self.view = view_of(self.store, NAME)
        self.view.lock = cast(Any, SimLock(self.world))
        self.view.rolls.threshold = plan.roll
        self.ended = self.killed = False
        self.holds: Attempt | None = None  # the last attempt it claimed
        self.process.on_death = self._die

    def wire(self, faults: Faults) -> Wire:
        """A way to the store for this process."""
        wire = Wire(self.truth, self.process, self.host, faults, self.plan.client_stamps)
        wire.trace = lambda verb, key, answer: self.stage.note(self.name, verb, key, answer)
        return wire

    def fresh_view(self) -> View:
        """What this process would see if it had just been started, on a client whose caches are empty."""
        store = Store.over(self.wire(replace(self.faults, lag=0.0)), self.machine, patience_s=self.plan.patience_s)
        view = View(store, NAME)
        view.lock = cast(Any, SimLock(self.world))
        return view

    def start(self, body: Callable[[Actor], None], after_s: float = 0.0) -> None:
        """Run the body as this process's main task."""

        def main() -> None:
            try:
                body(self)
            except GreenletExit:
                raise
            except BaseException as error:
                where = traceback.format_exception(error)[-3:]
                self.tell("crashed", note="".join(where).strip())
            self.retire()

        self.world.spawn(self.process, main, after_s)

    def tell(self, what: str, **fields: Any) -> None:
        """Something this process was told, for the oracle."""
        self.stage.events.append(Event(self.world.now, self.name, what, role=self.role, **fields))

    def sleep(self, seconds: float) -> None:
        self.machine.clock.sleep(seconds)

    def retire(self) -> None:
        """The process ends by itself."""
        if self.process.alive:
            self.ended = True
            self.process.alive = False
            self.stage.ended_at = self.world.now

    def _die(self) -> None:
        self.ended = self.killed = True
        self.tell("killed")
        self.stage.ended_at = self.world.now
        self.stage.died(self)

    def is_last(self) -> bool:
        """Whether everybody who could still change something has ended, longer ago than a view may be behind."""
        stage = self.stage
        return stage.closed and not stage.busy(self) and self.world.now > stage.ended_at + BEHIND_S

    def may_end(self, why: str) -> bool:
        """Whether nothing is left to wait for."""
        return why != "held" and (why != "stopped" or self.plan.stay_stopped)

    def hopes(self, why: str, plan: WorkerPlan) -> bool:
        """Whether waiting makes sense: in the end only for those who would rescue what they wait for."""
        if not self.world.calm:
            return True
        return plan.rescue_after_s is not None if why == "held" else not self.plan.stay_stopped

    def taken(self, n: int) -> Attempt:
        """What the function API remembers for this process."""
        for mine in functions._taken.values():
            if isinstance(mine, Attempt) and mine.store is self.store and mine.n == n and not mine.closed:
                return mine
        raise LookupError(f"nobody took trial {n}")

    def stopped(self) -> None:
        """A stop returned; with views that may be behind nobody can tell who should know of it."""
        if not self.plan.faults.lag and not self.plan.tick_s:
            self.tell("stopped")

    def resume(self, study: Study) -> None:
        """Resume the study; from here on, or (if nobody can say) at any later time, claims are right again."""
        self.tell("resuming")
        try:
            study.resume()
        except UnsureError:
            self.tell("resuming", note="unsure")
            raise

    def wished(self, point: dict[str, Any]) -> None:
        text = {name: to_json(value) for name, value in point.items()}
        self.tell("wished", digest=digest_of(text))
