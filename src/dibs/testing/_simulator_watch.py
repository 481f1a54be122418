"""What everybody in a simulated study has in common: the study itself, patience, and an ear for what one is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dibs.errors import NotOwner, StoreError, UnsureError
from dibs.record import CLOSED
from dibs.space import Choice, Float, Int, Space
from dibs.store import Held, Settler, Store
from dibs.study import Study
from dibs.study._attempt import Attempt

from ._simulator_plan import Plan
from ._simulator_world import SimLock

if TYPE_CHECKING:
    from ._simulator_actor import Actor

__all__ = ["NAME", "SPACE", "Watched", "adopt", "create_study", "persist"]

T = TypeVar("T")
NAME = "sim"
_TRIES = 40
SPACE = Space(
    x=Float(1e-3, 1.0, log=True),
    k=Int(1, 5),
    c=Choice(None, True, 1, 1.0, "1", (1, 2.0)),
    y=Float(0.0, 1.0, when={"k": [1, 2]}),
)


class Watched(Settler):
    """The real settler, which also tells the oracle what each caller was told."""

    actor: Actor

    def claim(
        self, key: str, body: dict[str, Any], *, durable: bool = False, begun: Callable[[Held], None] | None = None
    ) -> Held | None:
        tell = self.actor.tell
        if self._asks_anew(body):
            tell("blind", key=key)
        try:
            held = super().claim(key, body, durable=durable, begun=begun)
        except UnsureError:
            tell("unsure", key=key, nonce=self.actor.machine.last_nonce)
            raise
        if held is None:
            tell("refused", key=key, nonce=self.actor.machine.last_nonce)
        else:
            tell("claimed", key=key, nonce=held.nonce)
            if body.get("state") in CLOSED:
                tell("closed", key=key, nonce=held.nonce, state=body["state"])
        return held

    def _asks_anew(self, body: dict[str, Any]) -> bool:
        """Whether this is a later attempt of a trial of which this process could read no earlier one."""
        if not body.get("attempt"):
            return False
        return all(seen.record is None for seen in self.actor.view.attempts.get(body["n"], {}).values())


def adopt(actor: Actor, attempt: Attempt) -> Attempt:
    """Give an attempt locks that tasks respect, and listen to what its owner is told."""
    attempt.lock = cast(Any, SimLock(actor.world))
    attempt._held.lock = SimLock(actor.world)
    actor.holds = attempt
    key, nonce = attempt._held.key, attempt.nonce
    actor.tell("owns", key=key, nonce=nonce, point=attempt.point)

    def close(state: str, **fields: Any) -> None:
        try:
            type(attempt).close(attempt, state, **fields)
        except NotOwner as lost:
            actor.tell("lost", key=key, nonce=nonce, note=type(lost).__name__)
            raise
        actor.tell("closed", key=key, nonce=nonce, state=attempt.state, score=fields.get("score"))

    def keep(name: str, path: Path) -> str:
        digest = type(attempt).keep(attempt, name, path)
        actor.tell("saved", key=key, nonce=nonce, note=name, digest=digest)
        return digest

    cast(Any, attempt).close = close
    cast(Any, attempt).keep = keep
    return attempt


def persist(actor: Actor, call: Callable[[], T]) -> T:
    """Call again after an error of the store, as a person or a supervisor would."""
    for _ in range(_TRIES):
        try:
            return call()
        except StoreError:
            actor.sleep(0.5 + actor.rng.random())
    return call()


def create_study(store: Store, plan: Plan, me: str) -> Study:
    """Create the study or join it, as every worker does."""
    return Study(store, NAME, SPACE, goal="min", seed=plan.seed, stale_s=plan.stale_s, sampler=plan.sampler, me=me)
