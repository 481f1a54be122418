"""How a search got on: the best score after each settled trial, by index and by the time trials closed.

By index is what the sampler asked for one after the other; by time is what people waited for. With many machines the
two differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dibs.record import TrialRecord
from dibs.study._scoring import met, scores_in

from ._models import Row
from ._plain import Plain
from ._scored import Aim, aim_of
from ._source import Source
from ._table import row_of

__all__ = ["BestSoFar", "Settled", "best_so_far"]


@dataclass(frozen=True, slots=True)
class Settled(Plain):
    """One settled trial. Only done ones that meet their constraints (``feasible``) count for ``best_by_index`` and
    ``best_by_time``, which are None before the first.

    ``score`` is that of the trial's record, for the goal looked at: of a pruned one the last it reported. ``place``:
    how many settled trials closed before it. ``closed_at``: ISO 8601 by the clock of the machine that ran it, None if
    its record does not say; such trials come last in time. Machines' clocks may disagree: the order in time is for
    people.
    """

    n: int
    state: str
    score: float | None
    best_by_index: float | None
    place: int
    closed_at: str | None
    best_by_time: float | None
    feasible: bool = True


@dataclass(frozen=True, slots=True)
class BestSoFar(Plain):
    """``trials``: the settled ones, by index. ``best``: the best of the done ones that meet their constraints.
    ``attached``: results from elsewhere, which have no index and no time, and are not in here.

    ``goal``: what is better; with several goals that of number ``which`` of ``goals``, and all scores are its.
    """

    study: str
    store: str
    goal: str
    of: int
    done: int
    attached: int
    best: Row | None
    trials: tuple[Settled, ...]
    which: int = 0
    goals: int = 1

    def by_time(self) -> tuple[Settled, ...]:
        """The same trials in the order in which they closed."""
        return tuple(sorted(self.trials, key=lambda trial: trial.place))


def best_so_far(source: Source, *, goal: int = 0) -> BestSoFar:
    """Every settled trial with the best score until then, for the goal of that number. Writes nothing.

    Raises UsageError where no goal is known, or there is none of that number; StoreError if the store does not answer.
    """
    aim = aim_of(source, goal)
    settled = [trial for trial in source.view.trials() if trial.settled and trial.counts.record is not None]
    records = [trial.counts.record for trial in settled if trial.counts.record is not None]
    times = [_closed(record) for record in records]
    order = sorted(range(len(records)), key=lambda at: (times[at] is None, times[at] or _NEVER, records[at].n))
    scores = [_score(record, aim) for record in records]
    counts = [record.state == "done" and met(record.constraints) for record in records]
    counting = [score if count else None for score, count in zip(scores, counts, strict=True)]
    by_index = _running_best(counting, list(range(len(records))), aim.sign)
    by_time = _running_best(counting, order, aim.sign)
    places = {at: place for place, at in enumerate(order)}
    trials = tuple(
        Settled(
            record.n,
            record.state,
            scores[at],
            by_index[at],
            places[at],
            _iso(times[at]),
            by_time[at],
            met(record.constraints),
        )
        for at, record in enumerate(records)
    )
    done = sum(record.state == "done" for record in records)
    best = [at for at in range(len(records)) if counting[at] is not None]
    top = min(best, key=lambda at: (aim.sign * (counting[at] or 0.0), records[at].n), default=None)
    return BestSoFar(
        study=source.study, store=source.store.url, goal=aim.goal, of=source.view.of, done=done,
        attached=len(source.view.given), best=None if top is None else row_of(settled[top]), trials=trials,
        which=aim.which, goals=aim.goals,
    )  # fmt: skip


_NEVER = datetime.max.replace(tzinfo=UTC)


def _score(record: TrialRecord, aim: Aim) -> float | None:
    """The record's score for the goal; None if it has none, or is of other goals."""
    scores = scores_in(record)
    return scores[aim.which] if len(scores) == aim.goals else None


def _running_best(scores: list[float | None], order: list[int], sign: float) -> dict[int, float | None]:
    found: dict[int, float | None] = {}
    best: float | None = None
    for at in order:
        score = scores[at]
        if score is not None and (best is None or sign * score < sign * best):
            best = score
        found[at] = best
    return found


def _closed(record: TrialRecord) -> datetime | None:
    """When it closed, by its machine's clock, in UTC; None for a record whose times make no sense."""
    try:
        began = datetime.fromisoformat(record.started_at or "")
        began = began.astimezone(UTC) if began.tzinfo else began.replace(tzinfo=UTC)
        return began + timedelta(seconds=record.took_s or 0.0)
    except (ValueError, OverflowError):
        return None


def _iso(time: datetime | None) -> str | None:
    """With milliseconds, as records have it."""
    return None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
