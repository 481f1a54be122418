"""Results of an Optuna study into one of dibs, as attached history.

What is moved is counted, and so is what is not, with the reason.
"""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from dibs.errors import DibsError, NotFound, SpaceError, UsageError
from dibs.store import Store
from dibs.study import Study

from ._optuna_space import derived_space

__all__ = ["Imported", "import_study"]

log = logging.getLogger("dibs")


@dataclass
class Imported:
    """What an import did: ``attached`` new results, ``there`` that were there already, ``left`` by reason."""

    study: Study
    attached: int = 0
    there: int = 0
    left: Counter[str] = field(default_factory=Counter)


def import_study(
    source: str | BaseStorage, study_name: str, store: Store | str | os.PathLike[str], name: str | None = None
) -> Imported:
    """Attach the complete trials of an Optuna study to the dibs study ``name`` (by default the same name).

    ``source``: a database's URL, a journal file's path, or a storage. The study is created with the space that the
    trials were drawn from if it is not there. Trials without a finite result are counted and left out, and so are those
    that are not in the study's space, or whose constraints no study takes (more than 64, one without a name). Several
    objectives are several goals, and constraints come along by their names. Again = nothing twice. Raises NotFound (no
    such study or file), UsageError (more than 8 objectives, nothing to import), SpaceError (no space can be told from
    the trials), StoreError, RefusedError.
    """
    theirs = _opened(source, study_name)
    trials = theirs.get_trials(deepcopy=False)
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    told = Imported(_joined(store, name or study_name, theirs, complete))
    _ = told.study.space  # no trial is at fault if there is none
    told.study.view.refresh()  # what is attached already costs no write
    for trial in trials:
        if trial.state is not TrialState.COMPLETE:
            told.left[trial.state.name.lower()] += 1
        elif not trial.values or not all(map(math.isfinite, (*trial.values, *trial.constraints.values()))):
            told.left["without a finite result"] += 1
        else:
            _attach(told, trial)
    return told


def _attach(told: Imported, trial: FrozenTrial) -> None:
    try:
        scores = list(map(float, trial.values))
        score = scores if len(scores) > 1 else scores[0]
        new = told.study.attach(_point(trial.params), score, constraints=trial.constraints)
    except SpaceError as wrong:
        told.left["not in the space"] += 1
        log.warning("trial %d is left out: %s", trial.number, wrong)
        return
    except UsageError as wrong:  # of the scores it is known that they are finite
        told.left["with constraints that no study takes"] += 1
        log.warning("trial %d is left out: %s", trial.number, wrong)
        return
    told.attached += new
    told.there += not new


def _point(params: Mapping[str, Any]) -> dict[str, Any]:
    """Lists are what JSON has made of tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}


def _joined(
    store: Store | str | os.PathLike[str], name: str, theirs: optuna.Study, complete: list[FrozenTrial]
) -> Study:
    opened = store if isinstance(store, Store) else Store(store)
    goals = ["max" if each is optuna.study.StudyDirection.MAXIMIZE else "min" for each in theirs.directions]
    goal: Any = goals if len(goals) > 1 else goals[0]
    try:
        return Study(opened, name, goal=goal)
    except NotFound:
        if not complete:
            raise UsageError(f"{theirs.study_name!r} has no complete trial: there is nothing to import") from None
        space = derived_space([(trial.params, trial.distributions) for trial in complete])
        return Study(opened, name, space, goal=goal)


def _opened(source: str | BaseStorage, study_name: str) -> optuna.Study:
    storage: Any = source
    if isinstance(source, str):
        scheme, separator, rest = source.partition("://")
        path = Path(rest[1:] if scheme.startswith("sqlite") else source)
        if (not separator or scheme.startswith("sqlite")) and not path.is_file():
            raise NotFound(f"there is no file {path}: give a database's URL or the path of an Optuna journal file")
    try:
        if isinstance(source, str) and not separator:  # Optuna would make a missing file
            storage = JournalStorage(JournalFileBackend(str(path)))
        return optuna.load_study(storage=storage, study_name=study_name)
    except DibsError:
        raise
    except KeyError:
        names = optuna.get_all_study_names(storage)
        known = ", ".join(map(repr, names[:10])) or "none"
        raise NotFound(f"there is no Optuna study {study_name!r} in {source} (there: {known})") from None
    except Exception as wrong:  # whatever is raised by a database, its driver, or what has half a line
        said = f"{type(wrong).__name__}: {wrong}".partition("\n")[0]
        raise UsageError(f"{source} cannot be read as a storage of Optuna ({said:.200})") from wrong
