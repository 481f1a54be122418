"""Where a sweep stands: each cell of a plan with the attempts at it, and what they fold to. Reads only.

What the attempts of a cell amount to is the fold of a trial's; what they left, and why they ended, is in their blobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from dibs.cell import Cause, is_limit
from dibs.errors import DibsError, RecordError, StoreError
from dibs.record import TrialRecord, Who, decode, decode_trial
from dibs.store import Store, SweepKeys
from dibs.study._definition import DEFAULT_STALE_S
from dibs.study._fold import Folded, Seen
from dibs.study._quiet import counts as quiet_counts
from dibs.study._quiet import is_quiet
from dibs.study._succession import POISON
from dibs.study._view import View, view_of

from ._models import Artifact, Cell, Plan
from ._poison import with_evidence
from ._runs import STATES, CellStanding, Run
from ._where import log_of

__all__ = ["STATES", "CellStanding", "Run", "standing"]

_CAUSES = (*map(str, Cause), "anomaly", "config changed", POISON)
_SCRIPT = "program/"


def standing(store: Store, plan: Plan, *, whole: bool = True, probe: bool = False) -> list[CellStanding]:
    """Every cell of the plan as seen now, dropped ones, too. ``whole``: read what finished attempts have left, and why others
    ended, from their blobs; without it that is known as far as the records' reasons say. ``probe``: ask the store what time it
    is, by a file, while anything runs; where nobody else moves an attempt is never quiet otherwise.

    Raises StoreError if the store does not answer; what does not parse counts as running, as everywhere.
    """
    view = view_of(store, plan.sweep, SweepKeys(plan.sweep))
    view.refresh(beats=True)
    folds = {cell.n: view.trial(cell.n) for cell in plan.cells}
    seens = {n: list(view.seens(n).values()) for n, folded in folds.items() if folded is not None}
    if probe and any(not seen.closed for found in seens.values() for seen in found):
        with suppress(StoreError):  # a store that can only be read knows no better
            view.newest = max(view.newest, store.now())
    closed = [seen for found in seens.values() for seen in found if seen.closed]
    records = _records(store, view, closed)
    ended = _ended(store, list(records.values())) if whole else {}
    found = []
    for cell in plan.cells:
        runs = tuple(_run(view, seen, records, ended) for seen in sorted(seens.get(cell.n, ()), key=_attempt))
        if whole:
            runs = with_evidence(runs, lambda run: log_of(store, plan.sweep, run.n, run.attempt))
        found.append(_standing(cell, folds[cell.n], runs))
    return found


def _attempt(seen: Seen) -> int:
    return seen.attempt


def _standing(cell: Cell, folded: Folded | None, runs: tuple[Run, ...]) -> CellStanding:
    counts = next((run for run in runs if folded is not None and run.attempt == folded.counts.attempt), None)
    waiting = not cell.dropped and (folded is None or folded.waiting)
    return CellStanding(cell, _state(cell, folded, counts), runs, counts, waiting)


def _state(cell: Cell, folded: Folded | None, counts: Run | None) -> str:
    if cell.dropped:
        return "dropped"
    if folded is None or counts is None:
        return "waiting"
    if counts.state == "failed" and folded.settled:
        return "unsynced" if counts.cause == Cause.SYNC else "failed"
    if folded.waiting:  # a failure that may be tried again is as good as not begun
        return "waiting" if counts.state == "failed" else "interrupted"
    return "running" if not folded.settled else counts.state


def _records(store: Store, view: View, closed: list[Seen]) -> dict[tuple[int, int], TrialRecord]:
    """The closed attempts' records with all that their files hold (what a reader keeps of them is less)."""
    keys = [view.keys.attempt(seen.n, seen.attempt) for seen in closed]
    found: dict[tuple[int, int], TrialRecord] = {}
    for seen, key, there in zip(closed, keys, store.backend.read_many(keys), strict=True):
        record = seen.record
        if there is not None and not isinstance(there, RecordError):
            try:
                read = decode_trial(there.data, key)
                record = read if (read.n, read.attempt, read.closed) == (seen.n, seen.attempt, True) else record
            except RecordError:
                pass  # damaged since: the copy is the record
        if record is not None:
            found[seen.n, seen.attempt] = record
    return found


def _ended(store: Store, records: list[TrialRecord]) -> dict[str, Mapping[str, Any]]:
    """By blob: how the program ended; of a blob that does not read, nothing."""

    def read(blob: str) -> Mapping[str, Any]:
        try:
            ended = decode(store.get(blob), f"blob {blob}").get("ended")
        except DibsError:
            return {}
        return ended if isinstance(ended, dict) else {}

    blobs = sorted({record.blob for record in records if record.blob})
    return dict(zip(blobs, store.backend.at_once(read, blobs), strict=True))


def _run(
    view: View, seen: Seen, records: Mapping[tuple[int, int], TrialRecord], ended: Mapping[str, Mapping[str, Any]]
) -> Run:
    record = records.get((seen.n, seen.attempt), seen.record)
    who = record.who if record is not None else Who()
    told = ended.get(record.blob or "", {}) if record is not None else {}
    saw = record.saw if record is not None and isinstance(record.saw, dict) else {}
    files = dict(record.files) if record is not None else {}
    before, _ = quiet_counts(list(view.seens(seen.n).values()), view.released(seen.n))
    state = seen.state if seen.state != "pruned" else "failed"
    final, digest = told.get("final"), saw.get("digest")
    return Run(
        n=seen.n,
        attempt=seen.attempt,
        state=state,
        cause=_cause(state, record.reason if record is not None else None, told),
        reason=record.reason if record is not None else None,
        me=who.me,
        host=who.host,
        since=record.started_at if record is not None else None,
        took_s=record.took_s if record is not None else None,
        score=record.score if record is not None else None,
        artifacts=_artifacts(told.get("artifacts")),
        final=final if isinstance(final, str) else None,
        scripts={name.removeprefix(_SCRIPT): sha for name, sha in files.items() if name.startswith(_SCRIPT)},
        quiet=is_quiet(seen, view.newest, before, DEFAULT_STALE_S),
        digest=digest if isinstance(digest, str) else None,
        files=files,
        edited=edited if isinstance(edited := told.get("config"), str) else None,
        gone=state == "running" and view.store.machine.gone(who),
        moved=seen.modified,
    )


def _cause(state: str, reason: str | None, told: Mapping[str, Any]) -> str | None:
    """Why it ended badly: what was seen of the program, else what the reason opens with."""
    if state not in ("failed", "interrupted"):
        return None
    if isinstance(told.get("cause"), str):
        return str(told["cause"])
    if is_limit(reason):
        return str(Cause.TIME if "time limit" in (reason or "") else Cause.CGROUP_MEMORY)
    return next((cause for cause in _CAUSES if (reason or "").startswith(cause)), None)


def _artifacts(told: Any) -> dict[str, Artifact] | None:
    """What the blob says was left; None for what no version of dibs wrote."""
    if not isinstance(told, dict):
        return None
    try:
        return {str(name): Artifact(str(name), str(said["sha256"]), int(said["bytes"])) for name, said in told.items()}
    except (KeyError, TypeError, ValueError):
        return None
