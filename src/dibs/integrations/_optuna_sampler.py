"""Any Optuna sampler as a sampler of dibs: a pure function of the history, as far as it lets itself be one.

Each ask starts from the sampler as it was given, with its random numbers seeded anew by (study's seed, n), in a study
made of the history; what it remembers in itself or in its trials from one ask to the next is not there.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from optuna import samplers
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial, Trial

from dibs._canon import chance, plain
from dibs.errors import SpaceError, UsageError
from dibs.search import STATES as CODES
from dibs.search import Goals, History, Pair, Sampler, Score
from dibs.space import Space, Value

from ._optuna_space import distributions_of, number_of, value_of
from ._optuna_window import STATES, Window, frozen

__all__ = ["OptunaSampler", "described"]

# they keep what they have learnt, or how far they are, in attributes of Optuna's own trials or of its study
_REMEMBERING = ("CmaEsSampler", "NSGAIISampler", "NSGAIIISampler", "GridSampler", "QMCSampler")


class OptunaSampler(Sampler):
    """``OptunaSampler(optuna.samplers.TPESampler(multivariate=True))``: pass it as a Study's ``sampler``.

    Guarantee: the same seed, index and history give the same point, on every machine with the same version of Optuna
    (and of what the sampler computes with); the seed given to the Optuna sampler counts for nothing. Running trials
    are shown to it as running, parameters only where they are active. A process that joins passes an equal one.

    Raises UsageError for a sampler that remembers things in Optuna's own trials (CMA-ES, NSGA-II, grid, QMC), or reads
    constraints from there (``constraints_func``), by itself or in another one's hands: use ``dibs.optuna.Storage`` with
    these. Several goals are Optuna's objectives, and the excess over the constraints is one constraint, for a sampler
    that knows what to do with these.
    """

    name: ClassVar[str] = "optuna"
    version: ClassVar[int] = 1
    several: ClassVar[bool] = True

    def __init__(self, sampler: samplers.BaseSampler, seed: int | None = None, goal: Goals | None = None) -> None:
        super().__init__(seed, goal)
        if not isinstance(sampler, samplers.BaseSampler):
            raise UsageError(f"OptunaSampler takes a sampler of Optuna, not {sampler!r:.80}")
        for each in _all_of(sampler):
            kept = next((name for kind in type(each).__mro__ if (name := kind.__name__) in _REMEMBERING), None)
            if kept is not None and kept in dir(samplers):
                raise UsageError(
                    f"{kept} remembers what it did in Optuna's own trials, which a dibs study has not: run it with Optuna on "
                    "dibs.optuna.Storage, or take a sampler that looks at results alone, such as TPESampler or GPSampler"
                )
            if getattr(each, "_constraints_func", None) is not None:
                raise UsageError(
                    f"the constraints_func of {type(each).__name__} is asked about Optuna's own trials, which a dibs study has "
                    "not: run it with Optuna on dibs.optuna.Storage, or leave constraints_func out"
                )
        self._sampler = sampler
        self._known: tuple[Space, dict[int, tuple[Any, Score | None, str, float | None, FrozenTrial]]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None}

    def args(self) -> dict[str, Any]:
        return {"sampler": described(self._sampler)}

    def ask(self, space: Space, n: int, history: Iterable[Pair] = ()) -> dict[str, Value]:
        distributions = distributions_of(space)
        sampler = copy.deepcopy(self._sampler)
        for each in _all_of(sampler):
            _fix(each, space)
        reseed(sampler, int(chance(1, self.version, self.seed or 0, n, "optuna")[0] * 2**32))
        window = Window(self._trials(space, distributions, History.coerce(history)), self.goal)
        trial = window.study(sampler=sampler).ask()
        values: dict[str, Any] = {}
        try:
            for name in distributions:
                if name in space.active(values):
                    values[name] = value_of(space[name], _suggested(trial, name, distributions[name]))
        except ImportError as lacks:  # GPSampler wants torch, and imports it when it is asked for a second point
            raise UsageError(f"{type(sampler).__name__} needs a library that is not installed here: {lacks}") from lacks
        return space.check(values)

    def _trials(
        self, space: Space, distributions: Mapping[str, BaseDistribution], history: History
    ) -> list[FrozenTrial]:
        """The history as trials, by index; one that is not in the space (of a fork, say) is left out."""
        if self._known is None or self._known[0] != space:
            self._known = (space, {})
        known = self._known[1]
        found: list[FrozenTrial] = []
        excesses = [None if excess != excess else excess for excess in history.excess.tolist()]
        columns = history.n.tolist(), history.state.tolist(), history.step.tolist(), excesses
        for (point, score), n, code, step, excess in zip(history, *columns, strict=True):
            state = CODES[code]
            held = known.get(n) if n >= 0 else None
            if held is not None and held[0] is point and held[1:4] == (score, state, excess):
                trial = held[4]
            else:
                made = _trial(space, distributions, point, score, state, step, excess)
                if made is None:
                    continue
                trial = made
                if n >= 0:
                    known[n] = (point, score, state, excess, trial)
            if trial.number != len(found):
                trial = copy.copy(trial)
                trial.number = trial._trial_id = len(found)
            found.append(trial)
        return found


def _trial(
    space: Space,
    distributions: Mapping[str, BaseDistribution],
    point: Mapping[str, Any],
    score: Score | None,
    state: str,
    step: int,
    excess: float | None,
) -> FrozenTrial | None:
    try:
        values = space.check(point)
    except SpaceError:
        return None
    if state == "interrupted" or (state == "done" and score is None):
        return None
    params = {name: number_of(space[name], values[name]) for name in distributions if name in values}
    steps = {step: score} if isinstance(score, float) and step >= 0 else {}
    value = score if state in ("done", "pruned") else None
    return frozen(0, STATES[state], params, {name: distributions[name] for name in params}, value, steps, excess)


def _suggested(trial: Trial, name: str, distribution: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(
            name, distribution.low, distribution.high, log=distribution.log, step=distribution.step
        )
    return trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log, step=distribution.step)


def _all_of(sampler: Any, depth: int = 0) -> Iterator[Any]:
    """The sampler, and those it asks."""
    yield sampler
    for held in vars(sampler).values():
        if isinstance(held, samplers.BaseSampler) and depth < 8:
            yield from _all_of(held, depth + 1)


def _fix(sampler: Any, space: Space) -> None:
    """What a PartialFixedSampler was told to keep fixed, as the numbers that choices are in here."""
    fixed = getattr(sampler, "_fixed_params", None)
    if isinstance(fixed, dict) and isinstance(sampler, samplers.PartialFixedSampler):
        sampler._fixed_params = {name: _number(space, name, value) for name, value in fixed.items()}


def _number(space: Space, name: str, value: Any) -> Any:
    if name not in space.names:
        return value
    try:
        return number_of(space[name], space[name].check(value))
    except SpaceError as wrong:
        raise SpaceError(f"{name}, which the sampler was told to keep fixed: {wrong}", parameter=name) from None


def reseed(thing: Any, seed: int, depth: int = 0) -> None:
    """Every generator of random numbers in a sampler, and in the samplers it asks, seeded by the one number."""
    for at, (name, held) in enumerate(sorted(vars(thing).items())):
        mine = (seed + 1_000_003 * at) % 2**32
        kind = type(held).__name__
        if kind == "RandomState":
            held.seed(mine)
        elif kind == "Generator":
            setattr(thing, name, type(held)(type(held.bit_generator)(mine)))
        elif kind == "LazyRandomState":
            held.rng.seed(mine)  # made when first used
        elif isinstance(held, samplers.BaseSampler) and depth < 8:
            reseed(held, mine, depth + 1)


def described(thing: Any) -> dict[str, Any]:
    """An object of Optuna's in words that can be compared: its class, and its arguments as far as it has kept them."""
    found: dict[str, Any] = {}
    for name in inspect.signature(type(thing).__init__).parameters:
        held = getattr(thing, f"_{name}", getattr(thing, name, None))
        if name not in ("self", "seed", "args", "kwargs") and held is not None:
            found[name] = _words(held)
    return {"class": type(thing).__name__, "args": found}


def _words(held: Any) -> Any:
    held = plain(held)
    if held is None or isinstance(held, bool | int | float | str):
        return held if not isinstance(held, float) or np.isfinite(held) else str(held)
    if isinstance(held, list | tuple):
        return [_words(each) for each in held]
    if isinstance(held, Mapping):
        return {str(name): _words(each) for name, each in held.items()}
    if isinstance(held, samplers.BaseSampler):
        return described(held)
    return getattr(held, "__qualname__", type(held).__qualname__)
