"""The grid: its levels, each point once whoever asks, and an order that spreads."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.space.spaces import SETTINGS, spaces

from dibs.search import Grid, make_sampler
from dibs.search._grid import _shuffled
from dibs.space import Choice, Float, Int, Param, Space


@SETTINGS
@given(spaces(), st.integers(1, 4), st.integers(0, 3))
def test_each_point_once_then_none(space: Space, steps: int, seed: int) -> None:
    grid = Grid(steps, seed=seed)
    size = grid.size(space)
    assume(size <= 200)
    asked = [grid.ask(space, n) for n in range(size)]
    assert None not in asked
    assert len({repr(point) for point in asked}) == size
    assert grid.ask(space, size) is None
    assert grid.ask(space, 10**9) is None
    finite = space.size()
    if finite is not None and all((p.cells or 0) <= steps or isinstance(p, Choice) for p in space.params.values()):
        assert size == finite


def test_eight_askers_share_one_grid() -> None:
    space = Space(
        lr=Float(1e-4, 1e-1, log=True),
        opt=Choice("adam", "sgd"),
        momentum=Float(0, 0.9, when={"opt": "sgd"}),
        layers=Int(1, 3),
    )
    askers = [make_sampler({"name": "grid", "args": {"steps": 4}}, seed=5, goal="min") for _ in range(8)]
    size = askers[0].size(space)
    assert size == 4 * (1 + 4) * 3
    asked = [repr(askers[n % 8].ask(space, n)) for n in range(size)]
    assert len(set(asked)) == size
    assert sum("sgd" in point for point in asked) == 48


def levels(param: Param, steps: int) -> list[Any]:
    grid, space = Grid(steps), Space(x=param)
    asked = [grid.ask(space, n) for n in range(grid.size(space))]
    return sorted((point["x"] for point in asked if point is not None), key=lambda v: (str(type(v)), v))


@pytest.mark.parametrize(
    ("param", "steps", "expected"),
    [
        (Float(0, 1), 5, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (Float(0, 1), 2, [0.0, 1.0]),
        (Float(0, 1), 1, [0.5]),
        (Float(1e-4, 1e-1, log=True), 4, [1e-4, 1e-3, 1e-2, 1e-1]),
        (Float(1e-5, 1e-1, log=True), 3, [1e-5, 1e-3, 1e-1]),
        (Float(5, 5), 4, [5.0]),
        (Float(0, 1, step=0.5), 5, [0.0, 0.5, 1.0]),
        (Float(0, 1, step=0.1), 3, [0.0, 0.5, 1.0]),
        (Int(1, 3), 5, [1, 2, 3]),
        (Int(0, 100), 5, [0, 25, 50, 75, 100]),
        (Int(0, 10), 4, [0, 3, 7, 10]),
        (Int(0, 10, step=2), 3, [0, 6, 10]),
        (Int(1, 1000, log=True), 4, [1, 10, 100, 1000]),
        (Int(1, 6, log=True), 5, [1, 2, 4, 6]),
        (Int(0, 10), 1, [5]),
        (Choice(*range(9)), 3, list(range(9))),
    ],
)
def test_levels(param: Param, steps: int, expected: list[Any]) -> None:
    assert [repr(v) for v in levels(param, steps)] == [repr(v) for v in expected]


def test_a_value_that_others_wait_for_is_a_level() -> None:
    space = Space(layers=Int(1, 100), skip=Choice(True, False, when={"layers": [7]}))
    grid = Grid(3, seed=1)
    asked = [grid.ask(space, n) for n in range(grid.size(space))]
    assert {repr(point) for point in asked} == {
        "{'layers': 1}",
        "{'layers': 7, 'skip': False}",
        "{'layers': 7, 'skip': True}",
        "{'layers': 51}",
        "{'layers': 100}",
    }
    assert len(asked) == 5


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100, 1000])
def test_the_order_is_a_permutation(size: int) -> None:
    orders = [[_shuffled(n, size, 1, seed) for n in range(size)] for seed in range(3)]
    assert all(sorted(order) == list(range(size)) for order in orders)
    if size >= 64:
        assert orders[0] != orders[1] != orders[2]
        assert orders[0] != list(range(size))


def test_half_a_grid_is_spread_over_all_of_it() -> None:
    space = Space(a=Float(0, 1), b=Float(0, 1), c=Float(0, 1))
    half = [Grid(6, seed=1).ask(space, n) for n in range(108)]
    for name in "abc":
        shares = [sum(point[name] == level for point in half if point is not None) for level in levels(Float(0, 1), 6)]
        assert min(shares) >= 9  # 18 each if it were perfectly even
        assert max(shares) <= 27


def test_a_grid_too_large_to_list() -> None:
    space = Space({f"p{i:02}": Float(0, 1) for i in range(60)})
    grid = Grid(5, seed=1)
    assert grid.size(space) == 5**60
    points = [grid.ask(space, n) for n in (0, 1, 10**8, 5**60 - 1)]
    assert len({repr(point) for point in points}) == 4
    assert all(len(set(point.values())) > 2 for point in points if point is not None)
