"""The next attempt for one worker: released and interrupted trials, rescues, wishes, then a fresh index.

Nothing is handed out: every step reads, decides and claims, and a lost claim is an ordinary answer. A worker
claims only below its own N. Of the order only cost depends; safety is the claim's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dibs.search import Goals, History, Sampler
from dibs.space import Space
from dibs.store import Store

from ._attempt import Attempt, Terms, called, claim_attempt
from ._fold import Folded, Seen
from ._gallop import LOSSES, Gallop
from ._quiet import Watch, beat_s_of, counts, is_quiet, patience_s
from ._results import asked_of
from ._scoring import count_of
from ._succession import failed_attempts, next_attempt
from ._view import NEWEST, View

__all__ = ["Claimer", "Claiming", "Idle"]

log = logging.getLogger("dibs")
SWEEPERS = 64  # one look in so many reads what all of them left unread
UNREAD_CROWD = 1024  # workers, where trials are known by name alone: 3.5 names a claim for 3,000 of them, not 9
_NO_HISTORY = History.of([])


@dataclass(frozen=True)
class Idle:
    """Why there was nothing to claim: "settled", "held", "stopped", "queued", "exhausted" or "capped"; ``said`` in words."""

    why: str
    said: str = ""


class Claiming(Protocol):
    """What a loop over trials needs of whoever claims for it."""

    view: View

    @property
    def trials(self) -> int: ...
    def wants(self, n: int) -> bool: ...
    def step(self) -> Attempt | Idle: ...
    def look(self) -> Idle | None: ...


class Claimer:
    """One worker's way through a study: ``step`` claims at most one attempt and never waits.

    ``trials``: this worker's N. ``rescue_after_s``: rescue quiet attempts after that long (and three beats, and
    two beats of watching); None rescues only those that are certainly dead.
    """

    def __init__(
        self,
        store: Store,
        view: View,
        *,
        space: Space,
        sampler: Sampler,
        goal: Goals | None,
        seed: int,
        trials: int,
        stale_s: float,
        me: str | None = None,
        rescue_after_s: float | None = None,
    ) -> None:
        size = sampler.size(space)
        self.store, self.view, self.space, self.sampler = store, view, space, sampler
        self.trials = trials if size is None else min(trials, size)
        self.exhausted = self.trials < trials
        self.stale_s = stale_s
        self.beat_s = beat_s_of(stale_s, folder=store.backend.traits.touch)
        self._terms = Terms(seed=seed, of=self.trials, goal=goal, me=store.me(me), beat_s=self.beat_s)
        self.rescue_after_s = rescue_after_s
        self.watch = Watch()

    def step(self) -> Attempt | Idle:
        """Claim the next attempt, or say why there is none. Raises StoreError, UnsureError, RefusedError (in a copy)."""
        self.store.demand_own()
        self._refresh()
        if self.view.notes.stopped:
            return Idle("stopped")
        self.view.publish(self._terms.me)
        claimed = (self._waiting() or self._rescue()) if self.view.unsettled() else None
        return claimed or self._serve_wish() or self._fresh() or self._idle()

    def look(self) -> Idle | None:
        """Why there is nothing to claim, None if there may be something; claims nothing. Raises StoreError, RefusedError."""
        self.store.demand_own()
        self.view.refresh()
        if self.view.notes.stopped:
            return Idle("stopped")
        waiting = any(self.wants(trial.n) and trial.waiting for trial in self.view.unsettled())
        if waiting or self._left() or next(self._rescuable(), None) is not None:
            return None
        return self._idle()

    def wants(self, n: int) -> bool:
        """Whether the trial is one of those that this claimer would run."""
        return n < self.trials

    def open(self) -> bool:
        """Whether one of them is not settled, as far as the view knows."""
        return self._left() or any(self.wants(trial.n) for trial in self.view.unsettled())

    def _left(self) -> bool:
        """Whether nobody is known to have claimed one of them."""
        return self.view.low() < self.trials

    def close_lost(self, n: int, attempt: int, reason: str, retries: int) -> Attempt | None:
        """The owner of an attempt was ended for that reason and could not say so: its successor is born failed.

        For whoever knows the owner to be dead. None if the owner did say so, or somebody was faster.
        """
        self.view.refresh()
        seen, trial = self.view.look(n, attempt), self.view.trial(n)
        if seen is None or seen.closed or trial is None or trial.settled or trial.top.attempt != attempt:
            return None
        again = failed_attempts(self.view.seens(n), attempt + 1) < retries
        return next_attempt(
            self.view, trial, self._terms, lambda: None, verdict=(reason, again), saw=self._saw(trial.n)
        )

    def _refresh(self) -> None:
        """Look again, at no more records than it takes: a sampler without history asks only which names are taken.

        Everything is read once nothing new is left to claim, or while a wish may have been carried out unseen.
        """
        view = self.view
        if not self._near_the_end():
            view.refresh(most=NEWEST if self.sampler.needs_history else 0)
            if self.store.backend.traits.stamps:
                return
            if not self._near_the_end():
                if view.partial and self._word() % SWEEPERS == 0:
                    view.sweep(self._word())
                return
        view.refresh()

    def _near_the_end(self) -> bool:
        return not self._left() or bool(self.view.notes.wishes and self.view.wishes())

    # one kind of work each; None = none of that kind

    def _waiting(self) -> Attempt | None:
        for trial in self.view.unsettled():
            if self.wants(trial.n) and trial.waiting:
                if not trial.top.closed:  # released while it runs: it may have ended since
                    self.view.look(trial.n, trial.top.attempt)
                    again = self.view.trial(trial.n)
                    if again is None or not again.waiting:
                        continue
                    trial = again
                claimed = self._next_attempt(trial)
                if claimed is not None:
                    return claimed
        return None

    def _rescue(self) -> Attempt | None:
        for trial in self._rescuable():
            what = "free" if trial.waiting else "gone"
            saw = trial.top.record.saw if trial.top.record is not None else None
            log.info("%s attempt %d is %s: rescuing it", called(trial.n, saw), trial.top.attempt, what)
            claimed = self._next_attempt(trial)
            if claimed is not None:
                return claimed
        return None

    def _rescuable(self) -> Iterator[Folded]:
        """The trials whose running attempt is certainly dead, or quiet for long enough, each just looked at."""
        running = [trial for trial in self.view.unsettled() if self.wants(trial.n) and not trial.waiting]
        self.watch.forget({(trial.n, trial.top.attempt) for trial in running})
        now: float | None = None
        for trial in running:
            top = trial.top
            still_s = self.watch.still_s(top, self.store.machine.clock.monotonic())
            if not self._certainly_dead(top):
                if self.rescue_after_s is None or top.newer:
                    continue
                beat_s = top.record.beat_s if top.record is not None else self.beat_s
                if still_s < 2 * beat_s:
                    continue
                if now is None:
                    now = self.store.now()
                quiet, _ = counts(list(self.view.seens(trial.n).values()), self.view.released(trial.n))
                if now - top.modified <= patience_s(top, quiet, self.rescue_after_s):
                    continue
            again = self.view.look(trial.n, top.attempt)  # just before claiming its successor
            fresh = self.view.trial(trial.n)
            if again is None or fresh is None or fresh.settled or fresh.top.attempt != top.attempt:
                continue
            if fresh.top.modified == top.modified or fresh.waiting:  # else it moved
                yield fresh

    def _serve_wish(self) -> Attempt | None:
        for wish, point in sorted(self.view.wishes().items()) if self.view.notes.wishes else ():
            if wish in self.view.carried or self._may_carry_any():
                continue  # the walk for the wish before came across it, or across what does not read
            claimed = self._walk(wish, point)
            if claimed is not None:
                return claimed
        return None

    def _walk(self, wish: str, point: Mapping[str, Any]) -> Attempt | None:
        """From the lowest free index upward, reading every name it loses, so that a wish is served once."""
        for n in range(self.view.low(), self.trials):
            if self.view.trial(n) is None:
                claimed = self._claim(n, 0, point, wish=wish)
                if claimed is not None:
                    return claimed
            if wish in self.view.carried or self._may_carry(n) or self.view.trial(n) is None:
                return None  # served, or the name that was lost does not show (yet)
        return None

    def _may_carry(self, n: int) -> bool:
        """Whether the trial's first record does not read (yet): then it may carry any wish."""
        seens = self.view.seens(n)
        if 0 not in seens or seens[0].record is not None or len(seens) > 1:
            return False
        # damage that has stood still for longer than anybody's patience is nobody's record on its way; an empty one
        # may be a claim by mkdir whose owner was stopped, and a later version's may well carry it
        return seens[0].newer or seens[0].empty or not is_quiet(seens[0], self.view.newest, 0, self.stale_s)

    def _may_carry_any(self) -> bool:
        return any(self._may_carry(trial.n) for trial in self.view.unsettled())

    def _fresh(self) -> Attempt | None:
        row = 0
        while True:
            low = self.view.low()
            if low >= self.trials:
                return None
            gallop = Gallop(self.view.names, low, self.trials, self._running, self._word, row)
            history, saw = self._asked()
            while gallop.losses < LOSSES:
                n = gallop.next()
                if n is None:
                    break
                point = self.sampler.ask(self.space, n, history)
                if point is None:
                    return None
                claimed = self._claim(n, 0, point, saw=saw)
                if claimed is not None:
                    return claimed
                gallop.lost(n)
            if gallop.losses == 0:
                return None
            row = gallop.row
            self._refresh()
            if self.view.notes.stopped:
                return None

    def _idle(self) -> Idle:
        if self.view.notes.stopped:
            return Idle("stopped")
        if self.open():
            return Idle("held")
        if self.view.wishes():
            return Idle("queued")
        return Idle("exhausted" if self.exhausted else "settled")

    # claims

    def _next_attempt(self, trial: Folded) -> Attempt | None:
        def anew() -> Mapping[str, Any] | None:
            return self.sampler.ask(self.space, trial.n, self._asked()[0])

        return next_attempt(self.view, trial, self._terms, anew, saw=self._saw(trial.n))

    def _saw(self, n: int) -> Mapping[str, Any] | None:
        """What is recorded with a later attempt; the first one has what the sampler was shown."""
        return None

    def _claim(self, n: int, attempt: int, point: Mapping[str, Any], **more: Any) -> Attempt | None:
        claimed = claim_attempt(self.store, self.view.keys, n, attempt, point, self._terms, **more)
        if claimed is None:
            self.view.look(n, attempt)
        else:
            self.view.own(claimed)
        return claimed

    def _certainly_dead(self, top: Seen) -> bool:
        return top.record is not None and self.store.machine.gone(top.record.who)

    def _asked(self) -> tuple[History, dict[str, Any] | None]:
        """What the sampler is shown, and what of it is recorded."""
        return (
            asked_of(self.view, self.stale_s, count_of(self._terms.goal))
            if self.sampler.needs_history
            else (_NO_HISTORY, None)
        )

    def _running(self) -> int:
        """How many others may be after the same index; where only names were read, nobody knows, and it may be a crowd."""
        return len(self.view.running()) + (UNREAD_CROWD if self.view.partial else 0)

    def _word(self) -> int:
        return int.from_bytes(self.store.machine.entropy(4), "big")
