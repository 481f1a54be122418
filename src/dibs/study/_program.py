"""An objective that is a program: each attempt runs one command line in a cell, and its end is the attempt's.

The only place where trials and cells meet. What the cell lost (pre-empted, killed from outside) is interrupted, so that
anybody takes it up again; what the program or its limits did is failed, with the evidence in the blob.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dibs.cell import (
    LOST,
    UNLIMITED,
    Cause,
    Command,
    Ending,
    Isolation,
    Job,
    Limits,
    Template,
    Told,
    check_names,
    check_values,
    claim_folder,
    text_of,
    variables_of,
)
from dibs.cell import run as run_cell
from dibs.errors import StoreError, UsageError
from dibs.space import Space

from ._trial import Trial
from ._workplace import place_of

__all__ = ["FIELDS", "Program", "check_space"]

log = logging.getLogger("dibs")
#: what a command line may name besides the parameters, which win
FIELDS = ("out", "name", "study", "trial", "attempt", "seed", "result", "previous", "here")
_WITHIN_GRACE = 0.9  # of the run's: what is left is for killing and recording
_NO_SCORE = (
    'it ended well and gave no score: print {"score": 0.1} as a line on stdout, or write it to the file $DIBS_RESULT'
)


def check_space(command: Command, space: Space, out: Template | None = None) -> None:
    """UsageError before anything is claimed: a hole without a value, values and names no process can be given."""
    values = [param.cell(k) for param in space.params.values() for k in range(param.cells or 0)]
    check_values(space.names, values if len(values) < 100_000 else ())
    command.check({*FIELDS, *space.names})
    if out is not None:
        check_names(out, {*FIELDS, *space.names} - {"out", "previous", "result"})


@dataclass(frozen=True)
class Program:
    """``Study.run(Program(command), ...)``: picklable. ``out``: where output folders are, None = each attempt's own.

    ``limits``: of time and memory, kept by the cell; cores and devices are the worker's. ``grace_s``: the run's.
    ``keep``: files in its output folder that are kept by digest at its end, so that the next attempt has them anywhere.
    """

    command: Command
    out: Template | None = None
    limits: Limits = UNLIMITED
    grace_s: float = 30.0
    isolation: Isolation | None = None
    keep: tuple[str, ...] = ()

    def __call__(self, trial: Trial) -> None:
        """Run the attempt; closes it unless it was told to stop."""
        try:
            fields = self._fields(trial, trial.attempt)
            fields["out"] = str(self._own_out(trial, Path(fields["out"])))
        except UsageError as wrong:
            trial.fail(str(wrong))
            return
        previous = self._previous(trial)
        fields |= {"previous": str(previous)} if previous is not None else {}
        for name, digest in self.command.digests.items():
            trial._attempt.files[f"program/{os.path.normpath(name)}"] = digest
        try:
            ending = run_cell(self._job(trial, fields), _Watcher(trial))
        except KeyboardInterrupt:
            self._keep(trial, Path(fields["out"]))
            raise
        self._keep(trial, Path(fields["out"]))
        self._close(trial, ending, fields)

    # before

    def _job(self, trial: Trial, fields: Mapping[str, str]) -> Job:
        study = trial._attempt.keys.name
        argv, more = self.command.filled(_with_point(fields, trial))
        environ = variables_of(os.environ, trial.point, fields, fields["name"], study) | more
        folder, out = trial.folder, Path(fields["out"])
        if self.isolation is not None and self.isolation.own_temporary:
            (folder / "tmp").mkdir(exist_ok=True)
            environ["TMPDIR"] = str(folder / "tmp")
        return Job(
            argv=argv, environ=environ, cwd=out, own=(folder, out), log=trial.log, result=Path(fields["result"]),
            limits=self.limits, grace_s=_WITHIN_GRACE * self.grace_s, isolation=self.isolation,
            clock=trial._attempt.store.machine.clock,
        )  # fmt: skip

    def _fields(self, trial: Trial, attempt: int) -> dict[str, str]:
        """What the command line may name, for this or an earlier attempt at the trial."""
        ours, study = trial._attempt, trial._attempt.keys.name
        folder = place_of(ours).with_name(Path(ours.keys.work(trial.n, attempt)).name)
        fields = {
            "study": study, "trial": str(trial.n), "attempt": str(attempt), "seed": str(trial.seed),
            "name": f"{study}-{trial.n}-{attempt}", "result": str(folder / "result.json"), "here": str(self.command.here),
        }  # fmt: skip
        out = folder / "out"
        if self.out is not None:
            text = self.out.fill(_with_point(fields, trial))
            if text is None:
                raise UsageError(f"{self.out.text} names a parameter that is not active at this point: leave it out")
            out = self.command.here / text
        return {**fields, "out": str(out)}

    def _own_out(self, trial: Trial, out: Path) -> Path:
        """The output folder, this attempt's alone. Raises UsageError, StoreError."""
        try:
            if self.out is None:
                _ = trial.folder
                out.mkdir()  # of a folder that an attempt has to itself, making it is the claim
                return out
            out.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UsageError(
                f"{out} is there already, so that somebody else may write to it: give each store a DIBS_WORK of its own"
            ) from None
        except OSError as wrong:
            raise StoreError(f"the output folder {out} cannot be made: {wrong.strerror or wrong}") from wrong
        owner = f"trial {trial.n} attempt {trial.attempt} of study {trial._attempt.keys.name!r}"
        claim_folder(trial._attempt.store, out, owner)
        return Path(os.path.realpath(out))

    def _previous(self, trial: Trial) -> Path | None:
        """What the newest earlier attempt has left that can be had: its output folder, if that is on this machine, or one
        with the files that were kept of it."""
        for attempt in range(trial.attempt - 1, -1, -1):
            out = Path(self._fields(trial, attempt)["out"])
            try:
                if any(out.iterdir()):
                    return out
            except OSError:
                pass
            kept = {name: digest for name, digest in trial._files_of(attempt).items() if name in self.keep}
            if kept:
                return _brought(trial, kept)
        return None

    # after

    def _keep(self, trial: Trial, out: Path) -> None:
        for name in self.keep:
            if (out / name).is_file() and not trial.closed:
                trial.save(name, out / name)

    def _close(self, trial: Trial, ending: Ending, fields: Mapping[str, str]) -> None:
        if trial.closed or ending.asked:
            return  # pruned or interrupted: leaving `with` says which
        if ending.cause is Cause.OK:
            _finish(trial, ending.told)
            return
        attempt = trial._attempt
        attempt.ended = {"cause": str(ending.cause), **ending.evidence.to_json()}
        lost, step = ending.cause in LOST, max(attempt.curve, default=None)
        trial._close(
            "interrupted" if lost else "failed", step=step, reason=ending.detail[:500],
            traceback=_trace(self.command.shown(_with_point(fields, trial)), ending), again=not lost and trial._again,
        )  # fmt: skip


