"""A study at a glance. One pass over what the view knows, plus one read per running attempt."""

from __future__ import annotations

from collections.abc import Iterator

from dibs.cell import frozen_in
from dibs.errors import NoResult, UsageError
from dibs.record import TrialRecord, Who
from dibs.study._fold import Folded, Seen
from dibs.study._quiet import patience_s
from dibs.study._results import front_trials
from dibs.study._view import View

from ._causes import CAUSES, cause_of
from ._live import Live, live_of
from ._models import Part, Row, Running, Script, StudyStatus
from ._source import Source
from ._table import best_rows, row_of

__all__ = ["best_or_none", "count", "front_or_none", "study_status"]

_COUNTED = ("done", "pruned", "failed", "running", "interrupted", "again", "unclaimed")


def study_status(source: Source) -> StudyStatus:
    """The status of a study as seen now. Writes nothing; raises StoreError if the store does not answer."""
    view, defined = source.view, source.definition
    specials = view.specials()
    lives = {(seen.n, seen.attempt): live_of(source, seen.record) for seen in view.running() if seen.record}
    now = max([view.newest, *(live.modified for live in lives.values() if live is not None)])
    who = _who(view, [seen.record for trial in specials for seen in view.seens(trial.n).values() if seen.record])
    parts = tuple(_parts(who))
    return StudyStatus(
        study=source.study,
        store=source.store.url,
        goal=source.goal,
        space=source.space,
        sampler=defined.sampler.describe() if defined else None,
        pruner=defined.pruner.describe() if defined and defined.pruner else None,
        seed=defined.seed if defined else None,
        stale_s=source.stale_s,
        max_step=defined.max_step if defined else None,
        of=view.of,
        counts=count(view, specials),
        failed_by=failed_by(view, specials),
        waiting=sum(trial.waiting for trial in specials),
        stopped=view.notes.stopped,
        best=best_or_none(source),
        running=tuple(_running(source, seen, lives.get((seen.n, seen.attempt)), now) for seen in view.running()),
        attached=len(view.given),
        machines=len({part.host for part in parts}),
        processes=len({_process(one) for one in who}),
        parts=parts,
        problems=source.problems(),
        newest_at=source.newest_at,
        still_s=source.still_s,
        programs=tuple(
            Script(one.file, one.digest, one.command, one.me) for one in frozen_in(source.store, source.study)
        ),
        queued=tuple(point for _, point in sorted(view.wishes().items())),
        front=front_or_none(source) or (),
    )


def count(view: View, specials: list[Folded]) -> dict[str, int]:
    """Trials by state, every state named; ``again`` are failures to be tried once more."""
    found = {**dict.fromkeys(_COUNTED, 0), **view.table.counts()}
    for trial in specials:
        found["again" if trial.state == "failed" and not trial.settled else trial.state] += 1
    found["unclaimed"] = max(0, view.of - len(view))
    return found


def failed_by(view: View, specials: list[Folded]) -> dict[str, int]:
    """Trials failed for good by cause, every cause named."""
    settled = [trial.counts.record for trial in specials if trial.settled and trial.state == "failed"]
    reasons = [*view.table.failures(), *(record.reason for record in settled if record is not None)]
    causes = [cause_of("failed", reason) for reason in reasons]
    return {cause: causes.count(cause) for cause in CAUSES}


def best_or_none(source: Source) -> Row | None:
    """The best trial, None if nothing is done, or if no goal is known, or several are."""
    try:
        return next(iter(best_rows(source)), None)
    except (NoResult, UsageError):
        return None


def front_or_none(source: Source) -> tuple[Row, ...] | None:
    """Where there are several goals the trials nobody dominates; None elsewhere."""
    if not isinstance(source.goal, tuple):
        return None
    return tuple(row_of(trial) for trial in front_trials(source.view, source.goal))


def _running(source: Source, seen: Seen, live: Live | None, now: float) -> Running:
    view, record = source.view, seen.record
    who = record.who if record else Who()
    quiet = source.quiet(seen, now)
    step, score = live.curve[-1] if live and live.curve else (None, None)
    report_age_s = max(0.0, now - live.modified) if live else None
    patience = patience_s(seen, 0, source.stale_s)
    return Running(
        n=seen.n,
        attempt=seen.attempt,
        me=who.me,
        host=who.host,
        pid=who.pid,
        started_at=record.started_at if record else None,
        beat_age_s=max(0.0, now - seen.modified),
        report_age_s=report_age_s,
        step=step,
        score=score,
        quiet=quiet,
        gone=record is not None and source.store.machine.gone(who),
        # one that has never reported may well be an objective that only returns: no hint
        stuck=not quiet and report_age_s is not None and report_age_s > patience,
        released=seen.attempt in view.released(seen.n),
        readable=record is not None,
    )


def _process(who: Who) -> tuple[str, str, int, str]:
    return who.host, who.boot, who.pid, who.token


def _who(view: View, records: list[TrialRecord]) -> dict[Who, tuple[int, int, int]]:
    """Who took part: attempts, done ones, running ones."""
    found = {who: (count, done, 0) for who, (count, done) in view.table.parts().items()}
    # an attempt that has a successor runs no more, as far as anybody knows
    tops = {(seen.n, seen.attempt) for seen in view.running()}
    for record in records:
        count, done, running = found.get(record.who, (0, 0, 0))
        found[record.who] = (count + 1, done + (record.state == "done"), running + ((record.n, record.attempt) in tops))
    return found


def _parts(found: dict[Who, tuple[int, int, int]]) -> Iterator[Part]:
    by_name: dict[tuple[str, str], list[Who]] = {}
    for who in found:
        by_name.setdefault((who.me, who.host), []).append(who)
    for (me, host), theirs in sorted(by_name.items()):
        attempts, done, running = (sum(found[who][at] for who in theirs) for at in range(3))
        processes = len({_process(who) for who in theirs})
        yield Part(me=me, host=host, processes=processes, attempts=attempts, done=done, running=running)
