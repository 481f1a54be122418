"""``dibs exec``: search any program; its options are those of ``dibs run``, and what a command line needs besides."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import click

from dibs.cell import Command, Isolation, Limits, Template, freeze, isolation_status, parse, resident, text_of
from dibs.errors import DibsError, NotFound, UsageError
from dibs.space import Constant, Space
from dibs.store import Store, is_bucket, local_path
from dibs.study import Study
from dibs.study._program import Program, check_space
from dibs.study._workplace import temporary_place

from . import _run
from ._file import SearchFile
from ._guard import set_level
from ._options import command, needed
from ._spacefile import read_space
from ._text import out, safe

__all__ = ["verb"]

log = logging.getLogger("dibs")
_SHOWN = 5  # commands of a dry run
_OTHERWISE = {
    "goal": ("[default: the file's goal]", "[default: as created]"),
    "sampler": ("[default: the file's, else auto]", "[default: auto]"),
    "pruner": ("[default: the file's, else none]", "[default: none]"),
}


def _of_run() -> Iterator[click.Parameter]:
    """The options of ``dibs run``, without its file."""
    for param in _run.verb.params:
        if isinstance(param, click.Option):
            param = copy.copy(param)
            old, new = _OTHERWISE.get(param.name or "", ("", ""))
            param.help = (param.help or "").replace(old, new) if old else param.help
            yield param


@command("exec")
@click.argument("words", metavar="COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("--space", "space_file", metavar="FILE", type=click.Path(path_type=Path),
              help="The space: TOML, JSON or YAML.  [default: the study's, if it exists]")  # fmt: skip
@click.option("--shell", is_flag=True, help="COMMAND is one line for sh -c.")
@click.option("--out", metavar="FOLDER", help="Output folders, such as /scratch/{name}.  [default: each attempt's own]")
@click.option("--keep", multiple=True, metavar="FILE",
              help="Keep this file of {out} in the store; the next attempt finds it in {previous}.")  # fmt: skip
@click.option("--freeze", multiple=True, metavar="FILE", help="Run from a private copy of this file, too.")
@click.option("--no-freeze", is_flag=True, help="Run the script itself, whoever edits it.")
@click.option("--isolate", is_flag=True, help="Let it write only to its own folder and scratch.")
@click.option("--writable", multiple=True, metavar="FOLDER", type=click.Path(path_type=Path),
              help="With --isolate: scratch besides temporary folders and caches.")  # fmt: skip
@click.option("--deny-read", multiple=True, metavar="PATH", type=click.Path(path_type=Path),
              help="Let it read nothing there; includes --isolate.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print command lines of some points, and run nothing.")
def verb(words: tuple[str, ...], store: str | None, study: str | None, as_json: bool, **options: Any) -> int:
    """Search any program, in any language.

    COMMAND is run once for each trial, in a folder of its own. Braces are filled in: {lr} and every other parameter,
    {out} {name} {trial} {attempt} {seed} {result} {here}, and {previous}, the folder of an earlier attempt; {{ is a
    brace. The same is in the environment: DIBS_PARAM_LR, DIBS_OUT and so on. A word without a value at this point is
    left out, together with the option before it.

    The program says its score on stdout, {"score": 0.1} on a line, or in the file $DIBS_RESULT; lines such as
    {"step": 3, "score": 0.2} are its curve, and may get it stopped by a --pruner. Its output is its trial's log.

    \b
    Example:
      dibs exec --space space.toml --store /mnt/shared/studies --study mill \\
        --goal min --trials 100 --workers 4 -- ./train.sh {lr} {layers}

    The program, and the script it runs, are looked for in this folder ({here}), checked before anything is claimed, and
    run from a private copy. SIGTERM and a second Ctrl-C reach the program, which has --grace to end; so does a program
    over --time-limit. Everything else is as in `dibs run`.

    \b
    Exit codes: 0 all trials are settled; 1 trials of this run failed; 2 usage, or
    a program that is not there; 3 store unusable; 4 the study was created
    otherwise; 6 left unfinished: others run the rest, --time is over, or the
    study is stopped; 129/130/143 stopped by SIGHUP/Ctrl-C/SIGTERM.
    """
    set_level(logging.WARNING if options["quiet"] else logging.INFO, only_louder=True)
    here = Path.cwd()
    given = Command.of(
        words, here=here, path=os.environ.get("PATH"), shell=options["shell"], freeze=options["freeze"],
        scripts=not options["no_freeze"],
    )  # fmt: skip
    folders = parse(options["out"]) if options["out"] else None
    if options["dry_run"]:
        space = read_space(options["space_file"]) if options["space_file"] else _space_of(store, study)
        check_space(given, space, folders)
        _note_unnamed(given, space)
        return _dry(given, space, options["seed"])
    where, name = needed(store, "store", "FOLDER"), needed(study, "study", "NAME")
    if options["trials"] is None:
        raise UsageError("no number of trials: say --trials N, or put trials = N in a dibs.toml")
    _run.check_asked(options)
    space = read_space(options["space_file"]) if options["space_file"] else _space_of(where, name)
    check_space(given, space, folders)
    if options["goal"] is None and not _run.exists(where, name):
        raise UsageError("no goal: say --goal min, or --goal max if more is better")
    if folders is not None:
        _check_apart(folders, space, options["trials"])
    if options["memory"] is not None and resident(os.getpid()) is None:
        raise UsageError("--memory needs /proc, where what a process holds can be read: there is none here")
    _note_unnamed(given, space)
    isolation, keep = _isolation(options, where, here, folders), _inside(options["keep"])
    place = str(options["space_file"] or name)
    opened = _run.open_search(where, name, SearchFile(place, _nothing, space, {}), options)
    with freeze(given, opened.store, name, options["me"]) as frozen:
        program = Program(
            frozen, out=folders, limits=Limits(options["time_limit"], options["memory"]), grace_s=options["grace"],
            isolation=isolation, keep=keep,
        )  # fmt: skip
        return _searched(opened, SearchFile(place, program, space, {}), options, as_json=as_json)


verb.params += _of_run()
verb.context_settings = {"allow_interspersed_args": False}


def _searched(study: Study, found: SearchFile, options: dict[str, Any], *, as_json: bool) -> int:
    """As ``dibs run``, but time and memory are the cell's to limit: it ends the program, and its worker lives on."""
    words = ["dibs", *click.get_current_context().find_root().meta["dibs.words"]]
    try:
        summary = _run.search(study, found, options["trials"], options | {"time_limit": None, "memory": None}, words)
    except UsageError as wrong:  # said by the run: everything that could be checked has been
        raise DibsError(str(wrong)) from wrong
    return _run.conclude(study, summary, words, as_json=as_json)


def _note_unnamed(given: Command, space: Space) -> None:
    """A parameter that the command forgot is searched all the same, and would make no difference."""
    parents = {parent for param in space.params.values() for parent in param.when or ()}  # told by what depends on them
    wanted = [name for name, param in space.params.items() if not (isinstance(param, Constant) or name in parents)]
    left = given.passes_over(wanted)
    if left:
        holes = ", ".join(f"{{{name}}}" for name in left)
        log.info("the command does not name %s: the program finds it in its environment, or nowhere", safe(holes))


def _check_apart(folders: Template, space: Space, trials: int) -> None:
    """UsageError where all trials would have one output folder; a warning where all attempts at a trial would."""
    if not folders.names and trials > 1:
        raise UsageError(
            f"--out {folders.text}: {trials} trials would share it: make it differ, such as {folders.text}/{{name}}"
        )
    if not {"name", "attempt"} - {*space.names} & {*folders.names}:
        log.warning(
            "--out %s: the attempt after one that was interrupted would share its folder, and fails: put {name} or {attempt} into it",
            folders.text,
        )


def _inside(names: Sequence[str]) -> tuple[str, ...]:
    """Files within an output folder. UsageError for one that would be elsewhere, or that stands for something else."""
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or path.parts[:1] in ((), ("program",)):
            raise UsageError(f"--keep {name}: name a file within the output folder, such as best.pt")
    return tuple(str(PurePosixPath(name)) for name in names)


def _isolation(options: dict[str, Any], where: str, here: Path, folders: Template | None) -> Isolation | None:
    if not (options["isolate"] or options["deny_read"]):
        if options["writable"]:
            raise UsageError("--writable says what --isolate lets a program write: say that, too")
        return None
    kept = [temporary_place()] if is_bucket(where) else [local_path(where)]
    kept += [Path(os.environ["DIBS_WORK"])] if os.environ.get("DIBS_WORK") else []
    kept += [_above(folders, here)] if folders is not None else []
    missing = next((path for path in options["writable"] if not path.is_dir()), None)
    if missing is not None:
        raise UsageError(f"there is no folder {missing} to be written to (--writable)")
    found = Isolation.of(os.environ, kept=kept, more=options["writable"], denied=options["deny_read"])
    status = isolation_status()
    log.log(logging.INFO if status.startswith("enforced") else logging.WARNING, "isolation is %s", status)
    return found


def _above(folders: Template, here: Path) -> Path:
    """The folder that all output folders are in: what stands before the first hole that differs, up to a slash."""
    text = folders.parts[0]
    if folders.names[:1] == ("here",) and not text:
        text = f"{here}{folders.parts[2]}"
    return here / (text.rpartition("/")[0] or ("/" if text.startswith("/") else ""))


def _space_of(store: str | None, study: str | None) -> Space:
    """The space of a study that exists. Raises UsageError where there is none."""
    try:
        return Study(Store(needed(store, "store", "FOLDER"), create=False), needed(study, "study", "NAME")).space
    except NotFound:
        raise UsageError(f"there is no study {study!r} in {store} to take the space from: say --space FILE") from None


def _dry(given: Command, space: Space, seed: int | None) -> int:
    from dibs.search import Random

    sampler = Random(seed=seed or 0)
    for n in range(_SHOWN):
        point = sampler.ask(space, n)
        fields = {name: f"<{name}>" for name in ("out", "result", "study", "seed")}
        fields |= {"name": f"<study>-{n}-0", "trial": str(n), "attempt": "0", "here": str(given.here)}
        kept = {name: text for name, text in fields.items() if name not in space}
        out(safe(given.shown(kept | {name: text_of(value) for name, value in point.items()})))
    return 0


def _nothing(trial: Any) -> None:
    """Stands where the program will."""
