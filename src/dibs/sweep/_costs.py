"""What a cell costs: as declared, else learned from cells that are finished, with the speed of their hosts taken out. Pure.

The model: seconds = rate of the task x epochs / speed of the host. It is fitted in logarithms by medians, so that one cell
that was held up moves little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from ._models import Cell

__all__ = ["Costs", "Finished", "costs_of", "longest_first"]

_ROUNDS = 30
_K = TypeVar("_K")
_Key = tuple[str, str]  # ("task", its name), or ("declared", "") for cells that say their cost


@dataclass(frozen=True)
class Finished:
    """A cell that was run to its end: how long, in seconds, and on which host."""

    cell: Cell
    took_s: float
    host: str


@dataclass(frozen=True)
class Costs:
    """``of``: a cell's number -> its cost at speed 1; ``unit``: s, or what else was counted (epochs, cells, declared).

    ``learned``: how many cells that was learned from; ``guessed``: how many costs rest on other tasks' cells alone.
    ``speeds``: of hosts, as given, else as learned (their geometric mean is 1 where none was given).
    """

    of: Mapping[int, float]
    unit: str
    learned: int = 0
    guessed: int = 0
    speeds: Mapping[str, float] = field(default_factory=dict)


def costs_of(
    cells: Sequence[Cell], finished: Iterable[Finished] = (), given: Mapping[str, float] | None = None
) -> Costs:
    """The cost of each cell. ``given``: speeds of hosts that somebody knows."""
    given = dict(given or {})
    seen = [each for each in finished if each.took_s > 0 and math.isfinite(each.took_s)]
    if not seen:
        return _unlearned(cells, given)
    rates, speeds = _fitted(seen, given)
    by_task = {key: rate for key, rate in rates.items() if key[0] == "task"}
    usual = median(by_task.values()) if by_task else None
    of, guessed = {}, 0
    for cell in cells:
        rate = rates.get(_key(cell))
        if rate is None:  # a task that nobody has finished, or the first declared cost: seconds, for all one knows
            rate = 1.0 if cell.cost is not None or usual is None else usual
            guessed += 1
        of[cell.n] = rate * _size(cell)
    return Costs(of, "s", len(seen), guessed, speeds)


def _unlearned(cells: Sequence[Cell], given: Mapping[str, float]) -> Costs:
    declared = [cell.cost for cell in cells if cell.cost is not None]
    if declared:
        usual = median(declared)
        return Costs({cell.n: usual if cell.cost is None else cell.cost for cell in cells}, "declared", speeds=given)
    by_epochs = bool(cells) and all(_epochs(cell) for cell in cells)
    return Costs(
        {cell.n: _size(cell) if by_epochs else 1.0 for cell in cells}, "epochs" if by_epochs else "cells", speeds=given
    )


def _fitted(seen: Sequence[Finished], given: Mapping[str, float]) -> tuple[dict[_Key, float], dict[str, float]]:
    """(rate of each key, speed of each host)."""
    points = [(_key(each.cell), each.host, math.log(each.took_s / _size(each.cell))) for each in seen]
    rate = dict.fromkeys(sorted({key for key, _, _ in points}), 0.0)
    speed = {host: math.log(given.get(host, 1.0)) for host in sorted({host for _, host, _ in points})}
    free = [host for host in speed if host not in given]
    for _ in range(_ROUNDS):
        _settle(rate, [(key, took + speed[host]) for key, host, took in points])
        if not free:
            break
        _settle(speed, [(host, rate[key] - took) for key, host, took in points if host not in given])
    if len(free) == len(speed):  # nobody has said what 1 is: the mean host
        mean = sum(speed.values()) / len(speed)
        speed = {host: value - mean for host, value in speed.items()}
        rate = {key: value - mean for key, value in rate.items()}
    found = {host: math.exp(value) for host, value in speed.items()}
    return {key: math.exp(value) for key, value in rate.items()}, found | dict(given)


def _settle(of: dict[_K, float], values: Iterable[tuple[_K, float]]) -> None:
    by: dict[_K, list[float]] = {}
    for key, value in values:
        by.setdefault(key, []).append(value)
    of.update({key: median(found) for key, found in by.items()})


def _key(cell: Cell) -> _Key:
    return ("declared", "") if cell.cost is not None else ("task", str(cell.fields.get("task", "")))


def _size(cell: Cell) -> float:
    return cell.cost if cell.cost is not None else _epochs(cell) or 1.0


def _epochs(cell: Cell) -> float | None:
    epochs = cell.fields.get("epochs")
    return float(epochs) if isinstance(epochs, int | float) and epochs > 0 else None


def longest_first(costs: Costs) -> Callable[[Cell], tuple[float, int]]:
    """A key that sorts cells as they should be begun."""
    return lambda cell: (-costs.of.get(cell.n, 0.0), cell.n)
