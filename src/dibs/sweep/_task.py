"""The task of a sweep: what somebody typed, checked against the cells before anything is written, scripts by digest."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from dibs.cell import Command, Limits, check_names, check_values, parse, text_of
from dibs.errors import RefusedError, UsageError
from dibs.store import Store

from ._configs import put_file
from ._models import Cell, Plan, Task
from ._rosterfile import columns_of

__all__ = [
    "FIELDS",
    "Wanted",
    "check_task",
    "command_of",
    "edited_scripts",
    "fields_of",
    "hidden",
    "put_scripts",
    "task_after",
    "task_of",
]

#: what a command line may name besides the columns, which win
FIELDS = ("out", "name", "sweep", "n", "attempt", "seed", "result", "previous", "here")
_QUEUE = ("cfg", "task", "epochs")  # columns that a queue file has, used or not
_NOT_OUT = ("out", "previous", "result", "seed")
_MANIFEST = "manifest.json"
_FOLDERS = ("out", "final", "writable", "deny_read")
#: fields that are not called as their options are
_SAID = {
    "words": "the command", "artifacts": "--artifact", "scripts": "the files", "time_s": "--time-limit",
    "memory_bytes": "--memory", "checkpoint_bytes": "--checkpoint-size", "scratch_bytes": "--scratch",
}  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """What was asked for. ``words``: the command, None = as planned; ``given``: fields of a Task, only those that were said.

    ``here``: the folder it was typed in; ``path``: where programs are looked for; ``freeze``: more files to freeze.
    """

    here: Path
    words: tuple[str, ...] | None = None
    shell: bool = False
    freeze: tuple[str, ...] = ()
    path: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


def task_of(wanted: Wanted) -> Task:
    """The task of a new sweep; every script's digest is that of now. Raises UsageError."""
    if not wanted.words:
        raise UsageError("there is no command: write it after --, such as -- ./run_one.sh {cfg} {task} {epochs}")
    given = _checked(wanted)
    task = Task(wanted.words, str(wanted.here), wanted.shell, **given)
    return replace(task, scripts=_digests(_command(wanted, task), wanted.here))


def task_after(planned: Task, wanted: Wanted, *, new_version: bool = False) -> Task:
    """The task of the next version of a plan: as planned, if it is still the same, or asked for as a new version.

    Raises RefusedError naming what differs, both ways; UsageError.
    """
    if wanted.words or new_version:
        if new_version and str(wanted.here) != planned.here:
            raise UsageError(f"a new version is planned in the folder that the sweep was planned in: cd {planned.here}")
        as_before = wanted.words in (None, (), planned.words)
        now = replace(
            wanted, words=wanted.words or planned.words, shell=wanted.shell if wanted.words else planned.shell,
            freeze=(*wanted.freeze, *planned.scripts) if as_before else wanted.freeze,
        )  # fmt: skip
        task = replace(task_of(now), **{**_kept(planned), **_checked(now)})
    else:
        task = replace(planned, **_checked(wanted), scripts=_digests_now(planned))
    if new_version:
        return task
    same = replace(task, here=planned.here) if task.scripts == planned.scripts else task
    for name, digest in planned.scripts.items():
        if task.scripts.get(name, digest) != digest:
            raise RefusedError(
                f"the script {name} is another one than was planned: it was {digest}, and is {task.scripts[name]}; put it back, "
                "or let the cells that have not started use this one: --new-version",
                field="scripts", theirs=digest, ours=task.scripts[name],
            )  # fmt: skip
    for name, theirs in vars(planned).items():
        ours = getattr(same, name)
        if ours != theirs and name != "here":
            said = _SAID.get(name, "--" + name.replace("_", "-"))
            raise RefusedError(
                f"this sweep was planned with {said} {_text(name, theirs)}, and not with {_text(name, ours)}: leave it out, "
                "or let the cells that have not started use it: --new-version", field=name, theirs=theirs, ours=ours,
            )  # fmt: skip
    return same


def command_of(task: Task, path: str | None) -> Command:
    """The command, to be checked or shown; where its program is missing here, UsageError."""
    return Command.of(task.words, here=Path(task.here), path=path, shell=task.shell, freeze=tuple(task.scripts))


def check_task(command: Command | None, plan: Plan, queue: bool) -> list[tuple[str, str]]:
    """(cell, the folder that ``--out`` gives it). UsageError before anything is written: holes without a value, values no process takes, one folder for two cells.

    ``command``: None where its program is not on this host, so that it cannot be read. ``queue``: some file is a queue,
    and has its columns although no line may use them.
    """
    columns = sorted({column for cell in plan.cells for column in cell.fields})
    check_values(columns, [value for cell in plan.cells for value in cell.fields.values()])
    named = {name for source, lines in plan.sources.items() for name in columns_of(source, lines)}
    known = {*FIELDS, *columns, *named, *(_QUEUE if queue else ())}
    if command is not None:
        command.check(known)
    if plan.task.out is None:
        return []
    out = parse(plan.task.out)
    check_names(out, known - set(_NOT_OUT))
    seen: dict[str, Cell] = {}
    outs = []
    for cell in plan.active:
        folder = out.fill(fields_of(plan, cell))
        if folder is None:
            raise UsageError(
                f"--out {out.text} names a column that the cell {cell.name} ({cell.source}:{cell.line}) has not"
            )
        for above in (folder, *map(str, PurePosixPath(folder).parents)):
            other = seen.get(os.path.normpath(above))
            if other is not None:
                raise UsageError(
                    f"--out {out.text}: the cells {other.name} and {cell.name} would write to one folder, {above}: "
                    "make it differ, such as {name}"
                )
        seen[os.path.normpath(folder)] = cell
        outs.append((cell.name, os.path.normpath(os.path.join(plan.task.here, folder))))  # noqa: PTH118 - as above
    return outs


