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
    hold,
    text_of,
    variables_of,
)
from dibs.cell import run as run_cell
from dibs.errors import UsageError
from dibs.space import Space

from ._outputs import Outputs, Owned, left_by, make_outputs, record_of
from ._trial import Trial

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
        check_names(out, {*FIELDS} - {"out", "previous", "result"} | {*space.names})


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
        attempt, fields = trial._attempt, self.fields(trial, trial.attempt)
        try:
            command = self.chosen(trial)
            hold(command.frozen.values())
            outputs = make_outputs(attempt, self.elsewhere(trial, fields, trial.attempt), self.owned(trial))
            fields |= {"out": str(outputs.out), "result": str(outputs.result), **self._previous(trial, outputs)}
            if not self.prepared(trial, fields, outputs):
                return
        except UsageError as wrong:
            self.refused(trial, wrong)
            return
        attempt.files |= {f"program/{os.path.normpath(name)}": digest for name, digest in command.digests.items()}
        try:
            ending = run_cell(self._job(trial, command, fields, outputs), _Watcher(trial))
        except KeyboardInterrupt:
            self._keep(trial, outputs.out)
            raise
        self._keep(trial, outputs.out)
        self._close(trial, command, ending, fields, outputs)

    # what a program of another kind does otherwise

    def chosen(self, trial: Trial) -> Command:
        """The command that this attempt runs. Raises UsageError."""
        return self.command

    def fields(self, trial: Trial, attempt: int) -> dict[str, str]:
        """What the command line may name whatever the folder, for this or an earlier attempt at the trial."""
        study = trial._attempt.keys.name
        return {
            "study": study, "trial": str(trial.n), "attempt": str(attempt), "seed": str(trial.seed),
            "name": f"{study}-{trial.n}-{attempt}", "here": str(self.command.here),
        }  # fmt: skip

    def elsewhere(self, trial: Trial, fields: Mapping[str, str], attempt: int) -> Path | None:
        """The output folder that ``out`` asks for. Raises UsageError."""
        if self.out is None:
            return None
        text = self.out.fill(self.filling(fields, trial))
        if text is None:
            raise UsageError(f"{self.out.text} names a parameter that is not active at this point: leave it out")
        return self.command.here / text

    def owned(self, trial: Trial) -> Owned | None:
        """In whose name an output folder is claimed."""
        return None

    def prepared(self, trial: Trial, fields: dict[str, str], outputs: Outputs) -> bool:
        """The last thing before it is run; False if it is closed by now, and not to be run. Raises UsageError."""
        return True

    def filling(self, fields: Mapping[str, str], trial: Trial) -> dict[str, str]:
        """What fills a command line. A parameter's name is the parameter's, also where it has no value."""
        rest = {name: text for name, text in fields.items() if name not in trial._space}
        return rest | {name: text_of(value) for name, value in trial.point.items()}

    def variables(self, trial: Trial, fields: Mapping[str, str]) -> dict[str, str]:
        """The environment."""
        return variables_of(os.environ, trial.point, fields, fields["name"], fields["study"])

    def refused(self, trial: Trial, wrong: UsageError) -> None:
        """Close what could not be begun."""
        trial.fail(str(wrong))

    def finish(self, trial: Trial, ending: Ending, outputs: Outputs) -> None:
        """Close what ended well."""
        _finish(trial, ending.told)

    # before

    def _previous(self, trial: Trial, outputs: Outputs) -> dict[str, str]:
        """What the newest earlier attempt has left that can be had: its output folder, if that is on this machine, or one
        with the files that were kept of it."""
        for number in range(trial.attempt - 1, -1, -1):
            record = record_of(trial._attempt, number)
            if record is None:
                continue
            elsewhere = self.elsewhere(trial, self.fields(trial, number), number)
            found = left_by(trial._attempt, record, elsewhere, self.owned(trial))
            kept = {name: digest for name, digest in record.files.items() if name in self.keep}
            if found is None and kept:
                found = _brought(trial, kept, outputs.base / "previous")
            if found is not None:
                return {"previous": str(found)}
        return {}

    def _job(self, trial: Trial, command: Command, fields: Mapping[str, str], outputs: Outputs) -> Job:
        argv, more = command.filled(self.filling(fields, trial))
        environ = self.variables(trial, fields) | more
        if self.isolation is not None and self.isolation.own_temporary:
            (outputs.base / "tmp").mkdir(exist_ok=True)
            environ["TMPDIR"] = str(outputs.base / "tmp")
        return Job(
            argv=argv, environ=environ, cwd=outputs.out, own=(outputs.base, outputs.out), log=trial.log,
            result=outputs.result, limits=self.limits, grace_s=_WITHIN_GRACE * self.grace_s, isolation=self.isolation,
            clock=trial._attempt.store.machine.clock,
        )  # fmt: skip

    # after

    def _keep(self, trial: Trial, out: Path) -> None:
        for name in self.keep:
            if (out / name).is_file() and not trial.closed:
                trial.save(name, out / name)

    def _close(
        self, trial: Trial, command: Command, ending: Ending, fields: Mapping[str, str], outputs: Outputs
    ) -> None:
        if trial.closed or ending.asked:
            return  # pruned or interrupted: leaving `with` says which
        if ending.cause is Cause.OK:
            self.finish(trial, ending, outputs)
            return
        attempt = trial._attempt
        attempt.ended = {"cause": str(ending.cause), **ending.evidence.to_json()}
        lost, step = ending.cause in LOST, max(attempt.curve, default=None)
        trial._close(
            "interrupted" if lost else "failed", step=step, reason=ending.detail[:500],
            traceback=_trace(command.shown(self.filling(fields, trial)), ending), again=not lost and trial._again,
        )  # fmt: skip


class _Watcher:
    """A trial, as its cell asks it."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial

    def progress(self, told: Told) -> bool:
        return self.trial.report(told.score, told.step) and not self.trial.closed

    def stopping(self) -> bool:
        return self.trial.stopping


def _brought(trial: Trial, kept: Mapping[str, str], folder: Path) -> Path:
    """A folder with the kept files of an earlier attempt under their names. Raises StoreError."""
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
    elif told.scores is None and isinstance(trial._attempt.goal, tuple):
        goals = len(trial._attempt.goal)
        trial.fail(
            f'this study has {goals} goals and it gave one score: print {{"scores": [0.1, ...]}}, {goals} numbers in their order'
        )
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
