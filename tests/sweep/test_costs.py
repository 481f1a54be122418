"""What a cell costs: as declared, or learned with the host's speed taken out; never worse for one cell that was held up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.sweep import Cell
from dibs.sweep._costs import Finished, costs_of, longest_first


def cell(n: int, task: str = "t", epochs: int | None = None, cost: float | None = None) -> Cell:
    return Cell(n, f"c{n}", {"task": task} | ({"epochs": epochs} if epochs else {}), "q", n + 1, cost)


def test_before_anything_is_finished() -> None:
    assert costs_of([cell(0, epochs=5), cell(1, epochs=20)]).of == {0: 5, 1: 20}
    assert costs_of([cell(0, epochs=5), cell(1)]).of == {0: 1, 1: 1}
    found = costs_of([cell(0, cost=4), cell(1, epochs=9), cell(2, cost=6)])
    assert (found.of, found.unit) == ({0: 4, 1: 5, 2: 6}, "declared")
    assert costs_of([]).of == {}


def test_longest_first() -> None:
    cells = [cell(0, epochs=5), cell(1, epochs=20), cell(2, epochs=5), cell(3, epochs=30)]
    assert [each.n for each in sorted(cells, key=longest_first(costs_of(cells)))] == [3, 1, 0, 2]


def test_learned_by_task_epochs_and_host() -> None:
    finished = [
        Finished(cell(0, "seg", 10), 100.0, "slow"), Finished(cell(1, "seg", 20), 100.0, "fast"),
        Finished(cell(2, "det", 10), 30.0, "slow"),
    ]  # fmt: skip
    found = costs_of([cell(3, "seg", 40), cell(4, "det", 40), cell(5, "new", 10)], finished)
    assert found.speeds["fast"] / found.speeds["slow"] == pytest.approx(2)
    assert found.speeds["fast"] * found.speeds["slow"] == pytest.approx(1)
    assert found.of[3] / found.speeds["slow"] == pytest.approx(400)
    assert found.of[3] / found.speeds["fast"] == pytest.approx(200)
    assert found.of[4] / found.speeds["slow"] == pytest.approx(120)
    assert found.of[5] == pytest.approx((found.of[3] + found.of[4]) / 8)  # the median rate of the two tasks
    assert (found.unit, found.learned, found.guessed) == ("s", 3, 1)


def test_given_speeds_are_believed() -> None:
    found = costs_of([cell(1, epochs=10)], [Finished(cell(0, epochs=10), 50.0, "a")], {"a": 4.0, "b": 2.0})
    assert found.of == {1: pytest.approx(200)}
    assert found.speeds == {"a": 4.0, "b": 2.0}


def test_a_declared_cost_is_scaled_to_seconds() -> None:
    found = costs_of([cell(1, cost=3.0)], [Finished(cell(0, cost=2.0), 100.0, "a")])
    assert found.of == {1: pytest.approx(150)}


def test_one_cell_that_was_held_up_moves_nothing() -> None:
    usual = [Finished(cell(n, epochs=10), 100.0, host) for n, host in enumerate("aabbab")]
    odd = [Finished(cell(9, epochs=10), 9000.0, "a"), Finished(cell(8, epochs=10), 1.0, "a")]
    found = costs_of([cell(10, epochs=10)], [*usual, *odd])
    assert found.of[10] == pytest.approx(100)
    assert found.speeds == {"a": pytest.approx(1), "b": pytest.approx(1)}


@given(
    st.dictionaries(st.sampled_from("abc"), st.floats(0.2, 5), min_size=2),
    st.dictionaries(st.sampled_from("xyz"), st.floats(1, 1000), min_size=1),
)
def test_a_model_that_holds_is_found_again(speeds: dict[str, float], rates: dict[str, float]) -> None:
    pairs = [(host, task) for host in speeds for task in rates]
    finished = [
        Finished(cell(n, task, 3), rates[task] * 3 / speeds[host], host) for n, (host, task) in enumerate(pairs)
    ]
    found = costs_of([cell(100 + n, task, 7) for n, task in enumerate(rates)], finished)
    for n, task in enumerate(rates):
        for host, speed in speeds.items():
            assert found.of[100 + n] / found.speeds[host] == pytest.approx(rates[task] * 7 / speed, rel=1e-3)


def test_what_took_no_time_teaches_nothing() -> None:
    assert costs_of([cell(1, epochs=2)], [Finished(cell(0, epochs=2), 0.0, "a")]).unit == "epochs"
