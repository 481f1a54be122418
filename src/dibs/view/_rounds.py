"""Federated runs and their rounds at a glance. Reads, and writes nothing."""

from __future__ import annotations

from dibs.errors import NotFound, RecordError, UsageError
from dibs.federation import Round, rounds_in, runs_in
from dibs.store import Store

from ._runs import RoundStatus, RunLine, RunStatus
from ._source import bare

__all__ = ["run_lines", "run_status"]


def run_lines(store: Store) -> tuple[RunLine, ...]:
    """The federated runs of a store, by their newest rounds. Raises StoreError for an outage."""
    lines = []
    for run in runs_in(store):
        if numbers := rounds_in(store, run):
            newest = _round(store, run, numbers[-1])
            lines.append(
                RunLine(
                    run,
                    len(numbers),
                    numbers[-1],
                    newest.state,
                    len(newest.answered),
                    len(newest.clients),
                    len(newest.late),
                    len(newest.rejected),
                )
            )
    return tuple(lines)


def run_status(store: Store, run: str | None = None) -> RunStatus:
    """One run; where the store has only one, that is the one. Raises NotFound, UsageError, StoreError."""
    if run is None:
        runs = runs_in(store)
        if not runs:
            raise NotFound(f"there is no run of federated rounds in {store.url} yet")
        if len(runs) > 1:
            raise UsageError(f"{store.url} has {len(runs)} runs ({', '.join(map(repr, runs[:20]))}): say --run NAME")
        run = runs[0]
    numbers = rounds_in(store, run)
    if not numbers:
        known = ", ".join(map(repr, runs_in(store)[:20])) or "none"
        raise NotFound(f"there is no run {run!r} of federated rounds in {store.url}; there is: {known}")
    return RunStatus(store.url, run, tuple(_round(store, run, number) for number in numbers))


def _round(store: Store, run: str, number: int) -> RoundStatus:
    seen, problems = Round(store, run, number), []
    try:
        seen.refresh()
    except RecordError as wrong:
        problems.append(bare(str(wrong)))
    problems += map(bare, seen.unreadable.values())
    end, top, of = seen.end, seen.top, seen.of
    clients = seen.terms.clients if seen.terms is not None else ()
    faulty = {client: update.fault for client, update in seen.updates.items() if update.fault is not None}
    outside = {client for client in seen.updates if of is not None and client not in of}
    state = "averaging" if top is not None else "waiting"
    if end is not None:
        state = "done" if end.blob is not None else "stopped"
    return RoundStatus(
        round=number,
        state="damaged" if problems and end is None else state,
        clients=tuple(clients),
        quorum=seen.terms.quorum if seen.terms is not None else None,
        answered=tuple(client for client in clients if client in seen.updates and client not in outside),
        missing=tuple(client for client in seen.missing if client not in seen.late),
        late=tuple(sorted(seen.late | outside)),
        rejected=dict(end.rejected) if end is not None else faulty,
        weights=dict(end.weights) if end is not None else {},
        by=end.me if end is not None else top.who.me if top is not None else "",
        attempt=end.attempt if end is not None else top.attempt if top is not None else None,
        reason=end.reason if end is not None else None,
        blob=end.blob if end is not None else None,
        kept=not seen.forgotten,
        problems=tuple(problems),
    )
