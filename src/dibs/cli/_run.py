"""``dibs run``: search a Python objective; the options, and what each stands for in ``Study.run``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dibs.errors import DibsError, StoreError, UsageError
from dibs.search import Goals
from dibs.store import Store
from dibs.study import Limits, Study
from dibs.study._events import Closed, Event, OnEvent, Said
from dibs.study._progress import Progress

from ._ending import said_json, say_end, say_stopped
from ._file import SearchFile, load, own_traceback
from ._guard import log_to, set_level
from ._options import (
    DURATION,
    GOAL,
    SIZE,
    SPAN,
    Whole,
    as_json,
    command,
    me_option,
    needed,
    store_option,
    study_option,
    verbose,
)
from ._text import escaped, json_text, out, study_at

if TYPE_CHECKING:
    from dibs.study._run import RunSummary

__all__ = ["check_asked", "conclude", "exists", "mended", "open_search", "search", "verb"]


@command("run")
@click.argument("file", metavar="FILE[:OBJECTIVE]")
@store_option
@study_option
@click.option("--trials", type=Whole(min=0), metavar="N", help="How many in all, over all machines.")
@click.option("--workers", type=Whole(min=1), default=1, show_default=True, metavar="W", help="Processes here.")
@click.option(
    "--goal", type=GOAL, help="What is better, min or max; for several scores min,max.  [default: the file's goal]"
)
@click.option(
    "--sampler",
    metavar="NAME",
    help="auto, gp, tpe, nsga2, cmaes, sobol, random or grid.  [default: the file's, else auto]",
)
@click.option("--pruner", metavar="NAME[,NAME]",
              help="median, percentile, asha, hyperband, patience, diverged.  [default: the file's, else none]")  # fmt: skip
@click.option("--max-step", type=Whole(min=0), metavar="STEP", help="The last step that a full trial reports.")
@click.option("--seed", type=Whole(min=0), metavar="S", help="Makes the points the same again.  [default: drawn once]")
@click.option("--time", type=SPAN, help="No new trials after so long, such as 2h.")
@click.option("--time-limit", type=SPAN, help="A trial that takes longer is failed.")
@click.option("--memory", type=SIZE, help="A trial whose processes hold more is failed; such as 4G.")
@click.option("--cpus", type=Whole(min=1), metavar="K", help="Cores for each worker.  [default: its share]")
@click.option("--gpus", type=Whole(min=1), metavar="K", help="Devices for each worker alone.")
@click.option("--max-running", type=Whole(min=1), metavar="K",
              help="Trials at once in the whole study, by those who say so.")  # fmt: skip
@click.option("--retries", type=Whole(min=0), default=0, metavar="K", help="Try a failed trial K times more.")
@click.option("--max-failures", type=Whole(min=0), default=3, show_default=True, metavar="K",
              help="Give up if the first K trials of a worker all fail; 0: never.")  # fmt: skip
@click.option("--stale", type=SPAN, help="Quiet means unseen for so long; fixed at creation.  [default: 1h]")
@click.option("--rescue-after", type=SPAN, help="Take up trials quiet for so long.  [default: the study's --stale]")
@click.option("--no-rescue", is_flag=True, help="Take up only what is certainly dead.")
@click.option("--grace", type=DURATION, default=30.0, help="What a trial gets to end after SIGTERM.  [default: 30s]")
@click.option("--wait", is_flag=True, help="Stay until every trial is settled, also those of others.")
@click.option("--ranks", type=click.Choice(["independent"]), help="Every rank of torchrun is a worker of its own.")
@click.option("--create", is_flag=True, help="Create the store even inside a job array.")
@click.option("--unchecked", is_flag=True, help="Trust a file system nobody vouches for.")
@click.option("--fsync", type=click.Choice(["result", "all", "none"]), default="result", show_default=True,
              help="What survives a power cut: results, claims too, or nothing that is not on the disk yet.")  # fmt: skip
@me_option
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@as_json
@verbose
def verb(file: str, store: str | None, study: str | None, as_json: bool, **options: Any) -> int:
    """Search a Python objective.

    FILE has a `space`, a function `objective(trial)` that returns the score, and a `goal`, "min" or "max" (or a list of
    these, where it returns as many scores); it may have `sampler`, `pruner`, `max_step`, `name` (of the study) and
    `trials`. Flags win. What the objective prints goes to its trial's log.

    \b
    Example:
      dibs run search.py --store /mnt/shared/studies --study spam --trials 100
      dibs run search.py:train --study spam --trials 100 --workers 4 --time 2h

    The first run creates the study, every other one joins it, on as many machines as mount the folder. N is the total:
    the same command again finishes what was interrupted and runs nothing twice; a larger N adds trials. Ctrl-C: no new
    trials; again: interrupt the running ones. With --json one object at the end.

    With --time-limit, --memory, --cpus or --gpus trials run in worker processes, also with --workers 1. --gpus chooses
    from CUDA_VISIBLE_DEVICES, or from what nvidia-smi counts; all runs on a host and store share them.

    \b
    Exit codes: 0 all trials are settled; 1 trials of this run failed; 2 usage;
    3 store unusable; 4 the study was created otherwise; 6 left unfinished: others
    run the rest, --time is over, or the study is stopped; 129/130/143 stopped by
    SIGHUP/Ctrl-C/SIGTERM.
    """
    where = needed(store, "store", "FOLDER")
    found = load(file)
    name = needed(study or found.name(), "study", "NAME", more=f'or name = "NAME" in {found.path}')
    trials = options["trials"] if options["trials"] is not None else found.trials()
    if trials is None:
        raise UsageError(f"no number of trials: say --trials N, or put trials = N in {found.path} or a dibs.toml")
    check_asked(options)
    set_level(logging.WARNING if options["quiet"] else logging.INFO, only_louder=True)
    opened = open_search(where, name, found, options)
    words = ["dibs", *click.get_current_context().find_root().meta["dibs.words"]]
    return conclude(opened, search(opened, found, trials, options, words), words, as_json=as_json)


def check_asked(options: dict[str, Any]) -> None:
    """UsageError for options that exclude one another."""
    if options["rescue_after"] is not None and options["no_rescue"]:
        raise UsageError("--rescue-after and --no-rescue: choose one")


def conclude(study: Study, summary: RunSummary, words: list[str], *, as_json: bool) -> int:
    """Say how a run ended; returns its exit code."""
    code = 6 if summary.unfinished else int(summary.failed > 0 and summary.states.get("failed", 0) > 0)
    if as_json:
        out(json_text(said_json(study, summary, code)))
    else:
        say_end(study, summary, words)
    return code


def open_search(where: str, name: str, found: SearchFile, options: dict[str, Any]) -> Study:
    """Create the study, or join it. A missing goal is only an error where there is no study yet."""
    goal: Goals | None = options["goal"] or found.goal()
    if goal is None and not exists(where, name):
        raise UsageError(f'no goal: say --goal min or put goal = "min" in {found.path} (or max, if more is better)')
    create = (options["create"] or None) if goal is not None else False
    store = Store(where, create=create, unchecked=options["unchecked"], fsync=options["fsync"])
    return Study(
        store, name, found.space, goal=goal, sampler=options["sampler"] or found.sampler(), seed=options["seed"],
        pruner=options["pruner"] or found.pruner(), max_step=_first(options["max_step"], found.max_step()),
        stale_s=options["stale"], me=options["me"], ranks=options["ranks"],
    )  # fmt: skip


def _first(flag: int | None, files: int | None) -> int | None:
    return flag if flag is not None else files


def exists(where: str, name: str) -> bool:
    """Whether there is such a study; False too where no store answers."""
    try:
        return name in Store(where, create=False, unchecked=True).studies()
    except StoreError:
        return False


def search(study: Study, found: SearchFile, trials: int, options: dict[str, Any], words: list[str]) -> RunSummary:
    """Run it, with progress; what the objective raises is shown as its file's."""
    limits = Limits(options["time_limit"], options["memory"], options["cpus"], options["gpus"])
    rescue_after_s = None if options["no_rescue"] else options["rescue_after"] or study.stale_s
    try:
        with _progress(trials, study.goal, options["quiet"]) as on_event:
            return study.run(
                found.objective, trials, options["workers"], retries=options["retries"], time_s=options["time"],
                rescue_after_s=rescue_after_s, grace_s=options["grace"], max_failures=options["max_failures"] or None,
                wait=options["wait"], limits=limits, max_running=options["max_running"], capture=True, on_event=on_event, progress=False,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit):
        say_stopped(words)
        raise
    except Exception as wrong:
        ours = isinstance(wrong, DibsError) and not isinstance(wrong, UsageError)  # the store's trouble, say
        # a run raises what the objective raised, or an error of its own because of that
        text = None if ours else own_traceback(wrong) or own_traceback(wrong.__cause__)
        if text is not None:
            raise DibsError(
                f"the first {options['max_failures']} trials all failed, so the rest is not tried (see --max-failures). "
                f"The last one raised:\n{text}\n{mended(study)}"
            ) from wrong
        if isinstance(wrong, DibsError) and "all failed" in str(wrong):
            raise DibsError(f"{wrong}\n{mended(study)} (see --max-failures)") from wrong
        raise


def mended(study: Study) -> str:
    """What to type once the cause is gone: the same command alone would leave the trials that failed as they are."""
    return f"once that is mended: dibs retry {study_at(study.store.url, study.name)}, and the same command"


@contextmanager
def _progress(trials: int, goal: Goals, quiet: bool) -> Iterator[OnEvent | None]:
    """Progress on stderr, the log lines between; nothing in it reaches the terminal raw."""
    if quiet:
        yield None
        return
    progress = Progress(trials, goal)

    def shown(event: Event) -> None:
        if isinstance(event, Said):
            event = event._replace(text=escaped(event.text, keep="\n"))
        elif isinstance(event, Closed) and event.reason:
            event = event._replace(reason=escaped(event.reason))
        progress.event(event)

    try:
        with log_to(lambda level, text: shown(Said(level, text, 0))):
            yield shown
    finally:
        progress.close()
