"""Assignments: every cell once, the same on every machine, near the best there is, and a bound that nothing beats."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import UsageError
from dibs.sweep import Cell
from dibs.sweep._balance import assign
from dibs.sweep._hosts import hosts_in, hosts_of

COSTS = st.lists(st.integers(1, 30).map(float), max_size=7)
SPEEDS = st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=3)


def cells(count: int) -> list[Cell]:
    return [Cell(n, f"c{n}", {}, "q", n + 1) for n in range(count)]


def best(costs: list[float], speeds: list[float]) -> float:
    """By trying all of them."""
    ends = []
    for where in product(range(len(speeds)), repeat=len(costs)):
        loads = [sum(cost for cost, at in zip(costs, where, strict=True) if at == host) for host in range(len(speeds))]
        ends.append(max(load / speed for load, speed in zip(loads, speeds, strict=True)))
    return min(ends)


def assigned(costs: list[float], speeds: list[float]):  # type: ignore[no-untyped-def]
    return assign(cells(len(costs)), dict(enumerate(costs)), {f"h{k}": speed for k, speed in enumerate(speeds)})


@given(COSTS, SPEEDS)
def test_every_cell_once_and_between_bound_and_twice_the_best(costs: list[float], speeds: list[float]) -> None:
    found = assigned(costs, speeds)
    assert sorted(cell.n for share in found.shares for cell in share.cells) == list(range(len(costs)))
    for share in found.shares:
        assert share.finish == pytest.approx(sum(costs[cell.n] for cell in share.cells) / share.speed)
    optimum = best(costs, speeds)
    assert found.bound <= optimum * (1 + 1e-9)
    assert optimum <= found.finish * (1 + 1e-9)
    assert found.finish <= 2 * optimum * (1 + 1e-9)


@given(COSTS, st.integers(1, 3))
def test_hosts_of_one_speed_are_near_the_best(costs: list[float], many: int) -> None:
    found = assigned(costs, [1.0] * many)
    assert found.finish <= (4 / 3 - 1 / (3 * many)) * best(costs, [1.0] * many) * (1 + 1e-9)


@given(COSTS, SPEEDS, st.randoms())
def test_the_order_in_which_they_come_decides_nothing(costs: list[float], speeds: list[float], random) -> None:  # type: ignore[no-untyped-def]
    some, hosts = cells(len(costs)), list({f"h{k}": speed for k, speed in enumerate(speeds)}.items())
    first = assign(some, dict(enumerate(costs)), dict(hosts))
    random.shuffle(some)
    random.shuffle(hosts)
    assert assign(some, dict(enumerate(costs)), dict(hosts)) == first


def test_the_worst_case_of_the_rule_is_known() -> None:
    found = assigned([3.0, 3.0, 2.0, 2.0, 2.0], [1.0, 1.0])
    assert (found.finish, found.bound) == (7.0, 6.0)


def test_hosts() -> None:
    assert hosts_of(["a", "b=2.5", "c = 1e-1"]) == {"a": 1.0, "b": 2.5, "c": 0.1}
    assert hosts_in("h", ["# all", "", "a 2", "b=3", "c"]) == {"a": 2.0, "b": 3.0, "c": 1.0}


@pytest.mark.parametrize("text", ["a=0", "a=-1", "a=nan", "a=inf", "a=x", "=1", "", "a b c", "../a", ".a", "a/b"])
def test_what_is_no_host(text: str) -> None:
    with pytest.raises(UsageError, match="is no host: write its name and how fast it is"):
        hosts_of([text])


def test_a_host_twice() -> None:
    with pytest.raises(UsageError, match="--host 'a=2': that host is named twice"):
        hosts_of(["a", "a=2"])
    with pytest.raises(UsageError, match="h:3: 'a': that host is named twice"):
        hosts_in("h", ["a=1", "", "a"])
    with pytest.raises(UsageError, match="there is no host in h"):
        hosts_in("h", ["#"])
