"""A study: one search, one space, one goal, many trials; created or joined by name.

Nothing here coordinates: every method is a loop over reading, deciding and claiming. Reading needs no space
and never creates; a definition that differs is refused before anything is claimed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, final

from dibs._canon import plain
from dibs.cell import UNLIMITED, Limits
from dibs.errors import NotFound, UsageError
from dibs.search import Goal, Goals, History, PrunerSpec, Sampler
from dibs.space import Space
from dibs.store import Store

from . import _results
from ._attempt import Attempt
from ._claimer import Claimer
from ._curves import curves_of
from ._definition import Definition, ForeignPruner, ForeignSampler, check_terms, create_or_join
from ._events import Counted
from ._given import given_record
from ._loop import loop
from ._pruning import Pruning
from ._results import TrialResult
from ._runnable import Cap
from ._scoring import Attached, constraints_of, count_of, goal_said, score_of, scores_of
from ._session import Session
from ._slots import StudyRack
from ._trial import Trial
from ._view import View, view_of

if TYPE_CHECKING:
    from ._events import OnEvent
    from ._fork import Forked
    from ._run import RunSummary

__all__ = ["Study"]

log = logging.getLogger("dibs")


@final
class Study:
    """``Study("/mnt/shared/studies", "spam", space, goal="min")`` creates the study or joins it.

    Every argument left out means "as created". Joining with another space, goal, sampler, pruner, seed, stale_s or
    max_step raises RefusedError; no such study raises NotFound; see also Store for what its URL may raise.

    ``goal``: "min" or "max", or a list of 2 to 8 of these; then a trial ends with a score for each, in this order.
    ``sampler``: a name ("auto", the default, "gp", "tpe", "nsga2", "cmaes", "sobol", "random", "grid") or an instance.
    ``seed``: an integer, drawn once if left out.
    ``pruner``: a name ("median", "percentile", "asha", "hyperband", "threshold", "patience", "diverged"), an instance, or
    a list of these; without one no trial is stopped early. ``max_step``: the last step a full trial reports.
    ``stale_s``: seconds without a beat after which a running attempt is called quiet (3600).
    ``ranks="independent"``: every rank under torchrun claims for itself.
    """

    def __init__(
        self,
        store: Store | str | os.PathLike[str],
        name: str,
        space: Space | Mapping[str, Any] | None = None,
        *,
        goal: Goals | Sequence[Goal] | None = None,
        sampler: str | Sampler | None = None,
        pruner: PrunerSpec | None = None,
        seed: int | None = None,
        max_step: int | None = None,
        stale_s: float | None = None,
        me: str | None = None,
        ranks: Literal["independent"] | None = None,
    ) -> None:
        if ranks not in (None, "independent"):
            raise UsageError(f'ranks is None or "independent", not {ranks!r}')
        if space is not None and not isinstance(space, Space):
            space = Space(space)
        check_terms(name, goal, seed, stale_s, max_step, sampler, pruner)  # before a store is made for it
        creating = space is not None and goal is not None
        self.store = store if isinstance(store, Store) else Store(store, create=None if creating else False)
        self.name, self.me, self._ranks, self._goal = name, me, ranks, goal_said(goal)
        self.forked: Forked | None = None  #: what was taken over, where ``fork`` made this object
        self.definition: Definition | None = create_or_join(
            self.store, name, space=space, goal=self._goal, sampler=sampler, pruner=pruner, seed=seed, stale_s=stale_s,
            max_step=max_step, me=me,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Study({self.store.url!r}, {self.name!r})"

    @property
    def space(self) -> Space:
        """The study's space. Raises UsageError for a study that has records but no definition."""
        return self._defined().space

    @property
    def goal(self) -> Goals:
        """ "min" or "max", or a tuple of several; where there is no definition, what the records agree on."""
        if self.definition is not None:
            return self.definition.goal
        return self._goal or _results.goal_of(self._fresh())

    @property
    def stale_s(self) -> float:
        """Seconds without a beat after which a running attempt is quiet."""
        return self.definition.stale_s if self.definition is not None else 3600.0

    @property
    def view(self) -> View:
        """What this process knows of the study (shared by everybody who uses this store object)."""
        return view_of(self.store, self.name)

    # the loop

    def trials(self, n: int, *, wait: bool = False, rescue_after_s: float | None = None) -> Iterator[Trial]:
        """Claimed trials, one after the other, until the study has ``n`` over all machines; never one more.

        Interrupted and released ones come first, then rescues (those certainly dead; quiet ones only with
        ``rescue_after_s``), wishes, and new ones. It ends when nothing is left to claim; with ``wait`` when
        all ``n`` are settled. Advancing closes an open trial as interrupted. Raises UsageError, StoreError.
        """
        n = self._check_trials(n, rescue_after_s)
        session = Session(self.store.machine.clock)
        return loop(session, self.claimer(n, rescue_after_s), self.space, wait=wait, pruning=self.pruning)

    def run(
        self,
        objective: Callable[[Trial], Any],
        trials: int,
        workers: int = 1,
        *,
        retries: int = 0,
        time_s: float | None = None,
        rescue_after_s: float | None = None,
        grace_s: float = 30.0,
        max_failures: int | None = 3,
        wait: bool = False,
        limits: Limits = UNLIMITED,
        max_running: int | None = None,
        capture: bool = False,
        on_event: OnEvent | None = None,
        progress: bool | None = None,
    ) -> RunSummary:
        """Run ``objective(trial) -> score`` on every trial that can be claimed, here or in ``workers`` processes.

        Returns how it ended. An exception in the objective, or a result that is no finite number, is a failed trial
        and the run goes on; ``retries`` more attempts are made at it. None = the last score reported.

        ``workers`` > 1: fresh processes, which need an objective they can import and a ``__main__`` guard.
        ``time_s``: no new trials after that. ``rescue_after_s``: take over trials that are quiet for so long.
        ``grace_s``: what SIGTERM or SIGHUP leaves a running trial. ``max_failures``: if so many of a process's first trials
        fail and none succeeded, it stops and raises what the last one raised, or UsageError if that was no ``Exception``; None = never.
        ``limits``: what one trial may use; one that is over it is failed, with the limit named, and its process is
        replaced (with any limit trials run in fresh processes, as with several workers). ``max_running``: at most so
        many trials run at any time in the whole study, counting the workers that say so.
        ``wait``: stay until all N are settled, whoever runs them. ``capture``: what the objective prints goes to
        ``trial.log`` (in worker processes it always does), as far as there is room. ``on_event``: called with each event, from any thread;
        without it progress is drawn on stderr, unless ``progress=False``.
        Raises UsageError, StoreError, KeyboardInterrupt (Ctrl-C twice, or once and the running trials ended),
        SystemExit 143 (SIGTERM) or 129 (SIGHUP: the terminal or connection it was started from is gone).
        """
        from ._run import run

        trials = self._check_trials(trials, rescue_after_s)
        return run(
            self, objective, trials, workers, retries=retries, time_s=time_s, rescue_after_s=rescue_after_s,
            grace_s=grace_s, max_failures=max_failures, wait=wait, limits=limits, max_running=max_running,
            capture=capture, on_event=on_event, progress=progress,
        )  # fmt: skip

    def claimer(self, n: int, rescue_after_s: float | None = None) -> Claimer:
        """One worker's way through the study; what ``trials`` and ``run`` are made of."""
        defined = self._defined()
        for chosen in (defined.sampler, defined.pruner):
            if isinstance(chosen, ForeignSampler | ForeignPruner):
                raise UsageError(f"study {self.name!r}: {chosen.why}")
        return Claimer(
            self.store, self.view, space=defined.space, sampler=defined.sampler, goal=defined.goal,
            seed=defined.seed, trials=n, stale_s=defined.stale_s, me=self.me, rescue_after_s=rescue_after_s,
        )  # fmt: skip

    def caps(self, max_running: int | None) -> list[Cap]:
        """The caps a worker minds."""
        if max_running is None:
            return []
        rack = StudyRack(self.store, self.view.keys, max_running, self.me)
        return [Cap(rack, f"the cap of {max_running} running trial{'s' * (max_running != 1)}")]

    def counted(self, total: int) -> Counted:
        """The study as it was last seen here, for those who show it."""
        return _results.counted_of(self.view, self.goal, total)

    def pruning(self, attempt: Attempt) -> Pruning | None:
        """How a claimed attempt asks the study's pruner; None if it has none."""
        pruner = self._defined().pruner
        if pruner is None:
            return None
        curves = curves_of(self.view) if pruner.needs_curves else None
        return Pruning(pruner, curves, attempt)

    # answers

    def best(self) -> TrialResult:
        """The best done trial that meets its constraints, ties by the lower index; one goal.

        Raises NoResult with the counts, and with the trial that comes nearest if none meets its constraints; UsageError
        with several goals, where no one trial is the best: see ``front``.
        """
        top = self.top(1)
        if not top:
            raise _results.no_result(self.view)
        return top[0]

    def top(self, k: int) -> list[TrialResult]:
        """The k best done trials that meet their constraints, best first. Raises UsageError with several goals."""
        k = plain(k)
        if type(k) is not int or k < 0:
            raise UsageError(f"top({k!r}): k must be a non-negative integer")
        view, goal = self._fresh(), self.goal
        if isinstance(goal, tuple):
            raise UsageError(
                f"study {self.name!r} has {len(goal)} goals, and no one trial is the best in all: study.front() has those "
                "that no other one beats"
            )
        return _results.best_of(view, goal, k)

    def front(self) -> list[TrialResult]:
        """The done trials that meet their constraints and that no such trial dominates, by index; empty if there is none.

        One trial dominates another if it is nowhere worse and somewhere better; equal ones are all in it. With one goal
        these are the best, all of them.
        """
        view = self._fresh()
        return _results.front_of(view, self.goal)

    def results(self, state: str | None = None) -> list[TrialResult]:
        """One result per trial by the fold, by index; ``state`` keeps those in one state."""
        return _results.results_of(self._fresh(), state)

    def frame(self) -> Any:
        """One row per trial as a pandas DataFrame (or a polars one where there is no pandas): a copy, and nobody's store.

        Columns: n, attempt, state, score (with several goals ``score.0``, ``score.1``, ... in their order),
        ``constraint.<name>`` for each constraint that was reported, ``point.<name>`` for each parameter (empty where it
        is not active), me, host, started (ISO 8601, by that machine's clock), took_s, reason. Raises UsageError if
        neither library is installed.
        """
        from ._frame import columns_of, frame_of

        names = self.definition.space.names if self.definition is not None else ()
        return frame_of(columns_of(self.results(), names, self._goals()))

    def status(self) -> RunSummary:
        """How far it is: trials by state, who holds what, machines and processes that took part, the best so far."""
        from ._run import summary_of

        return summary_of(self, self._fresh().of)

    def finished(self) -> History:
        """Done trials (and attached results) with their scores."""
        return _results.finished_of(self._fresh(), goals=self._goals())

    def in_flight(self) -> History:
        """Running trials, yours too; quiet ones are left out."""
        return _results.in_flight_of(self._fresh(), self.stale_s)

    def abandoned(self, stale_s: float | None = None) -> list[tuple[int, int]]:
        """(trial, attempt) of running attempts that are quiet or certainly dead. Decides nothing."""
        return _results.abandoned_of(self._fresh(), self.store.now(), self.stale_s if stale_s is None else stale_s)

    # steering

    def enqueue(self, point: Mapping[str, Any]) -> bool:
        """Wish for a point: some worker tries it, once for the whole study. False if it was wished before."""
        return self.view.notes.wish(self.space.check(point), self.me)

    def attach(
        self,
        point: Mapping[str, Any],
        score: float | Sequence[float],
        *,
        constraints: Mapping[str, float] | None = None,
    ) -> bool:
        """Add a result obtained elsewhere: history for the sampler, no index. False if it is there already.

        ``score``: with several goals one number for each; ``constraints`` as in ``Trial.done``. Raises UsageError.
        """
        goal, point = self.goal, self.space.check(point)
        if isinstance(goal, tuple):
            found = Attached(point, None, scores_of(score, goal), constraints_of(constraints))
        else:
            found = Attached(point, score_of(score), (), constraints_of(constraints))
        key, fields = given_record(self.store.keys(self.name), found)
        if key in self.view.given:  # seen there: nothing need be written to lose against it
            return False
        self.view.given.ours = True
        body = {**self.store.head("given", self.me), **fields, "from": self.store.me(self.me)}
        return self.store.settler.claim(key, body, durable=True) is not None

    def fork(
        self,
        name: str,
        space: Space | Mapping[str, Any] | None = None,
        *,
        fill: Mapping[str, Any] | None = None,
        drop: Collection[str] = (),
        seed: int | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Study:
        """A new study with another space (None: the same one), which knows every result of this one that lies in it.

        Goal, sampler, pruner, max_step and stale_s are this study's. Done trials and attached results are attached to the
        new one: history for its sampler, which cost no trial there. ``.forked`` of the study that is returned says how
        many were taken over and how many were not, by reason; the log says the same. This study is not written to.

        ``fill``: name -> value, what the old trials had that have no such parameter; without it none of them is in a
        space with a new one. ``drop``: old parameters whose value made no difference, and that are left out of the old
        points where the new space has no room for them. ``seed``: of the new study; left out, one that follows from
        this study's seed and both names, so that other points come than here. ``on_progress``: called with (results
        looked at, in all).

        Said again it adds what is missing: after a kill, or when more trials are done here. Several machines may fork at
        once. Raises RefusedError if a study of that name is there which this cannot be, SpaceError, UsageError, StoreError.
        """
        from ._fork import fork

        made = fork(self, name, space, fill=fill, drop=drop, seed=seed, on_progress=on_progress)
        log.log(
            logging.WARNING if made.forked and made.forked.left else logging.INFO, "study %s: %s", name, made.forked
        )
        return made

    def stop(self) -> bool:
        """No new claims by anybody; running trials finish. False if it was stopped already."""
        return self.view.notes.stop(self.me)

    def resume(self) -> bool:
        """Claims again. False if it was not stopped."""
        return self.view.notes.resume(self.me)

    def retry(self, n: int | None = None) -> list[int]:
        """Free finally failed trials (all, or trial n) for another attempt; returns their indexes."""
        n = plain(n)
        if n is not None and (type(n) is not int or n < 0):
            raise UsageError(f"retry({n!r}): give the index of a trial, or nothing for all of them")
        view = self._fresh()
        if n is not None and view.trial(n) is None:
            raise NotFound(f"study {self.name!r} has no trial {n}")
        failed = [
            trial for trial in view.trials() if trial.settled and trial.state == "failed" and n in (None, trial.n)
        ]
        for trial in failed:
            for seen in view.seens(trial.n).values():
                if seen.state == "failed":
                    view.notes.release(trial.n, seen.attempt, self.me)
        return [trial.n for trial in failed]

    def rescue(self, stale_s: float | None = None) -> list[tuple[int, int]]:
        """Free every abandoned attempt for the next one; runs nothing. Returns (trial, attempt) pairs."""
        found = self.abandoned(stale_s)
        for n, attempt in found:
            self.view.notes.release(n, attempt, self.me)
        return found

    # inside

    def _fresh(self) -> View:
        view = self.view
        view.refresh()
        return view

    def _goals(self) -> int:
        """How many goals there are, as far as anybody has said."""
        goals = {self.definition.goal} if self.definition is not None else _results.goals_in(self.view)
        return max(map(count_of, goals), default=1)

    def _defined(self) -> Definition:
        if self.definition is None:
            raise UsageError(f"study {self.name!r} has no definition yet: open it once with space= and goal=")
        return self.definition

    def _check_trials(self, n: int, rescue_after_s: float | None) -> int:
        n = plain(n)
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise UsageError(f"the number of trials must be a non-negative integer, not {n!r}")
        if rescue_after_s is not None and not (isinstance(rescue_after_s, int | float) and rescue_after_s > 0):
            raise UsageError(f"rescue_after_s must be a positive number of seconds, not {rescue_after_s!r}")
        ranks = os.environ.get("WORLD_SIZE", "1")
        if ranks.isdigit() and int(ranks) > 1 and self._ranks != "independent":
            raise UsageError(
                f"WORLD_SIZE={ranks}: {ranks} ranks would each claim trials of their own; claim on rank 0 and broadcast "
                'the point, or say ranks="independent" (--ranks independent) if every rank is a worker'
            )
        self._defined()
        return int(n)
