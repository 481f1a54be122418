"""A trial as the objective sees it: the point, reports, files, and one way out.

However the ``with`` is left, the attempt is closed exactly once: done, pruned, failed with its traceback, or
interrupted. An error of the store is raised as such and never recorded as the objective's failure.
"""

from __future__ import annotations

import logging
import math
import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from dibs._canon import plain
from dibs.errors import AlreadyClosed, NotOwner, RecordError, StoreError, Superseded, UsageError
from dibs.record import decode_trial
from dibs.search import Verdict
from dibs.space import Space

from ._attempt import Attempt
from ._events import Closed, Reported
from ._pruning import Pruning
from ._scoring import constraints_of, met, score_of, scores_of
from ._session import Session
from ._workplace import folder_of, keep_log

__all__ = ["Trial"]

log = logging.getLogger("dibs")
_LAST: Any = object()  # done() without a score: the last one reported
_TELL_EVERY_S = 0.25


@final
class Trial:
    """One claimed attempt at a trial: ``n``, ``attempt``, ``point``, ``seed``; use it as ``with trial:``.

    ``stopping``: this trial should end soon (a signal, a rescue); ``reason`` says why a report answered True.
    """

    def __init__(
        self,
        attempt: Attempt,
        space: Space,
        session: Session,
        *,
        failed_before: int = 0,
        retries: int = 0,
        worker: int = 0,
        pruning: Pruning | None = None,
    ) -> None:
        self._attempt, self._space, self._session, self._worker = attempt, space, session, worker
        self._pruning = pruning
        self._verdict: Verdict | None = None
        self._again = failed_before < retries
        self._lost = False
        self._told = False
        self._reason: str | None = None
        self._ended: str | None = None
        self._tell_at = 0.0
        session.open(self)

    def __repr__(self) -> str:
        return f"<Trial {self.n} attempt {self.attempt} {self._attempt.state} {self.point}>"

    @property
    def n(self) -> int:
        """The trial's index in the study."""
        return self._attempt.n

    @property
    def attempt(self) -> int:
        """Which try at this trial, from 0."""
        return self._attempt.attempt

    @property
    def point(self) -> dict[str, Any]:
        """The parameters to try; inactive conditional ones are absent."""
        return dict(self._attempt.point)

    @property
    def seed(self) -> int:
        """A seed for this trial's own randomness: the same for every attempt, on every machine."""
        return self._attempt.seed

    @property
    def state(self) -> str:
        """running, or how this process closed it."""
        return self._attempt.state

    @property
    def closed(self) -> bool:
        """Whether this process has closed the attempt."""
        return self._attempt.closed

    @property
    def stopping(self) -> bool:
        """Whether it should end soon: a signal came, or somebody rescued the trial.

        Whoever was answered True, here or by a report, and then leaves ``with`` is taken to have stopped early.
        """
        if self._should_stop():
            self._told = True
        return self._told

    def _should_stop(self) -> bool:
        return self._reason is not None or self._session.stopping

    @property
    def reason(self) -> str | None:
        """Why a report answered True: the pruner's reason, "rescued", "superseded" or the signal's name."""
        return self._reason or (self._session.reason if self._session.stopping else None)

    @property
    def folder(self) -> Path:
        """A private folder of this attempt, made when first used: under ``DIBS_WORK``, else in the store (of a bucket:
        in the temporary folder of this machine)."""
        return folder_of(self._attempt)

    @property
    def log(self) -> Path:
        """The attempt's log file (in ``folder``); what the objective prints under ``run`` goes there."""
        return self.folder / "log.txt"

    # Optuna's names, as look-ups in the frozen space

    def suggest_float(
        self, name: str, low: float, high: float, *, log: bool = False, step: float | None = None
    ) -> float:
        """The point's value of a Float that the space declares just so. Raises SpaceError if it does not."""
        self._space.lookup_float(name, low, high, log=log, step=step)
        return float(self._value(name))

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False, step: int = 1) -> int:
        """The point's value of an Int that the space declares just so. Raises SpaceError if it does not."""
        self._space.lookup_int(name, low, high, log=log, step=step)
        return int(self._value(name))

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """The point's value of a Choice that the space declares just so. Raises SpaceError if it does not."""
        self._space.lookup_categorical(name, choices)
        return self._value(name)

    def _value(self, name: str) -> Any:
        if name not in self._attempt.point:
            raise UsageError(f"{name!r} is not active at this point: ask for it only where its `when` holds")
        return self._attempt.point[name]

    # what the objective says

    def report(self, score: Any, step: int | None = None) -> bool:
        """Put one step on the curve; True = stop now (``reason`` says why). NaN is kept.

        A step beyond all before it is shown to the study's pruner, unless it is the study's ``max_step``.
        The same step twice: the last counts. Raises UsageError for what is not a number, AlreadyClosed, NotOwner.
        """
        value = score_of(score, finite=False)
        if step is not None and (isinstance(step, bool) or not isinstance(plain(step), int) or plain(step) < 0):
            raise UsageError(f"a step must be a non-negative integer, not {step!r}")
        if not self._ours:
            raise NotOwner(f"trial {self.n} was claimed before this process was forked: report from its owner")
        with self._session.shielded():
            return self._report(value, None if step is None else int(plain(step)))

    def _report(self, value: float, step: int | None) -> bool:
        if self._attempt.closed:
            if self._session.stopping:
                return self.stopping  # interrupted over the objective's head: it should end, not fail
            raise AlreadyClosed(f"trial {self.n} is closed already ({self.state}): report before that")
        at = self._attempt.add(value, step)
        now = self._session.clock.monotonic()
        if now >= self._tell_at:
            self._tell_at = now + _TELL_EVERY_S
            self._session.tell(Reported(self.n, self.attempt, at, value, self._worker))
        rung = self._judge(at, value)
        try:
            if self._attempt.show(force=rung) and self._reason is None and self._attempt.rescued():
                self._reason = "rescued"
        except Superseded as lost:
            log.warning("%s", lost)
            self._reason = "superseded"
        except AlreadyClosed:
            if not self._session.stopping:
                raise
        except StoreError as wrong:  # an outage delays what others see; the objective goes on
            log.warning("%s: a report could not be shown: %s", self._called, wrong)
        return self.stopping

    @property
    def _called(self) -> str:
        return self._attempt.called

    def _judge(self, step: int, value: float) -> bool:
        """Ask the pruner; True if the trial goes on past a rung, where others want to see it."""
        if self._pruning is None or self._should_stop():
            return False
        self._verdict = self._pruning.ask(step, value)
        if self._verdict is not None:
            self._reason = self._verdict.reason[:500]
            return False
        return self._pruning.at_rung

    def done(self, score: Any = _LAST, *, constraints: Mapping[str, Any] | None = None) -> None:
        """Close the attempt with a score, by default the last one reported; durable when this returns.

        With several goals ``score`` is a list of one number for each, in their order, and there is no default.
        ``constraints``: by name, a number that is 0 or less where the constraint is met, such as how much is too much.
        What is no finite number (None, NaN, a text, nothing reported), among the constraints too, or a wrong number of
        scores, closes it as failed, with the reason.
        Raises AlreadyClosed, Superseded, StoreError (then it is still open: call again).
        """
        step = max(self._attempt.curve, default=None)
        try:
            end = {**self._scored(score, step), "constraints": constraints_of(constraints)}
        except UsageError as wrong:
            self._close("failed", step=step, reason=str(wrong), again=self._again)
            return
        self._close("done", step=step, **end)

    def _scored(self, score: Any, step: int | None) -> dict[str, Any]:
        goal = self._attempt.goal
        if isinstance(goal, tuple):
            if score is _LAST:
                raise UsageError(
                    f"no scores were given: this study has {len(goal)} goals, and a trial ends with {len(goal)} scores, "
                    f"trial.done([...]) or what the objective returns"
                )
            return {"scores": scores_of(score, goal)}
        if score is _LAST:
            if step is None:
                raise UsageError("nothing was reported and no score was given")
            score = self._attempt.curve[step]
        return {"score": score_of(score)}

    def save(self, name: str, path: str | os.PathLike[str]) -> str:
        """Keep a file by digest under a name, for later attempts and for good; kept when this returns."""
        if not self._ours:
            raise NotOwner(f"trial {self.n} was claimed before this process was forked: save from its owner")
        with self._session.shielded():
            return self._attempt.keep(name, Path(path))

    def load(self, name: str) -> Path | None:
        """The newest file saved under the name by this or any earlier attempt, as a local path; None if there is none.

        Raises StoreError if it cannot be brought (a full disk is retried first), RecordError if its bytes are damaged.
        """
        digest = self._attempt.files.get(name)
        for attempt in range(self.attempt - 1, -1, -1):
            digest = digest or self._files_of(attempt).get(name)
        if digest is None:
            return None
        return self._attempt.bring(digest, lambda: self.folder / "loaded")

    def _files_of(self, attempt: int) -> dict[str, str]:
        key = self._attempt.keys.attempt(self.n, attempt)
        there = self._attempt.store.backend.read(key)
        try:
            return decode_trial(there.data, key).files if there is not None else {}
        except RecordError as wrong:
            log.warning("files of an earlier attempt are out of reach: %s", wrong)
            return {}

    # the way out; what the loops of this package call besides

    @property
    def _ours(self) -> bool:
        """False in a process that was forked while the trial was open: it is the parent's to write."""
        return self._attempt.ours

    @property
    def _over(self) -> bool:
        """Whether there is nothing left to write: closed, or another process's by now."""
        return self.closed or self._lost

    def _returned(self, value: Any) -> None:
        """What the objective returned, as the attempt's end, unless it said so itself or was told to stop."""
        if self.closed or self._told:
            return
        if value is not None:
            self.done(value)
        elif self._attempt.curve or isinstance(self._attempt.goal, tuple):
            self.done()
        else:
            self.fail("the objective returned None and had reported nothing")

    def interrupt(self, reason: str) -> None:
        """Close the attempt as interrupted: anybody may take the next one."""
        self._close("interrupted", step=max(self._attempt.curve, default=None), reason=reason)

    def fail(self, reason: str, trace: str | None = None) -> None:
        """Close the attempt as failed; for good unless a retry is left."""
        step = max(self._attempt.curve, default=None)
        self._close("failed", step=step, reason=reason[:500], traceback=trace, again=self._again)

    def _close(self, state: str, **fields: Any) -> None:
        if not self._ours:
            raise NotOwner(f"trial {self.n} was claimed before this process was forked: only its owner closes it")
        with self._session.shielded():
            keep_log(self._attempt)
            self._attempt.close(state, verdict=self._verdict.body() if self._verdict is not None else None, **fields)
            self._ended = fields.get("reason")
            self._session.close(self)
            if self._session.on_event is not None:
                self._session.tell(
                    Closed(
                        self.n, self.attempt, state, fields.get("score"), self._attempt.took_s, fields.get("reason"),
                        fields.get("again", False), self._worker, tuple(fields.get("scores") or ()),
                        met(fields.get("constraints")),
                    )
                )  # fmt: skip
            if self._pruning is not None:
                self._pruning.closed()

    def beat(self) -> None:
        """This process lives (the session's thread calls it)."""
        try:
            self._attempt.beat()
        except (NotOwner, StoreError) as wrong:
            log.debug("beat of %s: %s", self._called, wrong)

    @property
    def beat_s(self) -> float:
        """Seconds between beats."""
        return self._attempt.beat_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not self._ours:  # a forked child: the trial is its parent's
            return False
        if error is None and self._attempt.closed:  # as nearly always: nothing is left to write, or to shield
            self._session.close(self)
            return False
        with self._session.shielded():
            try:
                return self._leave(error)
            except (Superseded, AlreadyClosed) as lost:
                log.warning("%s: what it ended with is not recorded: %s", self._called, lost)
                self._lost = True
                return isinstance(error, Exception)
            finally:
                self._session.close(self)

    def _leave(self, error: BaseException | None) -> bool:
        if self._attempt.closed:
            if isinstance(error, Exception):
                log.error("%s had been closed as %s when it raised %r", self._called, self.state, error)
            return isinstance(error, Exception) and not isinstance(error, StoreError)
        if error is None:
            self._finish()
            return False
        if isinstance(error, StoreError):
            self._try_interrupt(f"the store failed: {error}")
            return False
        if isinstance(error, Superseded):
            raise error
        if isinstance(error, KeyboardInterrupt | GeneratorExit) or (
            isinstance(error, SystemExit) and self._session.stopping
        ):
            self.interrupt(self.reason or type(error).__name__)
            return False
        reason = "".join(traceback.format_exception_only(error)).strip()
        self.fail(reason, "".join(traceback.format_exception(error)))
        if self._session.on_event is None:
            log.error("%s failed: %s", self._called, reason[:500])
        return isinstance(error, Exception)

    def _finish(self) -> None:
        """Left without an error: done, unless it was told to stop and so has no complete result."""
        if not self._told:
            self.done()
        elif self._verdict is not None:
            step = max(self._attempt.curve)
            score = self._attempt.curve[step]
            self._close("pruned", score=score if math.isfinite(score) else None, step=step, reason=self._reason)
        else:
            self.interrupt(self.reason or "stopping")

    def _try_interrupt(self, reason: str) -> None:
        try:
            self.interrupt(reason[:500])
        except (NotOwner, StoreError) as wrong:
            log.warning("%s is left running: %s", self._called, wrong)
