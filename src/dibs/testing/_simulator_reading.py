"""What a reader makes of a study, as plain data for the invariants."""

from __future__ import annotations

from dibs.errors import RecordError
from dibs.record import TrialRecord, decode_trial
from dibs.study._view import View

from .invariants import Reading, Stands

__all__ = ["reading_of", "standing"]


def standing(view: View) -> dict[int, Stands]:
    """How every trial stands by the view."""
    trials = {}
    for folded in view.trials():
        record = folded.counts.record
        score = record.score if record is not None else None
        trials[folded.n] = Stands(folded.state, folded.settled, folded.counts.attempt, score)
    return trials


def reading_of(view: View) -> Reading:
    """A view as plain data; the records and blobs themselves straight from their names."""
    backend = view.store.backend
    attempts: dict[tuple[int, int], TrialRecord | None] = {}
    for entry in backend.list(view.keys.base):
        at = view.keys.parse(entry.key) if "/trial/" in entry.key or "/again/" in entry.key else None
        there = backend.read(entry.key)
        if at is not None and there is not None:
            try:
                attempts[at] = decode_trial(there.data, entry.key)
            except RecordError:
                copy = view.seens(at[0]).get(at[1])  # a copy in a roll is the record
                attempts[at] = copy.record if copy is not None else None
    blobs = {
        entry.key.rpartition("/")[2]: b"".join(backend.stream(entry.key) or ()) for entry in backend.list("blobs/")
    }
    return Reading(
        attempts=attempts,
        trials=standing(view),
        problems=tuple(sorted({*view.problems, *view.notes.problems})),
        queued=tuple(sorted(view.wishes())),
        stopped=view.notes.stopped,
        blobs=blobs,
        study=view.study,
    )
