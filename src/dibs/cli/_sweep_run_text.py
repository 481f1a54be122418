"""What ``dibs sweep run`` shows: progress, each failure when it happens, and how it ended with what to type next."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dibs.cell import tail_of
from dibs.store import Store
from dibs.study._events import Closed, Event, OnEvent, Said
from dibs.study._progress import Progress
from dibs.study._scoring import goal_said
from dibs.sweep import CellStanding, Plan, SweepEnd, log_of, newer_plan

from ._guard import log_to
from ._status import plural
from ._text import escaped, out, place_of, safe

__all__ = ["said_json", "say_end", "shown"]

_TAIL = 8  # lines of a log
_NAMED = 20
_STATES = ("done", "running", "waiting", "interrupted", "failed", "unsynced", "dropped")


@contextmanager
def shown(store: Store, plan: Plan, *, quiet: bool) -> Iterator[OnEvent]:
    """Progress on stderr, and every failure with the last lines of its log; the log's lines between, each once."""
    cells = _Named(store, plan)
    goal = goal_said(plan.task.goal)
    progress = None if quiet else Progress(len(plan.active), goal, named=lambda n: f"cell {cells.name(n)}")
    told: set[str] = set()

    def say(text: str) -> None:
        if progress is not None:
            progress.event(Said(logging.WARNING, text, 0))
        else:
            out(text, err=True)
            sys.stderr.flush()

    def take(event: Event) -> None:
        if isinstance(event, Said):
            if event.text in told:  # every worker follows the plan, and says so
                return
            told.add(event.text)
            event = event._replace(text=escaped(event.text, keep="\n"))
        elif isinstance(event, Closed) and event.reason:
            event = event._replace(reason=escaped(event.reason))
        if isinstance(event, Closed) and event.state == "failed":
            if progress is None:
                say(f"cell {cells.name(event.n)} failed: {event.reason}")
            else:
                progress.event(event)
            for line in cells.log(event.n, event.attempt):
                say(line)
        elif progress is not None:
            progress.event(event)
        elif isinstance(event, Said) and event.level >= logging.WARNING:
            say(event.text)

    try:
        with log_to(lambda level, text: take(Said(level, text, 0))):
            yield take
    finally:
        if progress is not None:
            progress.close()


class _Named:
    """Cells by their trial, also those that were planned since."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self.store, self.plan = store, plan

    def name(self, n: int) -> str:
        if self.plan.cell(n) is None:
            self.plan = newer_plan(self.store, self.plan)
        cell = self.plan.cell(n)
        return cell.name if cell is not None else f"of trial {n}"

    def log(self, n: int, attempt: int) -> Iterator[str]:
        path = log_of(self.store, self.plan.sweep, n, attempt)
        tail = tail_of(path)
        yield from (f"  | {line}" for line in tail[-_TAIL:])
        if path.exists():
            yield f"  its log: {escaped(str(path))}"


def said_json(store: Store, end: SweepEnd, code: int) -> dict[str, Any]:
    """The end of a run as one JSON object."""
    return {
        "exit_code": code, "sweep": end.sweep, "store": store.url, "plan": end.version, "why": end.why, "ran": end.ran,
        "failed": end.failed, "states": end.states, "open": [each.cell.name for each in end.open],
        "cells": [
            {
                "name": each.cell.name, "state": each.state, "n": each.cell.n,
                "attempt": each.counts.attempt if each.counts else None, "cause": each.counts.cause if each.counts else None,
                "reason": each.counts.reason if each.counts else None, "me": each.counts.me if each.counts else None,
                "score": each.counts.score if each.counts else None, "final": each.counts.final if each.counts else None,
            }
            for each in end.cells
        ],
    }  # fmt: skip


def say_end(store: Store, end: SweepEnd, words: list[str]) -> None:
    """Print how it ended: cells by state, what failed and why, who holds the rest, and what to type next."""
    place = place_of(store.url, end.sweep)
    states = end.states
    counted = ", ".join(f"{states[state]} {state}" for state in _STATES if states.get(state))
    out(f"cells    {counted or 'none'}; {end.ran} run here")
    out(f"store    {safe(store.url)}, sweep {safe(end.sweep)}, plan {end.version}")
    bad = [each for each in end.active if each.state in ("failed", "unsynced")]
    for each in bad[:_NAMED]:
        run = each.counts
        path = log_of(store, end.sweep, run.n, run.attempt) if run is not None else None
        log = f"; log {path}" if path is not None and path.exists() else ""
        out(f"{each.state:8} {each.cell.name}: {safe(_reason(each))}{safe(log)}")
    if len(bad) > _NAMED:
        out(f"         and {len(bad) - _NAMED} more: dibs sweep status {place}")
    for each in [each for each in end.open if each.state == "running"][:_NAMED]:
        run = each.counts
        if run is not None:
            quiet = ", its process is gone" if run.gone else ", quiet" if run.quiet else ""
            out(
                f"held     {each.cell.name} by {safe(run.me)} on {safe(run.host)} since {safe(run.since or '?')}{quiet}"
            )
    out()
    for line in _next(end, place, shlex.join(words)):
        out(line)


def _reason(each: CellStanding) -> str:
    run = each.counts
    return (run.reason or run.cause or "no reason was given") if run is not None else ""


def _next(end: SweepEnd, place: str, again: str) -> Iterator[str]:
    states = end.states
    if not end.active:
        yield f"there is no cell to run: append lines to the queue file, and dibs sweep plan {place}"
        return
    if end.why == "halted":
        yield f"halted by failures with {plural(len(end.open), 'cell')} left; to go on: {safe(again)}"
    elif end.open:
        what = "the time is over" if end.why == "time" else "others run them, or they wait for a worker"
        yield f"left unfinished: {plural(len(end.open), 'cell')}: {what}; to go on: {safe(again)} (--wait waits)"
    if states.get("unsynced"):
        yield f"unsynced results lie on one machine only: make room where they go, then dibs sweep retry {place}"
    if states.get("failed"):
        yield f"retry    dibs sweep retry {place}"
    if not end.open and not states.get("unsynced") and not states.get("failed"):
        others = [each for each in end.active if each.state != "done"]
        if others:
            yield f"{plural(len(others), 'cell')} of the sweep are not this run's: dibs sweep status {place}"
        else:
            yield f"prove    dibs sweep reconcile {place}"