def fields_of(plan: Plan, cell: Cell, attempt: int = 0) -> dict[str, str]:
    """What a command line may name that is known before a cell runs, as text; an absent column is absent."""
    ours = {
        "name": cell.name, "sweep": plan.sweep, "n": str(cell.n), "attempt": str(attempt), "here": plan.task.here,
    }  # fmt: skip
    return ours | {column: text_of(value) for column, value in cell.fields.items()}


def edited_scripts(task: Task) -> tuple[str, ...]:
    """The scripts whose files, where they are on this host, are others than were planned."""
    now = _digests_now(task)
    return tuple(name for name, digest in task.scripts.items() if now[name] != digest)


def hidden(plan: Plan, cell: Cell) -> set[str]:
    """The names of ours that other cells have a column for, and this one has no value: they are absent, as any column."""
    return {name for name in FIELDS if name not in cell.fields and any(name in other.fields for other in plan.cells)}


def put_scripts(store: Store, task: Task, known: Collection[str] = ()) -> None:
    """Keep the scripts' bytes by digest, but for those that are ``known`` to be kept. Raises as ``put_file``."""
    for name, digest in task.scripts.items():
        if digest not in known:
            put_file(store, Path(task.here) / name, digest, "script")


def _command(wanted: Wanted, task: Task) -> Command:
    return Command.of(
        task.words, here=wanted.here, path=wanted.path, shell=task.shell, freeze=tuple(dict.fromkeys(wanted.freeze))
    )  # fmt: skip


def _digests(command: Command, here: Path) -> dict[str, str]:
    return {name: _digest(here / name) for name in command.scripts}


def _digests_now(planned: Task) -> dict[str, str]:
    """Of the scripts that are here; another host need not have them."""
    here = Path(planned.here)
    return {
        name: _digest(here / name) if (here / name).is_file() else digest for name, digest in planned.scripts.items()
    }


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as wrong:
        raise UsageError(f"the script {path} cannot be read: {wrong.strerror or wrong}") from None


def _kept(planned: Task) -> dict[str, Any]:
    return {name: value for name, value in vars(planned).items() if name not in ("words", "here", "shell", "scripts")}


def _checked(wanted: Wanted) -> dict[str, Any]:
    given = dict(wanted.given)
    for name in (*_FOLDERS, "group", "freeze"):
        said = wanted.freeze if name == "freeze" else given.get(name)
        texts = [said] if isinstance(said, str) else list(map(os.fspath, said or ()))
        option = "--" + name.replace("_", "-")
        if name in _FOLDERS and not all(texts):
            raise UsageError(f"{option} is empty: name a folder, or leave it out")
        if any("\0" in text for text in texts):
            raise UsageError(f"{option} holds a zero byte, which no path and no variable can")
    Limits(given.get("time_s"), given.get("memory_bytes"))
    if "artifacts" in given:
        given["artifacts"] = tuple(dict.fromkeys(map(_artifact, given["artifacts"])))
    for name in ("writable", "deny_read"):
        if name in given:
            given[name] = tuple(_whole(wanted.here, path) for path in given[name])
    if given.get("deny_read"):
        given["isolate"] = True
    if given.get("writable") and not given.get("isolate"):
        raise UsageError("--writable says what --isolate lets a program write: say that, too")
    if given.get("final") is not None:
        given["final"] = _whole(wanted.here, given["final"])
    return given


def _artifact(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or path.name == _MANIFEST:
        raise UsageError(f"--artifact {name!r:.200}: name a file within {{out}}, such as best.pth, and not {_MANIFEST}")
    return str(path)


def _whole(here: Path, path: str | os.PathLike[str]) -> str:
    try:
        return os.path.abspath(here / Path(path).expanduser())  # noqa: PTH100 - links stay what they are called
    except RuntimeError:
        raise UsageError(f"{path}: there is no home folder of {Path(path).parts[0][1:] or 'yours'}") from None


def _text(name: str, value: object) -> str:
    """A field of a task as somebody would type it, or nearly."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple | Mapping):
        return (shlex.join(value) if name == "words" else ", ".join(map(str, value)) or "none")[:200]
    unit = {"s": " s", "bytes": " bytes"}.get(name.rpartition("_")[2], "")
    return f"{value:.200}" if isinstance(value, str) else f"{value}{unit}"
