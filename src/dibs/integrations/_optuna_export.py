"""A study out of dibs, as one of Optuna's in memory: for its plots, and whoever else reads Optuna's studies.

What is not moved is told, with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from dibs.errors import SpaceError
from dibs.space import Choice, Constant, Float, Int, Space
from dibs.study import Study
from dibs.view import Source, trial_detail

from ._optuna_space import numeric, shown_choices
from ._optuna_window import STATES, directions_of

__all__ = ["export"]

log = logging.getLogger("dibs")


def export(study: Study, *, curves: bool = True) -> optuna.Study:
    """The study as one of Optuna's, in memory: all trials, for its plots and importances. Reads, and writes nothing.

    Trial n has the number n as far as no index is missing; attached results come last. Interrupted trials count as
    failed; what has a point that is not of the space is left out, and told in the log. Several goals are several
    objectives, and constraints keep their names. A choice that Optuna cannot tell from another (True and 1) or not keep
    (a tuple) is its canonical text. ``curves``: the whole curves as intermediate values (one read per trial), else none.
    Raises StoreError.
    """
    space = study.space
    distributions = {name: _distribution(space[name]) for name in space.names}
    directions = directions_of(study.goal)
    made = optuna.create_study(directions=directions, study_name=study.name)
    results = study.results()
    source = Source.over(study) if curves else None

    def add(what: str, *terms: Any) -> None:
        try:
            made.add_trial(_frozen(space, distributions, *terms))
        except (SpaceError, ValueError, TypeError) as wrong:  # of a loop of somebody's own, with another space
            log.warning("%s is left out of the export: %s", what, wrong)

    for result in results:
        steps: dict[int, float] = {}
        if source is not None:
            detail = trial_detail(source, result.n)
            steps = dict(next((a.curve for a in detail.attempts if a.attempt == result.attempt), ()))
        state = STATES[result.state]
        if state is TrialState.COMPLETE and len(result.scores) != len(directions):  # a record written by hand
            state = TrialState.FAIL
        add(
            f"trial {result.n}", result.point, state, result.scores, steps, result.started, result.took, result.constraints
        )  # fmt: skip
    for key, each in sorted(study.view.given.items()):
        scores = each.scores if each.score is None else (each.score,)
        if len(scores) == len(directions):  # one written by hand may have others
            add(key, each.point, TrialState.COMPLETE, scores, {}, None, None, each.constraints)
    return made


def _frozen(
    space: Space, distributions: Mapping[str, BaseDistribution], point: Mapping[str, Any], state: TrialState,
    scores: Sequence[float], steps: dict[int, float], started: str | None, took: float | None,
    constraints: dict[str, float] | None,
) -> FrozenTrial:  # fmt: skip
    params = {name: _shown(space[name], point[name]) for name in distributions if name in point}
    trial = optuna.trial.create_trial(
        state=state, params=params, distributions={name: distributions[name] for name in params},
        values=list(scores) or None if state in (TrialState.COMPLETE, TrialState.PRUNED) else None,
        intermediate_values=steps, constraints=constraints,
    )  # fmt: skip
    try:
        began = datetime.fromisoformat(started or "")
        trial.datetime_start = began.astimezone().replace(tzinfo=None)
        if state.is_finished():
            trial.datetime_complete = datetime.fromtimestamp(began.timestamp() + (took or 0.0))
    except (ValueError, OverflowError, OSError):  # none, or somebody's hand was in it
        pass
    return trial


def _distribution(param: Any) -> BaseDistribution:
    if isinstance(param, Float | Int):
        return numeric(param)
    return CategoricalDistribution(shown_choices(param.values if isinstance(param, Choice) else (param.value(),)))


def _shown(param: Any, value: Any) -> Any:
    if not isinstance(param, Choice | Constant):
        return param.check(value)
    values = param.values if isinstance(param, Choice) else (param.value(),)
    return shown_choices(values)[param.index(param.check(value))]
