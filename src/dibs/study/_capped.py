"""A claimer that holds one of the study's slots while it has trials to run: the cap over a whole study.

A slot is kept from one trial to the next and let go when there is nothing to claim, so a cap costs one small read
a trial. Nobody takes a slot without something to claim, or the waiting would write a name a second.
"""

from __future__ import annotations

from ._attempt import Attempt
from ._claimer import Claiming, Idle
from ._session import Session
from ._slots import Hold, Slots

__all__ = ["Capped"]


class Capped:
    """``step`` as a claimer's, but for "capped": no slot is free. ``leave`` lets go at the end."""

    def __init__(self, claimer: Claiming, slots: Slots, session: Session) -> None:
        self.view = claimer.view
        self._claimer, self._slots, self._session = claimer, slots, session
        self._hold: Hold | None = None
        session.lasts.append(self._let_go)

    @property
    def trials(self) -> int:
        return self._claimer.trials

    def wants(self, n: int) -> bool:
        return self._claimer.wants(n)

    def look(self) -> Idle | None:
        return self._claimer.look()

    def step(self) -> Attempt | Idle:
        """Claim the next attempt, or say why there is none. Raises StoreError, UnsureError."""
        if self._hold is not None and self._hold.lost():
            self.leave()  # somebody took this process for quiet; its last trial was one more than said
        if self._hold is None:
            idle = self._claimer.look()
            if idle is not None:
                return idle
            self._hold = self._slots.take()
            if self._hold is None:
                return Idle("capped", f"{self._slots.what} is reached{self._slots.said()}")
            self._session.open(self._hold)
        got = self._claimer.step()
        if not isinstance(got, Attempt):
            self.leave()
        return got

    def leave(self) -> None:
        """Let go of the slot, if there is one."""
        if self._hold is not None:
            self._session.close(self._hold)
        self._let_go()

    def _let_go(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release()
