"""``dibs status``: a store's studies, or one study at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dibs.view import (
    Problem,
    Running,
    Source,
    StoreStatus,
    StudyStatus,
    ago,
    duration,
    goal_text,
    point_text,
    score_text,
    scores_text,
    store_status,
    study_status,
)

from ._opening import open_store
from ._options import as_json, command, store_option, study_option, verbose
from ._text import json_text, out, place_of, safe, table

__all__ = ["counted", "plural", "say_problems", "verb"]

_FRONT = 5  # rows of a front that are shown


@command("status")
@store_option
@study_option
@as_json
@verbose
def verb(store: str | None, study: str | None, as_json: bool) -> int:
    """Show what is happening in a study, or in a store.

    With a study: how far it is, who runs what and since when, what stands still, what does not read and what to do
    about it. Without one: all studies of the store, and what sweeps there are.

    \b
    Example:
      dibs status --store /mnt/shared/studies
      dibs status --store /mnt/shared/studies --study spam

    It takes no lock and writes nothing, so ages count back from the newest stamp in the study: they are at least so
    old. Quiet means not seen for longer than its patience, not dead.

    Exit codes: 0; 2 usage, or no such study; 3 store unusable.
    """
    opened = open_store(store)
    told = study_status(Source.of(opened, study)) if study else store_status(opened)
    if as_json:
        out(json_text(told.to_json()))
    elif isinstance(told, StudyStatus):
        _say_study(told)
    else:
        _say_store(told)
    return 0


def counted(status: StudyStatus) -> str:
    """``41 done, 3 failed (1 over a limit), 4 running (1 quiet)``: the states anybody is in, and why."""
    names = {"again": "to be tried again", "unclaimed": "not begun"}
    why = {
        "failed": {"over a limit": status.failed_by["limit"], "poison": status.failed_by["poison"]},
        "running": {
            "quiet": sum(run.quiet and not run.gone for run in status.running),
            "process gone": sum(run.gone for run in status.running),
        },
    }
    said = []
    for state, k in status.counts.items():
        parts = ", ".join(f"{part} {name}" for name, part in why.get(state, {}).items() if part)
        said += [f"{k} {names.get(state, state)}" + (f" ({parts})" if parts else "")] if k else []
    return ", ".join(said) or "no trials"


def _say_store(status: StoreStatus) -> None:
    sweeps = f", {plural(len(status.sweeps), 'sweep')}" if status.sweeps else ""
    out(f"store {safe(status.store)}: {plural(len(status.studies), 'stud', 'ies', 'y')}{sweeps}")
    if status.studies:
        _say_studies(status)
    for name in status.sweeps:
        out(f"  sweep {safe(name)}: dibs sweep status {place_of(status.store, name)}")
    for run in status.runs:
        newest = f"round {run.newest} {run.state}, {run.answered} of {run.clients} answered"
        newest += "".join(
            f", {count} {word}" for count, word in ((run.late, "late"), (run.rejected, "rejected")) if count
        )
        out(f"  federated run {safe(run.run, 60)}: {plural(run.rounds, 'round')}; {newest}")


def _say_studies(status: StoreStatus) -> None:
    rows = [
        (
            safe(line.study, 60),
            goal_text(line.goal),
            f"{line.counts['done'] + line.counts['pruned'] + line.counts['failed']}/{line.of}",
            line.counts["running"],
            score_text(line.best) if line.front is None else f"front {line.front}",
            ago(line.still_s),
            ", ".join([*(["stopped"] if line.stopped else []), *_problems(line.problems)]),
        )
        for line in status.studies
    ]
    table(("study", "goal", "settled", "running", "best", "last moved", ""), rows, right=(2, 3, 4), indent=2)


def _problems(count: int) -> list[str]:
    return [f"{count} do not read"] if count else []


def _say_study(status: StudyStatus) -> None:
    out(f"study {safe(status.study)} in {safe(status.store)}")
    sampler = f", sampler {safe(status.sampler['name'])}" if status.sampler else ""
    pruner = f", pruner {safe(_label(status.pruner))}" if status.pruner else ""
    seed = f", seed {status.seed}" if status.seed is not None else ""
    out(f"  goal      {goal_text(status.goal) if status.goal else 'not known'}{sampler}{pruner}{seed}")
    for at, (name, param) in enumerate(status.space.params.items() if status.space else ()):
        out(f"  {'' if at else 'space':8}  {safe(name)} = {safe(repr(param))}")
    out(f"  trials    {status.of}: {counted(status)}")
    if status.attached:
        out(f"  attached  {status.attached} results from elsewhere")
    if status.best:
        out(
            f"  best      {score_text(status.best.score)}, trial {status.best.n}: {safe(point_text(status.best.point))}"
        )
    for at, row in enumerate(status.front[:_FRONT]):
        out(f"  {'' if at else 'front':8}  {scores_text(row.scores)}, trial {row.n}: {safe(point_text(row.point))}")
    if len(status.front) > _FRONT:
        out(f"            and {len(status.front) - _FRONT} more that no other one beats: dibs best")
    if status.parts:
        out(f"  seen      {plural(status.machines, 'machine')}, {plural(status.processes, 'process', 'es')}")
    if status.waiting:
        out(f"  waiting   {status.waiting}: any worker may take them up")
    if status.stopped:
        out("  stopped   no new trials anywhere; `dibs resume` lets workers go on")
    for at, script in enumerate(status.programs):
        out(
            f"  {'' if at else 'program':8}  {safe(script.file)} {script.digest[:12]}, run as {safe(script.command, 60)}"
        )
    for point in status.queued:
        out(f"  queued    {safe(point_text(point))}")
    if status.queued and not status.counts["unclaimed"]:
        out(f"            no trial below {status.of} is free: run with a larger --trials to make room")
    _say_parts(status)
    _say_running(status)
    say_problems(status.problems)
    if status.newest_at:
        out()
        out(f"Last moved {status.newest_at} by the store's clock ({ago(status.still_s)} by this machine's).")


def _label(pruner: dict[str, Any]) -> str:
    """The name, or the names of several."""
    args = pruner.get("args")
    parts = args.get("of") if isinstance(args, dict) else None
    named = [part["name"] for part in parts if isinstance(part, dict) and "name" in part] if parts else []
    return ", ".join(map(str, named or [pruner.get("name")]))


def _say_parts(status: StudyStatus) -> None:
    if not status.parts:
        return
    out()
    rows = [(part.me, part.host, part.processes, part.attempts, part.done, part.running) for part in status.parts]
    header = ("who", "host", "processes", "attempts", "done", "running")
    table(header, rows, right=(2, 3, 4, 5), indent=2)


def _say_running(status: StudyStatus) -> None:
    if not status.running:
        return
    out()
    rows = [
        (
            run.n, run.attempt, run.me, run.host, run.pid or "", duration(run.beat_age_s), duration(run.report_age_s),
            "" if run.step is None else f"{run.step}: {score_text(run.score)}", _note(run),
        )
        for run in status.running
    ]  # fmt: skip
    header = ("running", "attempt", "me", "host", "pid", "last beat", "last report", "step: score", "")
    table(header, rows, right=(0, 1, 4, 5, 6), indent=2)
    out("  (ages count back from the newest stamp below: at least so old)")


def _note(run: Running) -> str:
    notes = {
        "unreadable": not run.readable,
        "process gone": run.gone,
        "quiet": run.quiet and not run.gone,
        "stuck? it beats but reports no more": run.stuck and not run.gone,
        "released": run.released,
    }
    return ", ".join(note for note, holds in notes.items() if holds)


def say_problems(problems: Sequence[Problem]) -> None:
    """What does not read, why, and what to do about it."""
    if not problems:
        return
    out()
    out(f"  {len(problems)} do not read:")
    for problem in problems:
        out(f"    {safe(problem.key)}")
        out(f"      why   {safe(problem.why)}")
        out(f"      cure  {safe(problem.cure)}")


def plural(count: int, word: str, many: str = "s", one: str = "") -> str:
    """``1 trial``, ``2 trials``."""
    return f"{count} {word}{one if count == 1 else many}"
