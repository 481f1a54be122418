"""One trial in full: every attempt with its curve, traceback, files, log and notes."""

from __future__ import annotations

from pathlib import Path

from dibs.errors import NotFound
from dibs.record import Who
from dibs.study._fold import Seen
from dibs.study._replay import replay
from dibs.study._scoring import score_in, scores_in
from dibs.study._workplace import places_of

from ._live import Curve, live_of, told_of
from ._models import AttemptDetail, Problem, Replayed, TrialDetail
from ._source import Source, bare, cure_of
from ._table import row_of

__all__ = ["trial_detail"]

_LOST = "the curve and the traceback are out of reach; the record with its score is whole"


def trial_detail(source: Source, n: int, *, work: Path | None = None, again: bool = False) -> TrialDetail:
    """Trial ``n`` as seen now. ``work``: where attempts have their folders, if ``DIBS_WORK`` says so.
    ``again``: also ask the sampler once more, with what the trial's asker had seen, and compare.

    Writes nothing. Raises NotFound if nobody has claimed that trial, StoreError if the store does not answer.
    """
    view = source.view
    trial = view.trial(n)
    if trial is None:
        said = "nobody has claimed it yet" if 0 <= n < view.of else f"its trials are 0 to {view.of - 1}"
        raise NotFound(f"study {source.study!r} has no trial {n}: {said if view.of else 'it has no trials'}")
    seens = view.whole(n)
    first = next((seen.record for seen in seens if seen.record), None)
    return TrialDetail(
        study=source.study,
        store=source.store.url,
        goal=source.goal,
        row=row_of(trial),
        seed=first.seed if first else None,
        wish=next((seen.record.wish for seen in seens if seen.record and seen.record.wish), None),
        attempts=tuple(_attempt(source, seen, work) for seen in seens),
        replay=Replayed(*replay(view, source.definition, n)) if again else None,
    )


def _attempt(source: Source, seen: Seen, work: Path | None) -> AttemptDetail:
    view, record = source.view, seen.record
    key = view.keys.attempt(seen.n, seen.attempt)
    curve: Curve = ()
    trace, verdict, problem, ended = None, None, None, None
    if record is None:
        problem = Problem(key, bare(view.problems.get(key, "does not read")), cure_of(key, seen.newer), seen.newer)
    elif record.closed:
        curve, trace, verdict, wrong, ended = told_of(source.store, record)
        problem = Problem(f"blobs/{record.blob}", wrong, _LOST) if wrong else None
    elif (live := live_of(source, record)) is not None:
        curve = live.curve
    who = record.who if record else Who()
    folder = _folder(source, seen, work)
    log = folder / "log.txt" if folder is not None else None
    return AttemptDetail(
        attempt=seen.attempt,
        key=key,
        state=seen.state,
        score=score_in(record) if record else None,
        step=record.step if record else None,
        reason=record.reason if record else None,
        again=record.again if record else False,
        released=seen.attempt in view.released(seen.n),
        started_at=record.started_at if record else None,
        took_s=record.took_s if record else None,
        age_s=max(0.0, view.newest - seen.modified),
        me=who.me,
        host=who.host,
        pid=who.pid,
        curve=curve,
        traceback=trace,
        verdict=verdict,
        files=dict(record.files) if record else {},
        blob=record.blob if record else None,
        folder=str(folder) if folder is not None else None,
        log=str(log) if log is not None and log.exists() else None,
        problem=problem,
        scores=scores_in(record) if record else (),
        constraints=dict(record.constraints) if record and record.constraints else None,
        ended=ended,
    )


def _folder(source: Source, seen: Seen, work: Path | None) -> Path | None:
    """The attempt's private folder, if it is on this machine."""
    path, nonce = source.view.keys.work(seen.n, seen.attempt), seen.record.nonce if seen.record else ""
    return next((place for place in places_of(source.store, path, nonce, work) if place.is_dir()), None)
