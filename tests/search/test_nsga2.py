"""NSGA-II: its order is that of the paper, its parents are the best of all, its children are new points of the space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.space.spaces import finite_params, spaces, typed_items

from dibs.errors import UsageError
from dibs.search import NSGA2, History, Sobol, make_sampler
from dibs.search import _population as module
from dibs.search._cube import cube_of
from dibs.search._fronts import crowding, ranks
from dibs.search._past import past_of
from dibs.search._population import population_of
from dibs.space import Choice, Float, Int, Space

from .golden_models import CONDITIONAL, FINITE, MIXED, NUMBERS, score
from .test_several import BOTH, rows_of

few = st.integers(-3, 3).map(float)


@settings(deadline=None)
@given(st.lists(st.tuples(few, few, few, st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, 2.0])), max_size=40))
def test_ranks_are_those_of_brute_force(rows: list[Any]) -> None:
    table = np.array(rows, np.float64).reshape(-1, 4)

    def beats(a: Any, b: Any) -> bool:
        if a[3] or b[3]:
            return bool(a[3] < b[3])
        return all(x <= y for x, y in zip(a[:3], b[:3], strict=True)) and a[:3] != b[:3]

    wanted, left, front = [-1] * len(rows), set(range(len(rows))), 0
    while left:
        now = {i for i in left if not any(beats(rows[j], rows[i]) for j in left)}
        for i in now:
            wanted[i] = front
        left, front = left - now, front + 1
    assert ranks(table[:, :3], table[:, 3]).tolist() == wanted


def test_crowding_is_that_of_the_paper() -> None:
    table = np.array([[0.0, 4.0], [1.0, 3.0], [4.0, 0.0], [2.0, 1.0], [9.0, 9.0]])
    found = crowding(table, np.array([0, 0, 0, 0, 1])).tolist()
    assert found[0] == found[2] == math.inf
    assert found[1] == pytest.approx((2 - 0) / 4 + (4 - 1) / 4)
    assert found[3] == pytest.approx((4 - 1) / 4 + (3 - 0) / 4)
    assert found[4] == 0.0  # alone in its front, at no end of any range
    alike = np.full((5, 2), 1e308)
    assert crowding(alike, np.zeros(5, np.int64)).tolist() == [0.0] * 5
    assert not np.isnan(crowding(np.array([[1e308, -1e308], [-1e308, 1e308], [0.0, 0.0]]), np.zeros(3, np.int64))).any()
    assert crowding(np.empty((0, 2)), np.empty(0, np.int64)).tolist() == []


def population(rows: list[Any], size: int) -> list[int]:
    """Indexes of the parents."""
    history = History.of(rows)
    past = past_of(cube_of(NUMBERS), history, np.array([1.0, -1.0]), np.full(2, 0.5))
    return [int(history.n[past.scored[i]]) for i in population_of(past, size)]


def test_the_parents_are_the_best_of_all() -> None:
    rows: list[Any] = []
    for n in range(900):  # the front is spread over all of the study, every 30th
        good, at = n % 30 == 7, n / 900
        rows.append((n, {}, (at + (not good), at if good else at - 1.0 - n % 3), "done", None, None))
    front = set(range(7, 900, 30))
    assert set(population(rows, 30)) == front
    assert len(population(rows, 40)) == 40
    assert set(population(rows, 40)) > front
    assert population(rows[::-1], 30) == population(rows, 30)
    bad = [row if row[0] % 60 != 7 else (*row[:5], 1.0) for row in rows]
    assert set(population(bad, 15)) == set(range(37, 900, 60))


def test_what_settles_late_comes_into_its_block_and_moves_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(n, {}, (float(n % 37), float(n % 41)), "done", None, None) for n in range(1_200)]
    late = [*rows[:100], (100, {}, None, "running", None, None), *rows[101:]]
    before = population(late, 24)
    made: list[int] = []
    plain = module.ranks
    monkeypatch.setattr(module, "ranks", lambda table, over: made.append(len(table)) or plain(table, over))
    assert population(late, 24) == before
    assert not made  # remembered
    assert set(population(rows, 24)) - {100} <= set(before) | set(population(rows, 25))
    assert 1 <= len(made) <= 3  # its own block; as it is none of the best, the others go on with what they had


def test_more_parents_than_one_block_keeps() -> None:
    rows = [(n, {}, (float(n), float(n)), "done", None, None) for n in range(700)]
    assert len(set(population(rows, 600))) == 600
    assert len(population(rows, 900)) == 700


def test_sobol_points_until_the_population_is_scored() -> None:
    sampler, sobol = NSGA2(population=12, seed=5, goal=BOTH), Sobol(seed=5)
    rows = rows_of(NUMBERS, 12)
    assert [sampler.ask(NUMBERS, n, History.of(rows[:11])) for n in range(9)] == [
        sobol.ask(NUMBERS, n) for n in range(9)
    ]
    assert sampler.ask(NUMBERS, 20, History.of(rows)) != sobol.ask(NUMBERS, 20)
    again = make_sampler(sampler.describe(), seed=5, goal=BOTH)
    assert again == sampler
    assert again.describe() == {"name": "nsga2", "version": 1, "args": {"population": 12}}
    for wrong in (1, 0, True, 2.5, "24", None):
        with pytest.raises(UsageError, match="population"):
            NSGA2(population=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("space", [MIXED, CONDITIONAL, NUMBERS], ids=["mixed", "conditional", "numbers"])
def test_children_are_valid_new_and_near_their_parents(space: Space) -> None:
    rows = rows_of(space, 40)
    history, sampler = History.of(rows), NSGA2(population=8, seed=1, goal=BOTH)
    known = {repr(sorted(row[1].items(), key=str)) for row in rows}
    children: list[Any] = []
    for n in range(40, 100):
        running = [(40 + k, child, None, "running", None) for k, child in enumerate(children)]
        children.append(sampler.ask(space, n, history + History.of(running)))
    for child in children:
        assert typed_items(space.check(child)) == typed_items(child)
        assert set(child) == space.active(child)
    asked = {repr(sorted(child.items(), key=str)) for child in children}
    assert not asked & known
    assert len(asked) == 60
    if space is CONDITIONAL:
        assert {"momentum", "nesterov", "skip"} <= {name for child in children for name in child}


def test_running_trials_take_no_part_and_do_not_repel() -> None:
    rows, sampler = rows_of(NUMBERS, 40), NSGA2(seed=1, goal=BOTH)
    asked = sampler.ask(NUMBERS, 60, History.of(rows))
    busy = [(n + 40, *row[1:2], None, "running", None, None) for n, row in enumerate(rows[:9])]
    lost = [(50, {"x0": 99.0}, None, "failed", None, None), (51, rows[3][1], None, "pruned", 4, None)]
    assert sampler.ask(NUMBERS, 60, History.of(rows + busy + lost)) == asked


@settings(deadline=None, max_examples=20)
@given(spaces(finite_params), st.integers(0, 3))
def test_a_finite_space_is_never_repeated_while_there_is_more(space: Space, seed: int) -> None:
    size = space.size()
    assert size is not None
    assume(1 <= size <= 40)
    sampler, rows = NSGA2(population=4, seed=seed, goal=BOTH), []
    for n in range(size):
        point = sampler.ask(space, n, History.of(rows))
        state = ("done", "running", "done", "failed", "done", "pruned")[n % 6]
        both = (score(space, point), float(n % 5)) if state == "done" else None
        rows.append((n, point, both, state, None, n % 3 - 1.0))
    assert len({repr(row[1]) for row in rows}) == size
    assert typed_items(space.check(sampler.ask(space, size, History.of(rows)) or {}))


def test_steps_and_choices_are_left_and_entered() -> None:
    """A mutation of a cell reaches the next one at least; each value of a choice comes up again."""
    space = Space(k=Int(1, 3), c=Choice("a", "b", "c"), x=Float(0, 1))
    rows = [(n, {"k": 1, "c": "a", "x": n / 10}, (n / 10, n / 10), "done", None, None) for n in range(10)]
    sampler = NSGA2(population=4, seed=1, goal=BOTH)
    children = [sampler.ask(space, n, History.of(rows)) for n in range(10, 110)]
    assert {child["c"] for child in children} == {"a", "b", "c"}
    assert sum(child["k"] == 2 for child in children) > 10
    assert sum(child["k"] == 1 and child["c"] == "a" for child in children) > 20


def test_a_small_finite_space_is_searched_best_first() -> None:
    best = sorted(score(FINITE, p) for p in FINITE.points())[:3]
    rows: list[Any] = []
    for n in range(40):
        point = NSGA2(population=8, seed=1, goal="min").ask(FINITE, n, History.of(rows))
        rows.append((n, point, score(FINITE, point), "done", None))
    assert set(best) & {row[2] for row in rows}
