"""A cell as a program: its columns fill the command, its config is the planned one, and it is done once its copies are.

Everything else is a trial's program (``dibs.study._program``): folders, log, limits, isolation, the cause of its end.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dibs.cell import Cause, Command, Ending, Evidence, Limits, parse, text_of, variables_of
from dibs.errors import RecordError, UsageError
from dibs.store import Store
from dibs.study._outputs import Outputs
from dibs.study._program import Program
from dibs.study._trial import Trial

from ._cells import Cells
from ._configs import config_places
from ._ended import Ended, ended_before
from ._files import hash_file
from ._final import Left, NotKept, collect, publish
from ._isolating import isolation_of
from ._models import Cell, Task
from ._scripts import Scripts
from ._strict import not_finite, strict_json
from ._task import hidden

__all__ = ["ANOMALY", "CONFIG", "CellProgram", "ConfigChanged", "rules_of"]

log = logging.getLogger("dibs")
ANOMALY, CONFIG = "anomaly", "config changed"
_LARGEST = 16 << 20  # bytes of a metrics file that is looked into
_METRICS = "metrics.json"


class ConfigChanged(UsageError):
    """The config of a cell is not the one that was planned."""


@dataclass(frozen=True)
class CellProgram(Program):
    """``run(Cells(...), CellProgram(...))``: picklable together with its cells, whose plan it reads."""

    cells: Cells | None = None
    scripts: Scripts | None = None

    def __call__(self, trial: Trial) -> None:
        """Run the attempt by the rules of the plan that counts now."""
        task = self._cells.plan.task
        try:
            now = replace(self, **rules_of(task, trial._attempt.store))
        except UsageError as wrong:
            self.refused(trial, wrong)
            return
        Program.__call__(now, trial)

    # what it is

    @property
    def _cells(self) -> Cells:
        assert self.cells is not None
        return self.cells

    def _cell(self, trial: Trial) -> Cell:
        cell = self._cells.plan.cell(trial.n)
        assert cell is not None, trial.n  # the claimer claims no others
        return cell

    def chosen(self, trial: Trial) -> Command:
        """The command of the plan that counts now, with its scripts."""
        assert self.scripts is not None
        return self.scripts.command(trial._attempt.store, self._cells.plan.task)

    def fields(self, trial: Trial, attempt: int) -> dict[str, str]:
        cell, plan = self._cell(trial), self._cells.plan
        ours = {
            "sweep": plan.sweep, "name": cell.name, "n": str(cell.n), "attempt": str(attempt), "seed": str(trial.seed),
            "here": plan.task.here,
        }  # fmt: skip
        columns = {name: text for name, text in _columns(cell).items() if name in (*ours, "cfg", "task", "epochs")}
        away = hidden(plan, cell)
        return {name: text for name, text in ours.items() if name not in away} | columns | {"name": cell.name}

    def filling(self, fields: Mapping[str, str], trial: Trial) -> dict[str, str]:
        """A column's name is the column's; the config is where it is on this machine."""
        return {
            **fields,
            **_columns(self._cell(trial)),
            **{name: fields[name] for name in ("cfg", "name") if name in fields},
        }

    def elsewhere(self, trial: Trial, fields: Mapping[str, str], attempt: int) -> Path | None:
        """The cell's own folder; every attempt after the first has one beside it."""
        if self.out is None:
            return None
        text = self.out.fill(self.filling(fields, trial))
        if text is None:
            raise UsageError(f"--out {self.out.text} names a column that this cell has not: leave it out")
        cell = self._cell(trial)
        first = attempt == 0 and not cell.former
        return Path(self._cells.plan.task.here) / (text if first else f"{text.rstrip('/')}.{cell.n}-{attempt}")

    def owned(self, trial: Trial) -> Callable[[int], str]:
        cell, sweep = self._cell(trial), self._cells.plan.sweep
        return lambda attempt: f"cell {cell.name!r} (trial {cell.n} attempt {attempt}) of sweep {sweep!r}"

    def variables(self, trial: Trial, fields: Mapping[str, str]) -> dict[str, str]:
        plan, cell = self._cells.plan, self._cell(trial)
        columns = {name: value for name, value in cell.fields.items() if value is not None}
        tags = ",".join(("dibs", *([fields["task"]] if fields.get("task") else [])))
        return variables_of(os.environ, columns, fields, cell.name, plan.task.group or plan.sweep, tags)

    # before it is run

    def prepared(self, trial: Trial, fields: dict[str, str], outputs: Outputs) -> bool:
        cell, plan = self._cell(trial), self._cells.plan
        before = ended_before(trial._attempt, cell.digest, plan.task.scripts)
        if before is not None and self._copied_only(trial, before):
            return False
        if cell.config is not None:
            fields["cfg"] = str(self._config(trial, cell, cell.config, outputs))
        return True

    def _config(self, trial: Trial, cell: Cell, planned: str, outputs: Outputs) -> Path:
        """The config's path on this machine: the file itself if it is the planned one, the planned bytes if there is none."""
        cfg = str(cell.fields["cfg"])
        for path in config_places(self._cells.plan, cell):
            try:
                found = hash_file(path.resolve())[1] if path.is_file() else None
            except OSError as wrong:
                raise UsageError(f"the config {path} cannot be read: {wrong.strerror or wrong}") from None
            if found == planned:
                return path
            if found is not None:
                raise ConfigChanged(
                    f"{CONFIG}: {path} is {found}, and {planned} was planned: put it back, or plan the new one under a "
                    f"name of its own"
                )
        folder = outputs.base / "config"
        folder.mkdir(exist_ok=True)
        try:
            return trial._attempt.store.fetch(planned, folder / (Path(cfg).name or "config"))
        except RecordError as wrong:
            raise UsageError(
                f"the config {cfg} is not on this machine, and its bytes in the store are damaged: {wrong}"
            ) from None

    def refused(self, trial: Trial, wrong: UsageError) -> None:
        cause = CONFIG if isinstance(wrong, ConfigChanged) else str(Cause.CODE)
        trial._attempt.ended = {"cause": cause}
        trial._close("failed", reason=str(wrong)[:500], again=False)  # another try would find the same

    # after it has ended well

    def finish(self, trial: Trial, ending: Ending, outputs: Outputs) -> None:
        told, plan, cell = ending.told, self._cells.plan, self._cell(trial)
        if told is not None and told.wrong:
            self._fail(trial, str(Cause.CODE), told.wrong, ending.evidence)
            return
        score = told.score if told is not None else None
        if score is not None and not math.isfinite(score):
            self._fail(trial, ANOMALY, f"{ANOMALY}: the score is {score}", ending.evidence)
            return
        try:
            left = collect(outputs.out, plan.task.artifacts, trial.log)
            odd = _anomaly(left)
        except UsageError as wrong:
            self._fail(trial, str(Cause.CODE), f"{Cause.CODE}: {wrong}", ending.evidence)
            return
        if odd is not None:
            self._fail(trial, ANOMALY, f"{ANOMALY}: {odd}", ending.evidence)
            return
        edited = self._edited(cell, outputs)
        ended = Ended(
            str(outputs.out), str(trial.log), score, cell.digest, dict(plan.task.scripts), trial.attempt, edited
        )
        try:
            ended.note(outputs.base)
        except OSError as wrong:
            log.warning("cell %s: should its copies fail, it has to be run again: %s", cell.name, wrong)
        self._publish(trial, left, score, ending.evidence, edited)

    def _copied_only(self, trial: Trial, before: Ended) -> bool:
        """Copy what an earlier attempt has left; False if that is not there any more as it was declared."""
        try:
            left = collect(Path(before.out), self._cells.plan.task.artifacts, Path(before.log))
        except (UsageError, OSError):
            return False
        text = f"dibs: attempt {before.attempt} had ended well, in {before.out}: its results are copied, and nothing is run\n"
        trial.log.write_text(text)
        trial._attempt.files |= {f"program/{os.path.normpath(name)}": digest for name, digest in before.scripts.items()}
        self._publish(trial, left, before.score, Evidence(code=0), before.config)
        return True

    def _edited(self, cell: Cell, outputs: Outputs) -> str | None:
        """The config's SHA-256 as it lies there by now, if that is another file than was checked before the program began."""
        if (outputs.base / "config").exists():
            return None  # it ran with a copy of its own
        for path in config_places(self._cells.plan, cell):
            with suppress(OSError):
                found = hash_file(path.resolve(strict=True))[1]
                if found != cell.config:
                    log.warning(
                        "cell %s: its config %s was edited while it ran, and nobody can say which one it read: dibs sweep reconcile",
                        cell.name, path,
                    )  # fmt: skip
                    return found
                return None
        return None

    def _publish(
        self, trial: Trial, left: list[Left], score: float | None, evidence: Evidence, edited: str | None = None
    ) -> None:
        attempt = trial._attempt
        try:
            artifacts, where = publish(self._cells.plan, self._cell(trial), attempt, left)
        except NotKept as wrong:
            self._fail(trial, str(Cause.SYNC), f"{Cause.SYNC}: {wrong}", replace(evidence, synced=False))
            return
        said = {name: each.to_json() for name, each in artifacts.items()}
        attempt.ended = {"cause": str(Cause.OK), **evidence.to_json(), "artifacts": said, "final": where}
        if edited is not None:
            attempt.ended["config"] = edited
        trial._close("done", step=max(attempt.curve, default=None), score=score)

    def _fail(self, trial: Trial, cause: str, reason: str, evidence: Evidence | None = None) -> None:
        seen: dict[str, Any] = evidence.to_json() if evidence is not None else {}
        if evidence is not None and evidence.synced is not None:
            seen["synced"] = evidence.synced
        trial._attempt.ended = {"cause": cause, **seen}
        trial.fail(reason)


def rules_of(task: Task, store: Store) -> dict[str, Any]:
    """Output folders, limits and isolation that the task asks for. Raises UsageError for what this host cannot give."""
    out = parse(task.out) if task.out is not None else None
    return {"out": out, "limits": Limits(task.time_s, task.memory_bytes), "isolation": isolation_of(task, store, out)}


def _columns(cell: Cell) -> dict[str, str]:
    """The columns that have a value, as text."""
    return {name: text_of(value) for name, value in cell.fields.items() if value is not None}


def _anomaly(left: list[Left]) -> str | None:
    """What is not finite in a metrics file, in words. Raises UsageError for one that does not read."""
    for each in left:
        if Path(each.name).name != _METRICS or each.path.stat().st_size > _LARGEST:
            continue
        try:
            odd = next(not_finite(strict_json(each.path.read_bytes())), None)
        except (OSError, ValueError) as wrong:
            raise UsageError(f"{each.name} does not read: {wrong}") from None
        if odd is not None:
            return f"{each.name}: {odd} is not finite"
    return None