class _Watcher:
    """A trial, as its cell asks it."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial

    def progress(self, told: Told) -> bool:
        return self.trial.report(told.score, told.step) and not self.trial.closed

    def stopping(self) -> bool:
        return self.trial.stopping


def _with_point(fields: Mapping[str, str], trial: Trial) -> dict[str, str]:
    """What fills a command line. A parameter's name is the parameter's, also where it has no value."""
    rest = {name: text for name, text in fields.items() if name not in trial._space}
    return rest | {name: text_of(value) for name, value in trial.point.items()}


def _brought(trial: Trial, kept: Mapping[str, str]) -> Path:
    """A folder with the kept files of an earlier attempt under their names. Raises StoreError."""
    folder = trial.folder / "previous"
    for name, digest in kept.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        trial._attempt.bring(digest, lambda there=path.parent: there).rename(path)  # type: ignore[misc]
    return folder


def _finish(trial: Trial, told: Told | None) -> None:
    """Close it with what the program said: a score, or several, and constraints where it gave them."""
    if told is None:
        trial.fail(_NO_SCORE)
    elif told.wrong:
        trial.fail(told.wrong)
    else:
        more: dict[str, Any] = {"constraints": told.constraints} if told.constraints else {}
        trial.done(told.score if told.scores is None else list(told.scores), **more)


def _trace(command: str, ending: Ending) -> str:
    """What a person wants to see first of a program that ended badly."""
    seen = {name: value for name, value in ending.evidence.to_json().items() if name != "tail"}
    lines = (
        ["The last lines of its log:", *(f"  {line}" for line in ending.evidence.tail)] if ending.evidence.tail else []
    )
    return "\n".join([f"$ {command}", ending.detail, json.dumps(seen), *lines])
