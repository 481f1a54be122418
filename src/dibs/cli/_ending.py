"""What ``dibs run`` prints when it is over: the winner, how far the study is, and what to type next."""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dibs.store import is_bucket
from dibs.view import Running, Source, StudyStatus, duration, study_status

from ._best import say_front, say_winner
from ._status import counted, plural
from ._text import out, safe, study_at

if TYPE_CHECKING:
    from dibs.study import Study
    from dibs.study._run import RunSummary

__all__ = ["said_json", "say_end", "say_stopped"]

_NAMED = 5  # holders named one by one
_NAMED_IN_FRONT = 20


def said_json(study: Study, summary: RunSummary, code: int) -> dict[str, Any]:
    """The end of a run as one JSON object: the study's status, and what this run did in it."""
    status = study_status(Source.over(study)).to_json()
    ours = {
        "exit_code": code, "unfinished": summary.unfinished, "why": summary.why, "trials": summary.trials,
        "ran": summary.ran, "failed": summary.failed,
    }  # fmt: skip
    return {**ours, **status}


def say_end(study: Study, summary: RunSummary, words: list[str]) -> None:
    """Print the end of a run; the last line of one that is unfinished says who holds what, and what to type."""
    status = study_status(Source.over(study))
    again, place = shlex.join(words), study_at(status.store, status.study)
    if status.best is not None:
        say_winner(status.best, status.goal)
    elif status.front:
        say_front(status.front, status.goal, _NAMED_IN_FRONT)
    else:
        out("no result yet" + (": no done trial meets its constraints" if status.counts["done"] else ""))
    out()
    out(f"trials   {counted(status)}; {summary.ran} in this run")
    out(f"seen     {plural(status.machines, 'machine')}, {plural(status.processes, 'process', 'es')}")
    out(f"store    {safe(status.store)}, study {safe(status.study)}")
    for problem in status.problems:
        out(f"damaged  {safe(problem.key)}: see dibs status {place}")
    out()
    if status.best is not None or status.front:
        out(f"result   dibs best {place}")
    if summary.why != "stopped":  # then the same command does nothing, and the last line says what does
        out(f"resume   {safe(again)}")
    reaches = "reaches the bucket" if is_bucket(status.store) else "mounts the store's folder"
    out(f"join     the same command on any machine that {reaches}")
    if status.counts["failed"]:
        out(f"failed   dibs trials {place} --state failed; to try them again: dibs retry {place}")
    ending = _ending(summary, status, again, place)
    if ending:
        out()
        out(ending)


def say_stopped(words: list[str]) -> None:
    """A run that was stopped by a signal, on stderr."""
    with suppress(OSError):  # the terminal may be what has gone
        out(f"dibs: stopped; the same command goes on: {safe(shlex.join(words))}", err=True)


def _ending(summary: RunSummary, status: StudyStatus, again: str, place: str) -> str:
    """The last line, empty if everything that was asked for is there."""
    left = summary.trials - status.settled
    if summary.why == "queued":
        return (
            f"{plural(len(status.queued), 'wish', 'es')} found no trial below {status.of} free: say a larger --trials"
        )
    if summary.why == "exhausted":
        return f"the sampler has no more points than these {status.of}, of {summary.trials} asked for"
    if not summary.unfinished:
        return ""
    if summary.why == "stopped":
        return f"left unfinished: the study is stopped; to go on: dibs resume {place}"
    if summary.why == "time":
        return f"left unfinished: the time is over with {left} of {summary.trials} not settled; to go on: {safe(again)}"
    held = [run for run in status.running if run.n < summary.trials]
    if not held:
        return f"left unfinished: {left} of {summary.trials} wait for a worker; to go on: {safe(again)}"
    names = ", ".join(map(_holder, held[:_NAMED])) + (f" and {len(held) - _NAMED} more" if len(held) > _NAMED else "")
    return f"left unfinished: {names}; wait with --wait, or if they are gone for good: dibs rescue {place}"


def _holder(run: Running) -> str:
    since = f" since {safe(run.started_at)}" if run.started_at else ""
    return f"trial {run.n} is held by {safe(run.me or 'an unreadable record')}{since} (last beat {_beat(run)})"


def _beat(run: Running) -> str:
    return f"{duration(run.beat_age_s)} before the newest" if run.beat_age_s >= 1 else "just now"
