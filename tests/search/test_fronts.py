"""The front: what brute force finds, whatever the order, with equal rows, nan, goals and constraints."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dibs.errors import UsageError
from dibs.search import Goals, non_dominated

numbers = st.one_of(
    st.integers(-2, 2).map(float), st.floats(), st.sampled_from([0.0, -0.0, 1e308, -1e308, math.nan, math.inf])
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[float]], Goals, list[float]]:
    """Rows with many ties, goals, and an excess for each row."""
    goals = draw(st.lists(st.sampled_from(["min", "max"]), min_size=2, max_size=5))
    rows = draw(st.lists(st.lists(numbers, min_size=len(goals), max_size=len(goals)), max_size=30))
    over = draw(st.lists(st.one_of(numbers, st.just(-1.0)), min_size=len(rows), max_size=len(rows)))
    return rows, tuple(goals), over  # type: ignore[return-value]


def brute(rows: list[list[float]], goals: Any, over: list[float]) -> list[bool]:
    """By the definition."""
    turned = [[-x if goal == "max" else x for x, goal in zip(row, goals, strict=True)] for row in rows]
    good = [all(map(math.isfinite, row)) and not e > 0 for row, e in zip(rows, over, strict=True)]

    def beats(a: list[float], b: list[float]) -> bool:
        return all(x <= y for x, y in zip(a, b, strict=True)) and a != b

    return [
        fine and not any(ok and beats(other, row) for other, ok in zip(turned, good, strict=True))
        for row, fine in zip(turned, good, strict=True)
    ]


@settings(deadline=None)
@given(tables())
def test_the_front_is_what_brute_force_finds(table: Any) -> None:
    rows, goals, over = table
    assert non_dominated(rows, goals, over).tolist() == brute(rows, goals, over)
    assert non_dominated(rows, goals).tolist() == brute(rows, goals, [0.0] * len(rows))


@settings(deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_order_and_copies_mean_nothing(table: Any, random: Any) -> None:
    rows, goals, over = table
    front = non_dominated(rows, goals, over).tolist()
    mixed = random.sample(range(len(rows)), len(rows))
    assert non_dominated([rows[i] for i in mixed], goals, [over[i] for i in mixed]).tolist() == [
        front[i] for i in mixed
    ]
    assert non_dominated(rows + rows, goals, over + over).tolist() == front + front
    kept = [row for row, is_front in zip(rows, front, strict=True) if is_front]
    assert non_dominated(kept, goals).all()


def test_one_goal_has_all_of_the_best() -> None:
    assert non_dominated([3.0, 1.0, math.nan, 1.0], "min").tolist() == [False, True, False, True]
    assert non_dominated([[3.0], [1.0], [3.0]], "max").tolist() == [True, False, True]
    assert non_dominated([3.0, 1.0, 2.0], "min", [-1.0, 0.5, math.nan]).tolist() == [False, False, True]
    for nothing in ([], np.empty((0, 2))):
        assert non_dominated(nothing, ("min", "max")).tolist() == []
    assert non_dominated([], "min").dtype == bool


@pytest.mark.parametrize("goals", [("min", "min"), ("min", "max", "min")])
def test_many_rows(goals: Any) -> None:
    """All on one front, and as many again behind it."""
    t = np.linspace(0.0, 1.0, 2_000)
    front = np.stack([t, 1.0 - t, -t][: len(goals)], axis=1) * [1 if goal == "min" else -1 for goal in goals]
    behind = front + [0.1 if goal == "min" else -0.1 for goal in goals]
    assert non_dominated(np.concatenate([behind, front]), goals).tolist() == [False] * 2_000 + [True] * 2_000


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match=r"\(2, 2\) do not fit 3 goals"):
        non_dominated([[1, 2], [3, 4]], ("min",) * 3)
    with pytest.raises(UsageError, match="do not fit 2 goals"):
        non_dominated([1, 2], ("min", "min"))
    with pytest.raises(UsageError, match="excess of shape"):
        non_dominated([[1, 2], [3, 4]], ("min", "min"), [1.0])


@pytest.mark.parametrize("goals", range(1, 8))
def test_more_rows_than_are_looked_at_in_pairs(goals: int) -> None:
    """Ties, constant goals, copies, long fronts and short ones."""
    random = np.random.default_rng(goals)
    for rows in (65, 130, 400):
        for shape in ("ties", "front", "constant", "spread"):
            table = random.integers(0, 6, (rows, goals)) * 1.0 if shape == "ties" else random.random((rows, goals))
            if shape in ("front", "constant"):
                table[:, 0] = -table[:, 1:].sum(axis=1)
            if shape == "constant":
                table[:, -1] = 0.5
            table[::7] = table[3]
            below = (table[:, None] <= table[None]).all(axis=2)
            beaten = (below & ~below.T).any(axis=0)
            assert non_dominated(table, ("min",) * goals if goals > 1 else "min").tolist() == (~beaten).tolist(), shape


@pytest.mark.parametrize("goals", [3, 4])
def test_a_long_front_costs_no_look_at_each_of_its_rows(goals: int) -> None:
    """Every call is counted: a loop over the front has some for each of its rows."""
    table = np.random.default_rng(0).random((8_192, goals))
    table[:, 0] = -table[:, 1:].sum(axis=1)
    calls = 0

    def count(_frame: Any, _event: str, _argument: Any) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        front = non_dominated(table, ("min",) * goals)
    finally:
        sys.setprofile(before)
    assert front.all()
    assert calls < 10 * len(table)
