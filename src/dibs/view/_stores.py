"""A store at a glance: its studies, one line each, its federated runs, and which sweeps there are."""

from __future__ import annotations

from dibs.store import Store

from ._models import StoreStatus, StudyLine
from ._source import Source
from ._status import best_or_none, count, front_or_none

__all__ = ["store_status"]


def store_status(store: Store) -> StoreStatus:
    """A store's studies, sweeps and runs as seen now. Writes nothing; raises StoreError if the store does not answer."""
    from dibs.sweep import sweeps_in

    from ._rounds import run_lines  # what only a store with runs needs, a study's reader need not load

    marker = store.marker
    return StoreStatus(
        store=store.url,
        claim=marker.get("claim"),
        verdict=marker.get("verdict"),
        studies=tuple(_line(Source.of(store, name)) for name in store.studies()),
        runs=run_lines(store),
        sweeps=tuple(sweeps_in(store)),
    )


def _line(source: Source) -> StudyLine:
    best, front = best_or_none(source), front_or_none(source)
    return StudyLine(
        study=source.study,
        goal=source.goal,
        of=source.view.of,
        counts=count(source.view, source.view.specials()),
        best=best.score if best else None,
        stopped=source.view.notes.stopped,
        problems=len(source.problems()),
        newest_at=source.newest_at,
        still_s=source.still_s,
        front=None if front is None else len(front),
    )
