"""``dibs show N``: one trial in full."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from dibs.view import AttemptDetail, TrialDetail, ago, duration, goal_text, score_text, scores_text, trial_detail

from ._opening import open_source
from ._options import Whole, as_json, command, store_option, study_option, verbose
from ._text import json_text, out, safe

__all__ = ["verb"]

_REPLAYED = {True: 0, False: 1, None: 5}  # exit codes
_SHOWN = 12  # points of a curve; --json has them all


@command("show")
@click.argument("n", type=Whole(min=0))
@store_option
@study_option
@click.option("--replay", is_flag=True, help="Ask the sampler again, with what it was shown then, and compare.")
@as_json
@verbose
def verb(n: int, store: str | None, study: str | None, replay: bool, as_json: bool) -> int:
    """Show one trial in full.

    Its point, and each attempt with who ran it, its curve, the pruner's verdict,
    its traceback, its files and its log.

    \b
    Example:
      dibs show 17 --store /mnt/shared/studies --study spam

    Exit codes: 0; 1 --replay gives another point; 2 usage, no such study, or no such trial; 3 store unusable;
    5 --replay cannot be recomputed.
    """
    work = os.environ.get("DIBS_WORK")
    detail = trial_detail(open_source(store, study), n, work=Path(work) if work else None, again=replay)
    if as_json:
        out(json_text(detail.to_json()))
    else:
        _say(detail)
    return _REPLAYED[detail.replay.matches] if detail.replay is not None else 0


def _say(detail: TrialDetail) -> None:
    row = detail.row
    state = f"{row.state}, to be tried again" if row.waiting else row.state
    score = f", score {score_text(row.score)}" if row.score is not None else ""
    if row.scores and row.score is None:
        score = f", scores {scores_text(row.scores)} (goals {goal_text(detail.goal)})"
    out(f"trial {row.n} of study {safe(detail.study)}: {state}{score}")
    for name, value in row.point.items():
        out(f"  {safe(name)} = {safe(repr(value))}")
    for name, value in (row.constraints or {}).items():
        out(f"  constraint {safe(name)} = {score_text(value)}: {'broken' if value > 0 else 'met'}")
    if detail.seed is not None:
        out(f"  seed {detail.seed}" + (", somebody's wish" if detail.wish else ""))
    if detail.replay is not None:
        out(f"  replay: {safe(detail.replay.said)}")
        for name, value in (detail.replay.point or {}).items():
            if detail.replay.matches is False:
                out(f"    {safe(name)} = {safe(repr(value))}")
    for attempt in detail.attempts:
        _say_attempt(attempt)


def _verdict(verdict: dict[str, Any]) -> str:
    """Who said it and what it was based on: ``median: step 3, value 0.9, threshold 0.5, peers 12``."""
    seen = verdict.get("seen")
    shown = [f"{name} {value}" for name, value in seen.items() if name != "digest"] if isinstance(seen, dict) else []
    return f"{verdict.get('pruner')}: {', '.join(shown)}"


def _say_attempt(attempt: AttemptDetail) -> None:
    out()
    out(f"attempt {attempt.attempt}: {attempt.state}" + (", released" if attempt.released else ""))
    if attempt.problem is not None:
        out(f"  problem  {safe(attempt.problem.why)}")
        out(f"  cure     {safe(attempt.problem.cure)}")
    if attempt.me:
        out(f"  by       {safe(attempt.me)} on {safe(attempt.host)}, process {attempt.pid}")
    if attempt.started_at:
        moved = f", last moved {ago(attempt.age_s)}" if attempt.state == "running" else ""
        took = f", took {duration(attempt.took_s)}" if attempt.took_s is not None else ""
        out(f"  started  {safe(attempt.started_at)}{took}{moved}")
    if attempt.reason:
        out(f"  reason   {safe(attempt.reason)}")
    if attempt.verdict:
        out(f"  verdict  {safe(_verdict(attempt.verdict))}")
    if attempt.curve:
        shown = " ".join(f"{step}:{value:.6g}" for step, value in attempt.curve[-_SHOWN:])
        out(f"  curve    {'... ' if len(attempt.curve) > _SHOWN else ''}{shown}")
    for name, digest in attempt.files.items():
        out(f"  file     {safe(name)}  {safe(digest)}")
    if attempt.folder:
        out(f"  {'log ' if attempt.log else 'work'}     {safe(attempt.log or attempt.folder)}")
    if attempt.traceback:
        out("\n".join(f"  | {line}" for line in attempt.traceback.rstrip().splitlines()))
