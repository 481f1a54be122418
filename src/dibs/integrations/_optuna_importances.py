"""Parameter importances by PED-ANOVA, as Optuna computes it: the results handed over in memory, nothing written.

PED-ANOVA needs neither scikit-learn nor SciPy, says something of conditional parameters, and costs milliseconds; fANOVA
(Hutter et al. 2014) leaves out every parameter that some trial does not have.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution

from dibs._canon import dumps, to_json
from dibs.errors import NoResult, SpaceError, UsageError
from dibs.space import Space
from dibs.study import Study
from dibs.view import Importance, Importances, Scored, Source, aim_of, scored

from ._optuna_space import distributions_of, number_of

__all__ = ["FEWEST", "TOP", "importances"]

METHOD = "PED-ANOVA"
PAPER = (
    "Watanabe, Bansal and Hutter, PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in Arbitrary Subspaces, "
    "IJCAI 2023 (arXiv:2304.10255)"
)
TOP = 0.1  #: the part of the results that counts as good: what the paper and Optuna take
FEWEST = 20  #: two good ones, without which there is no spread to speak of
_SOME = 50  # five good ones: from here on Optuna calls it stable


def importances(study: Study | Source, *, goal: int = 0) -> Importances:
    """How much each parameter mattered for being among the best tenth of the results, by PED-ANOVA.

    For each parameter the distribution of its values among the best tenth is compared with that among all results (the
    Pearson divergence of two Parzen estimates); the shares add up to 1. The same results give the same numbers.

    It looks at one parameter at a time, so what matters only together with another is underrated. It sees done results
    alone: a value at which every trial fails is nobody's. It asks what mattered where the search looked, and a sampler
    that learns soon looks at good values only. Which values are good it does not say: that is what slices are for. A
    conditional parameter is judged among the results that have it, weighted by how many of the good ones these are;
    constants are left out, and a parameter of which one value was seen has 0: nothing is known of it. With several
    goals it is about that of number ``goal``; results that meet their constraints are better than those that do not.

    Source: Watanabe, Bansal and Hutter, IJCAI 2023, for conditional parameters as Optuna extends it (arXiv:2601.20800).
    Raises NoResult for fewer than 20 results, or if all have one score; RecordError where the definition does not read;
    UsageError where there is no space, no goal is known, or there is none of that number; StoreError. Writes nothing.
    """
    source = study if isinstance(study, Source) else Source.over(study)
    aim = aim_of(source, goal)
    if source.broken is not None:
        raise source.broken
    if source.definition is None:
        raise UsageError(
            f"study {source.study!r} was never given a space, and importances are those of its parameters: "
            "create it with dibs.Study(..., space, goal)"
        )
    space = source.definition.space
    rows = scored(source, aim)
    kept = [(point, row) for row in rows if (point := _inside(space, row)) is not None]
    ranks = _ranks([row for _, row in kept], aim.sign)
    _demand_enough(source, ranks, len(rows) - len(kept))
    seen = {name: [point[name] for point, _ in kept if name in point] for name in space.axes}
    values = {name: len({dumps(to_json(value)) for value in seen[name]}) for name in seen}
    # one value has no distribution to compare, and the estimate makes something of nothing there
    results = [(point, rank) for (point, _), rank in zip(kept, ranks, strict=True)]
    raw = _raw(space, [name for name in seen if values[name] > 1], results)
    whole = math.fsum(raw.values())
    found = [
        Importance(
            name, raw.get(name, 0.0) / whole if whole else 0.0, raw.get(name, 0.0), len(seen[name]), values[name]
        )
        for name in seen
        if seen[name]
    ]
    found.sort(key=lambda one: (-one.importance, one.name))
    return Importances(
        study=source.study, store=source.store.url, goal=aim.goal, method=METHOD, paper=PAPER,
        results=len(kept), attached=sum(row.n is None for _, row in kept), outside=len(rows) - len(kept),
        top=_top(ranks), parameters=tuple(found), notes=tuple(_notes(space, kept, found)), which=aim.which, goals=aim.goals,
    )  # fmt: skip


def _inside(space: Space, row: Scored) -> dict[str, Any] | None:
    try:
        return space.check(row.point)
    except SpaceError:
        return None


def _demand_enough(source: Source, ranks: Sequence[float], outside: int) -> None:
    if len(ranks) < FEWEST:
        beside = f" ({outside} more are not of its space)" if outside else ""
        raise NoResult(
            f"study {source.study!r} has {len(ranks)} done results{beside}: importances need {FEWEST}, and tell little "
            f"below {_SOME}"
        )
    if len(set(ranks)) == 1:
        raise NoResult(
            f"all {len(ranks)} results of study {source.study!r} are equally good: nothing made a difference"
        )


def _ranks(rows: Sequence[Scored], sign: float) -> list[float]:
    """Less is better: feasible results by score, then the others by how far they are over. All the method asks of scores
    is which are the best tenth.
    """
    keys = [(row.over, sign * row.score if not row.over else 0.0) for row in rows]
    places = {key: float(place) for place, key in enumerate(sorted(set(keys)))}
    return [places[key] for key in keys]


def _raw(space: Space, names: list[str], results: Sequence[tuple[Mapping[str, Any], float]]) -> dict[str, float]:
    """The divergence of each named parameter, which some results have; less is better here."""
    # with scikit-learn and SciPy where they are installed: a second of start-up that is for nobody else here
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # a study made in memory is nothing to tell people
    try:
        made = optuna.create_study(direction="minimize")
    finally:
        optuna.logging.set_verbosity(before)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it has to say of small numbers is in our notes
        distributions = distributions_of(space)
        made.add_trials([_frozen(space, distributions, point, less) for point, less in results])
        evaluator = PedAnovaImportanceEvaluator(target_quantile=TOP)
        raw = get_param_importances(made, evaluator=evaluator, params=names, normalize=False)
    return {name: float(raw[name]) for name in names}


def _frozen(
    space: Space, distributions: Mapping[str, BaseDistribution], point: Mapping[str, Any], less: float
) -> optuna.trial.FrozenTrial:
    params = {name: number_of(space[name], point[name]) for name in distributions if name in point}
    return optuna.trial.create_trial(
        params=params, distributions={name: distributions[name] for name in params}, value=less
    )


def _top(less: Sequence[float]) -> int:
    """How many results are among the best tenth, ties with its last one included."""
    bar = sorted(less)[math.ceil(TOP * len(less)) - 1]
    return sum(one <= bar for one in less)


def _notes(space: Space, kept: Sequence[tuple[Any, Any]], found: Sequence[Importance]) -> list[str]:
    notes = []
    if len(kept) < _SOME:
        notes.append(f"few results: below {_SOME} the order may change with the next ones")
    alone = [one.name for one in found if one.values == 1 and one.active]
    if alone:
        notes.append(f"only one value was seen of {_named(alone)}: nothing is known of it")
    unseen = sorted(set(space.axes) - {one.name for one in found})
    if unseen:
        notes.append(f"no result has {_named(unseen)}")
    some = [one.name for one in found if one.active < len(kept)]
    if some:
        notes.append(f"not every result has {_named(some)}: judged among those that do")
    notes.append(
        "one parameter at a time, over done results only: what matters together, or makes trials fail, is not seen"
    )
    return notes


def _named(names: Sequence[str]) -> str:
    return ", ".join(names)
