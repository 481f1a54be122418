"""Counting and numbering points: against plain enumeration, and where enumeration would never end."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given

from dibs.errors import SpaceError
from dibs.space import Choice, Float, Int, Space, Tree, all_levels, these_levels

from .spaces import SETTINGS, finite_params, spaces


def enumerated(space: Space) -> set[str]:
    """Every point by brute force: all combinations, the inactive ones struck out."""
    found = set()
    every = [[param.cell(k) for k in range(param.cells or 0)] for param in space.params.values()]
    for combination in product(*every):
        point = dict(zip(space.names, combination, strict=True))
        active = space.active(point)
        found.add(repr({name: value for name, value in point.items() if name in active}))
    return found


@SETTINGS
@given(spaces(finite_params))
def test_each_point_once(space: Space) -> None:
    size = space.size()
    assert size is not None
    assume(size <= 300)
    listed = [repr(point) for point in space.points()]
    assert len(listed) == size
    assert set(listed) == enumerated(space)
    assert len(set(listed)) == size
    assert [repr(point) for point in space.points()] == listed


def test_a_count_that_nobody_could_wait_for() -> None:
    space = Space({f"p{i:02}": Int(0, 9) for i in range(40)})
    assert space.size() == 10**40
    trees = {f"r{i:02}": Choice("a", "b") for i in range(30)}
    trees |= {f"s{i:02}": Int(1, 4, when={f"r{i:02}": "b"}) for i in range(30)}
    assert Space(trees).size() == 5**30
    assert Space(n=Int(0, 2**62), x=Choice(1, 2, when={"n": [5, 7]})).size() == 2**62 + 1 + 2


def test_a_wide_parent_is_not_listed() -> None:
    space = Space(n=Int(0, 2**62), x=Choice(1, 2, when={"n": [5, 7]}))
    tree = Tree(space, {name: all_levels(param) for name, param in space.params.items()})
    assert [tree.point(k) for k in range(4)] == [{"n": 5, "x": 1}, {"n": 5, "x": 2}, {"n": 7, "x": 1}, {"n": 7, "x": 2}]
    assert [tree.point(k)["n"] for k in (4, 8, 9, 10, tree.size - 1)] == [0, 4, 6, 8, 2**62]
    for outside in (-1, tree.size):
        with pytest.raises(IndexError):
            tree.point(outside)


def test_levels_of_ones_own() -> None:
    space = Space(n=Int(1, 9), x=Float(0, 1, when={"n": [2, 9]}))
    tree = Tree(space, {"n": these_levels([1, 5, 9]), "x": these_levels([0.0, 1.0])})
    assert [tree.point(k) for k in range(tree.size)] == [{"n": 9, "x": 0.0}, {"n": 9, "x": 1.0}, {"n": 1}, {"n": 5}]


def test_a_continuum_has_no_size() -> None:
    space = Space(x=Float(0, 1), n=Int(1, 3))
    assert space.size() is None
    with pytest.raises(SpaceError, match="x: a Float without a step"):
        space.points()
    assert Space(x=Float(0, 1, step=0.5), n=Int(1, 3)).size() == 9


def test_conditions_too_entangled_to_count_say_so() -> None:
    params: dict[str, Any] = {f"a{i:02}": Choice(0, 1) for i in range(14)}
    params["z"] = Choice(0, 1)
    params |= {f"b{i:02}": Choice(0, 1, when={f"a{i:02}": 1, "z": 1}) for i in range(14)}
    with pytest.raises(SpaceError, match="entangled"):
        Space(params).size()
