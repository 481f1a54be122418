"""How even the Sobol points are: exactly, where theory says so, and against chance and scipy's elsewhere."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from dibs._canon import chance
from dibs.errors import UsageError
from dibs.search import Sobol
from dibs.search._directions import DIRECTIONS
from dibs.space import Choice, Float, Int, Space


def cube(count: int, dims: int, seed: int = 0, start: int = 0) -> NDArray[np.float64]:
    sampler = Sobol(seed=seed)
    return np.array([sampler._unit(n, dims) for n in range(start, start + count)])


def chaos(count: int, dims: int, seed: int = 0) -> NDArray[np.float64]:
    return np.array([chance(dims, "test", seed, n) for n in range(count)])


@pytest.mark.parametrize("seed", [0, 1, -5, 2**62])
def test_every_axis_is_perfectly_stratified(seed: int) -> None:
    points = cube(256, 128, seed)
    for k in range(9):
        for start in range(0, 256, 2**k):
            cells = np.sort((points[start : start + 2**k] * 2**k).astype(int), axis=0)
            assert (cells == np.arange(2**k)[:, None]).all()


def test_the_first_two_axes_are_a_perfect_net() -> None:
    points = cube(256, 2, seed=9)
    for a in range(9):
        boxes = (points[:, 0] * 2**a).astype(int) * 2 ** (8 - a) + (points[:, 1] * 2 ** (8 - a)).astype(int)
        assert len(set(boxes)) == 256


def uneven(points: NDArray[np.float64], m: int) -> NDArray[np.float64]:
    """For each pair of axes the chi-square per cell of a 2**(m/2) by 2**(m/2) board; chance gives 1, a perfect net 0."""
    side = 2 ** (m // 2)
    cells = (points * side).astype(int)
    expected = len(points) / side**2
    found = []
    for a, b in combinations(range(points.shape[1]), 2):
        counts = np.bincount(cells[:, a] * side + cells[:, b], minlength=side**2)
        found.append(float(((counts - expected) ** 2).mean() / expected))
    return np.array(found)


def test_pairs_of_axes_are_far_more_even_than_chance() -> None:
    for m, dims in ((8, 10), (10, 20)):
        ours, random = uneven(cube(2**m, dims), m), uneven(chaos(2**m, dims), m)
        assert ours.mean() < 0.5 * random.mean()
        # at four points a box most pairs have exactly four in each
        wide = uneven(cube(2**m, dims), m - 2)
        assert (wide == 0).mean() > 0.75
        assert wide.mean() < 0.35


def test_no_pair_of_64_axes_is_bad() -> None:
    spread = uneven(cube(4096, 64), 6)
    assert spread.mean() < 0.1
    assert spread.max() < 3


@pytest.mark.parametrize(("dims", "m"), [(2, 6), (5, 8), (10, 8), (20, 9)])
def test_discrepancy_as_low_as_scipys_and_lower_than_chance(dims: int, m: int) -> None:
    from scipy.stats import qmc

    ours = np.mean([qmc.discrepancy(cube(2**m, dims, seed)) for seed in range(4)])
    theirs = np.mean([qmc.discrepancy(qmc.Sobol(dims, seed=seed).random_base2(m)) for seed in range(4)])
    random = np.mean([qmc.discrepancy(chaos(2**m, dims, seed)) for seed in range(4)])
    assert ours < 1.25 * theirs
    assert ours < 0.6 * random


def test_an_integral_converges_faster_than_by_chance() -> None:
    def error(points: NDArray[np.float64]) -> float:
        return abs(float(np.prod(1 + 0.5 * (points - 0.5), axis=1).mean()) - 1)

    ours = np.mean([error(cube(512, 6, seed)) for seed in range(6)])
    random = np.mean([error(chaos(512, 6, seed)) for seed in range(6)])
    assert ours < 0.2 * random


def test_the_table_is_what_it_says() -> None:
    assert len(DIRECTIONS) == 127
    assert len({poly for poly, _ in DIRECTIONS}) == 127
    degrees = [poly.bit_length() - 1 for poly, _ in DIRECTIONS]
    assert degrees == sorted(degrees)
    for poly, start in DIRECTIONS:
        degree = poly.bit_length() - 1
        assert len(start) == degree
        assert all(m % 2 == 1 and m < 2**k for k, m in enumerate(start, 1))
        assert order_of_x(poly) == 2**degree - 1  # primitive


def order_of_x(poly: int) -> int:
    degree, x, order = poly.bit_length() - 1, 1, 0
    while order <= 2**degree:
        x <<= 1
        x ^= poly if x >> degree else 0
        order += 1
        if x == 1:
            return order
    return 0


def test_each_axis_is_scrambled_by_itself() -> None:
    assert len(set(Sobol(seed=1)._unit(0, 128))) == 128
    assert len({Sobol(seed=seed)._unit(0, 1)[0] for seed in range(50)}) == 50


def test_axes_follow_the_sorted_names_and_constants_take_none() -> None:
    few = Space(b=Float(0, 1), d=Float(0, 1))
    more = Space(b=Float(0, 1), c=30, d=Float(0, 1), e=Choice(1, 2))
    for n in range(8):
        one, two = Sobol(seed=1).ask(few, n), Sobol(seed=1).ask(more, n)
        assert (one["b"], one["d"]) == (two["b"], two["d"])


def test_more_axes_than_directions() -> None:
    wide = Space({f"p{i:03}": Float(0, 1) for i in range(140)})
    points = [Sobol(seed=1).ask(wide, n) for n in range(64)]
    assert {int(point["p127"] * 64) for point in points} == set(range(64))
    beyond = {int(point["p139"] * 64) for point in points}
    assert 20 < len(beyond) < 60  # drawn, not stratified


def test_a_finite_axis_is_even_too() -> None:
    space = Space(k=Int(1, 8), c=Choice("a", "b", "c", "d"))
    points = [Sobol(seed=5).ask(space, n) for n in range(32)]
    assert len({(p["k"], p["c"]) for p in points}) == 32


def test_indexes_end_at_32_bits() -> None:
    space = Space(x=Float(0, 1))
    assert 0 <= Sobol().ask(space, 2**32 - 1)["x"] <= 1
    for n in (-1, 2**32):
        with pytest.raises(UsageError, match=str(n)):
            Sobol().ask(space, n)
