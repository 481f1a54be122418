"""Who is in a round, and what a server does with its average: functions of their arguments and nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs import UpdateError, UsageError
from dibs.federation import FedAdam, FedAvgM, participants

TEN = [f"c{k}" for k in range(10)]


@given(st.sets(st.text(min_size=1), min_size=1, max_size=12), st.integers(0, 50), st.floats(0.01, 1))
def test_everybody_knows_who_is_in(names: set[str], round: int, share: float) -> None:
    known = participants(names, "r", round, share, seed=3)
    assert known == participants(sorted(names, reverse=True), "r", round, share, seed=3)
    assert set(known) <= names
    assert known == sorted(known)
    assert 1 <= len(known) <= len(names)


def test_the_share_is_drawn_anew_for_each_round_and_fairly() -> None:
    rounds = [participants(TEN, "r", k, 0.3) for k in range(500)]
    assert {len(one) for one in rounds} == {3}
    counts = Counter(name for one in rounds for name in one)
    assert set(counts) == set(TEN)
    assert max(counts.values()) < 200 > min(counts.values()) > 100  # 150 each on average
    assert participants(TEN, "r", 0, 0.3) == ["c2", "c6", "c7"]
    assert rounds[:9] != [participants(TEN, "other", k, 0.3) for k in range(9)]
    assert rounds[:9] != [participants(TEN, "r", k, 0.3, seed=1) for k in range(9)]


@pytest.mark.parametrize(
    ("clients", "share"),
    [
        ([], 1.0),
        (["a", "a"], 1.0),
        ("abc", 1.0),
        ([""], 1.0),
        ([3], 1.0),
        (["\ud800"], 1.0),
        (TEN, 0),
        (TEN, 1.1),
        (TEN, True),
    ],
)
def test_who_cannot_be_meant(clients: Any, share: float) -> None:
    with pytest.raises(UsageError):
        participants(clients, "r", 0, share)


def model(*values: float) -> dict[str, Any]:
    return {"w": np.array(values), "n": np.array([int(values[0])])}


def test_no_momentum_is_the_average() -> None:
    stepped = FedAvgM(momentum=0.0).step(model(1, 2), model(3, 5))
    assert stepped.tensors["w"].tolist() == [3, 5]
    assert stepped.tensors["n"].tolist() == [3]


def test_momentum_adds_up() -> None:
    server = FedAvgM(lr=0.5, momentum=0.9)
    one = server.step(model(0.0), model(1.0))
    assert one.tensors["w"].tolist() == [0.5]
    two = server.step(one.tensors, model(1.5), one.state)  # a way of 1 again: 0.9 + 1
    assert two.tensors["w"].tolist() == pytest.approx([0.5 + 0.5 * 1.9])


def test_adam_is_that_of_the_paper() -> None:
    server = FedAdam(lr=0.1, beta1=0.9, beta2=0.99, tau=0.001)
    state, x = None, model(2.0)
    m, v, expected = 0.0, 0.001**2, 2.0
    for target in (3.0, 2.5, 4.0):
        way = target - expected
        m, v = 0.9 * m + 0.1 * way, 0.99 * v + 0.01 * way * way
        expected += 0.1 * m / (v**0.5 + 0.001)
        x, state = server.step(x, model(target), state)
        assert x["w"].tolist() == pytest.approx([expected])


@pytest.mark.parametrize("server", [FedAvgM(), FedAdam()])
def test_a_step_keeps_types_shapes_and_its_arguments(server: Any) -> None:
    before = {"w": np.ones((2, 3), np.float32), "s": np.array(1.0, np.float16)}
    average = {"w": np.zeros((2, 3), np.float32), "s": np.array(0.5, np.float16)}
    first = server.step(before, average)
    second = server.step(first.tensors, average, first.state)
    assert {k: (v.dtype, v.shape) for k, v in second.tensors.items()} == {
        k: (v.dtype, v.shape) for k, v in before.items()
    }
    assert (before["w"] == 1).all()
    with pytest.raises(UpdateError, match="has the shape"):
        server.step(before, {**average, "w": np.zeros((3, 2), np.float32)})
    with pytest.raises(UpdateError, match="of another model"):
        server.step({"w": np.ones(1)}, {"w": np.ones(1)}, {"m": {"w": np.ones(4)}, "v": {"w": np.ones(4)}})


@pytest.mark.parametrize(
    "make", [lambda: FedAvgM(lr=0), lambda: FedAvgM(momentum=1), lambda: FedAdam(tau=0), lambda: FedAdam(beta2=-1)]
)
def test_optimisers_that_cannot_be_meant(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


@pytest.mark.parametrize("seed", ["x", None, True, float("nan")])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(UsageError, match="seed is a whole number"):
        participants(TEN, "r", 0, 0.3, seed)
