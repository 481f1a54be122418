"""A few trials as an Optuna study that samplers and pruners can look at: nothing is stored, nothing is logged.

Only the one trial that is being asked for can be written to, and whatever a sampler writes there is forgotten.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Sequence
from datetime import datetime
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from dibs.search import Goals, Score

__all__ = ["STATES", "Window", "directions_of", "frozen"]

#: ours -> theirs; what was interrupted is neither running nor finished there, so it failed
STATES = {
    "running": TrialState.RUNNING, "done": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL,
    "interrupted": TrialState.FAIL,
}  # fmt: skip

_NAME = "dibs"
_BEGAN = datetime(2000, 1, 1)  # no sampler asks when, and the same history must be the same study


def frozen(
    number: int,
    state: TrialState,
    params: dict[str, Any],
    distributions: dict[str, BaseDistribution],
    value: Score | None = None,
    steps: dict[int, float] | None = None,
    excess: float | None = None,
) -> FrozenTrial:
    """One trial as Optuna sees it; ``excess`` is one constraint to it, whatever it is made of."""
    one, several = (None, list(value)) if isinstance(value, tuple) else (value, None)
    return FrozenTrial(
        number=number, state=state, value=one, values=several, datetime_start=_BEGAN,
        datetime_complete=_BEGAN if state.is_finished() else None, params=params, distributions=distributions,
        user_attrs={}, system_attrs={} if excess is None else {"constraints:excess": excess},
        intermediate_values=steps or {}, trial_id=number,
    )  # fmt: skip


def directions_of(goal: Goals | None) -> list[StudyDirection]:
    """A goal, or several, in Optuna's words."""
    goals = goal if isinstance(goal, tuple) else (goal,)
    return [StudyDirection.MAXIMIZE if each == "max" else StudyDirection.MINIMIZE for each in goals]


class Window(BaseStorage):  # type: ignore[misc,unused-ignore]
    """``trials``: numbered from 0 on; one more is made by ``study.ask``."""

    def __init__(self, trials: Sequence[FrozenTrial], goal: Goals | None) -> None:
        self._trials = list(trials)
        self._directions = directions_of(goal)
        self._attrs: dict[str, Any] = {}

    def study(self, **parts: Any) -> Study:
        """The study to look at, with the sampler or the pruner of ``parts``."""
        return Study(_NAME, self, **parts)

    # one study

    def create_new_study(self, directions: Sequence[StudyDirection], study_name: str | None = None) -> int:
        raise NotImplementedError

    def delete_study(self, study_id: int) -> None:
        raise NotImplementedError

    def get_all_studies(self) -> list[Any]:
        raise NotImplementedError

    def get_study_id_from_name(self, study_name: str) -> int:
        return 0

    def get_study_name_from_id(self, study_id: int) -> str:
        return _NAME

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        return self._directions

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        return {}

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        return self._attrs

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        pass

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        self._attrs[key] = value

    # its trials

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        number = len(self._trials)
        self._trials.append(frozen(number, TrialState.RUNNING, {}, {}))
        return number

    def set_trial_param(self, trial_id: int, param_name: str, param_value_internal: float, distribution: Any) -> None:
        trial = copy.copy(self._trials[trial_id])
        trial.params = {**trial.params, param_name: distribution.to_external_repr(param_value_internal)}
        trial.distributions = {**trial.distributions, param_name: distribution}
        self._trials[trial_id] = trial

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        raise NotImplementedError

    def set_trial_intermediate_value(self, trial_id: int, step: int, intermediate_value: float) -> None:
        raise NotImplementedError

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        pass

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        trial = copy.copy(self._trials[trial_id])
        trial.system_attrs = {**trial.system_attrs, key: value}
        self._trials[trial_id] = trial

    def get_trial(self, trial_id: int) -> FrozenTrial:
        return self._trials[trial_id]

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        found = [trial for trial in self._trials if states is None or trial.state in states]
        return copy.deepcopy(found) if deepcopy else found
