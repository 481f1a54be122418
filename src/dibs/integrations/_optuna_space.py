"""Spaces and Optuna's distributions, both ways.

For a sampler a choice is its number: Optuna tells choices apart by ``==``, where True is 1. For people a choice is
itself where that is unambiguous, else its canonical text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from dibs._canon import dumps, to_json
from dibs.errors import SpaceError
from dibs.space import Choice, Constant, Float, Int, Space, Value

__all__ = ["derived_space", "distributions_of", "number_of", "numeric", "shown_choices", "value_of"]

_PLAIN = (type(None), bool, int, float, str)


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """The distribution of each axis, parents first; choices are numbers, ordered ones integers."""
    axes = set(space.axes)
    return {name: _distribution(space[name]) for name in space.order if name in axes}


def numeric(param: Float | Int) -> BaseDistribution:
    """The distribution of a range."""
    if isinstance(param, Float):
        return FloatDistribution(param.low, param.high, log=param.log, step=param.step)
    return IntDistribution(param.low, param.high, log=param.log, step=param.step)


def _distribution(param: Any) -> BaseDistribution:
    if isinstance(param, Float | Int):
        return numeric(param)
    if param.ordered:
        return IntDistribution(0, param.cells - 1)
    return CategoricalDistribution(range(param.cells))


def number_of(param: Any, value: Value) -> Any:
    """What Optuna is told for a value of the parameter."""
    return param.index(value) if isinstance(param, Choice) else value


def value_of(param: Any, told: Any) -> Value:
    """The value Optuna means, as every machine has it: floats are snapped as the space does it."""
    if isinstance(param, Choice):
        return param.cell(int(told))
    if isinstance(param, Float):
        return param.value(param.unit(float(told)))
    return int(told)


def shown_choices(values: Sequence[Value]) -> tuple[Any, ...]:
    """Choices as people should see them in Optuna."""
    apart = all(isinstance(value, _PLAIN) for value in values) and len({*values}) == len(values)
    return tuple(values) if apart else tuple(dumps(to_json(value)).decode() for value in values)


def derived_space(trials: Iterable[tuple[Mapping[str, Any], Mapping[str, BaseDistribution]]]) -> Space:
    """The space that trials (params, distributions) were drawn from.

    Ranges that differ are joined. A parameter that not every trial has depends on the first categorical one whose
    values say when it is there. Raises SpaceError naming the parameter for which there is none, or that has two kinds.
    """
    rows = list(trials)
    found: dict[str, BaseDistribution] = {}
    for _, distributions in rows:
        for name, distribution in distributions.items():
            found[name] = _joined(name, found[name], distribution) if name in found else distribution
    everywhere = [name for name in found if all(name in params for params, _ in rows)]
    choosers = [name for name in everywhere if isinstance(found[name], CategoricalDistribution)]
    whens = {name: _when(name, choosers, rows) for name in found if name not in everywhere}
    return Space({name: _param(distribution, whens.get(name)) for name, distribution in found.items()})


def _joined(name: str, one: Any, other: Any) -> Any:
    if one == other:
        return one
    if type(one) is not type(other):
        raise SpaceError(f"{name} is of two kinds in that study: {one} and {other}", parameter=name)
    if isinstance(one, CategoricalDistribution) or (one.log, one.step) != (other.log, other.step):
        raise SpaceError(f"{name} was drawn in two ways in that study: {one} and {other}", parameter=name)
    return type(one)(min(one.low, other.low), max(one.high, other.high), log=one.log, step=one.step)


def _when(name: str, choosers: list[str], rows: list[tuple[Mapping[str, Any], Any]]) -> dict[str, list[Any]]:
    for parent in choosers:
        there = {_key(params[parent]): params[parent] for params, _ in rows if name in params}
        if not there.keys() & {_key(params[parent]) for params, _ in rows if name not in params}:
            return {parent: list(there.values())}
    raise SpaceError(
        f"{name} is in some trials of that study and not in others, and no categorical parameter says when: create the "
        "dibs study with the space you mean, then import into it",
        parameter=name,
    )


def _key(value: Any) -> tuple[type, Any]:
    return type(value), value


def _param(distribution: Any, when: dict[str, list[Any]] | None) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return Choice(*(tuple(c) if isinstance(c, list) else c for c in distribution.choices), when=when)
    if isinstance(distribution, IntDistribution):
        return Int(distribution.low, distribution.high, log=distribution.log, step=distribution.step, when=when)
    if distribution.low == distribution.high:
        return Constant(distribution.low, when=when)
    return Float(distribution.low, distribution.high, log=distribution.log, step=distribution.step, when=when)
