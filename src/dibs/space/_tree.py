"""Counting and numbering the points of a space with finitely many levels, conditions included.

Walks the parameters parents first and carries only the set of later parameters that are already known to be
inactive, so that the cost follows the conditions and not the number of points: 10**40 points are counted at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dibs.errors import SpaceError

from ._param import Param
from ._values import Value, typed

if TYPE_CHECKING:
    from ._space import Space

__all__ = ["Levels", "Tree", "all_levels", "these_levels"]

_MOST_STATES = 4096


@dataclass(frozen=True, slots=True)
class Levels:
    """The values one parameter takes part with: how many, number k, and the number of a value or None."""

    count: int
    at: Callable[[int], Value]
    find: Callable[[Value], int | None]


def all_levels(param: Param) -> Levels:
    """Every value of a parameter that has finitely many."""
    assert param.cells is not None
    return Levels(param.cells, param.cell, param.index)


def these_levels(values: Sequence[Value]) -> Levels:
    """The listed values, in that order."""
    numbers = {typed(value): k for k, value in enumerate(values)}
    return Levels(len(values), values.__getitem__, lambda value: numbers.get(typed(value)))


class _Branch(NamedTuple):
    """Levels of one parameter after which the same later parameters are inactive."""

    levels: tuple[int, ...] | None  # None: the parameter itself is inactive
    rest: bool  # all levels but these
    size: int
    after: frozenset[int]


class Tree:
    """The points of ``space`` at the given levels, numbered 0 to ``size`` - 1 without gaps or repeats."""

    __slots__ = ("_branches", "_levels", "_names", "_order", "_ways", "size")

    def __init__(self, space: Space, levels: Mapping[str, Levels]) -> None:
        self._order, self._names = space.order, space.names
        self._levels = [levels[name] for name in self._order]
        children = self._children(space)
        states: set[frozenset[int]] = {frozenset()}
        self._branches: list[dict[frozenset[int], list[_Branch]]] = []
        for i in range(len(self._order)):
            self._branches.append({dead: self._branch(i, dead, children[i]) for dead in states})
            states = {branch.after for branches in self._branches[i].values() for branch in branches}
            if len(states) > _MOST_STATES:
                raise SpaceError(
                    "the conditions are too entangled to count the points; use fewer parents per parameter"
                )
        self._ways: list[dict[frozenset[int], int]] = [{frozenset(): 1}]
        for table in reversed(self._branches):
            later = self._ways[-1]
            self._ways.append({dead: sum(b.size * later[b.after] for b in bs) for dead, bs in table.items()})
        self._ways.reverse()
        self.size = self._ways[0][frozenset()]

    def _children(self, space: Space) -> list[list[tuple[int, frozenset[int]]]]:
        place = {name: i for i, name in enumerate(self._order)}
        children: list[list[tuple[int, frozenset[int]]]] = [[] for _ in self._order]
        for name, i in place.items():
            for parent, values in (space.params[name].when or {}).items():
                p = place[parent]
                found = (self._levels[p].find(value) for value in values)
                children[p].append((i, frozenset(k for k in found if k is not None)))
        return children

    def _branch(self, i: int, dead: frozenset[int], children: list[tuple[int, frozenset[int]]]) -> list[_Branch]:
        every = frozenset(child for child, _ in children)
        if i in dead:
            return [_Branch(None, False, 1, (dead | every) - {i})]
        groups: dict[frozenset[int], list[int]] = {}
        for k in sorted(frozenset().union(*(holds for _, holds in children))):
            after = dead | {child for child, holds in children if k not in holds}
            groups.setdefault(after, []).append(k)
        branches = [_Branch(tuple(ks), False, len(ks), after) for after, ks in groups.items()]
        named = tuple(sorted(k for ks in groups.values() for k in ks))
        if len(named) < self._levels[i].count:
            branches.append(_Branch(named, True, self._levels[i].count - len(named), dead | every))
        return branches

    def point(self, number: int) -> dict[str, Value]:
        """Point ``number`` of ``size``, its names sorted."""
        if not 0 <= number < self.size:
            raise IndexError(f"point {number} of {self.size}")
        values: dict[str, Value] = {}
        dead: frozenset[int] = frozenset()
        for i, name in enumerate(self._order):
            for branch in self._branches[i][dead]:
                ways = self._ways[i + 1][branch.after]
                if number < branch.size * ways:
                    break
                number -= branch.size * ways
            dead = branch.after
            k, number = divmod(number, ways)
            if branch.levels is None:
                continue
            if branch.rest:
                for level in branch.levels:
                    k += level <= k
            else:
                k = branch.levels[k]
            values[name] = self._levels[i].at(k)
        return {name: values[name] for name in self._names if name in values}
