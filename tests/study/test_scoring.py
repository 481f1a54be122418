"""What an objective may end with, and what it may not: scores and constraints as they come from outside."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs import UsageError
from dibs.record import TrialRecord
from dibs.study._scoring import (
    MOST_CONSTRAINTS,
    constraints_of,
    excess_of,
    met,
    score_in,
    scored,
    scores_in,
    scores_of,
)

GOAL: Any = ("min", "max")


class Tensor:
    """As much of a tensor as counts here: ``ndim`` dimensions, and in none a number."""

    def __init__(self, value: Any) -> None:
        self.value, self.ndim = value, int(isinstance(value, list))

    def __repr__(self) -> str:
        return f"Tensor({self.value})"

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, at: int) -> Tensor:
        return Tensor(self.value[at])

    def __float__(self) -> float:
        return float(self.value)


@pytest.mark.parametrize(
    "value",
    [
        [0.5, 20], (0.5, 20.0), np.array([0.5, 20.0]), np.array([0.5, 20.0], np.float32), [np.float32(0.5), np.int64(20)],
        [np.array(0.5), 20], [Tensor(0.5), Tensor(20)], Tensor([0.5, 20]),
    ],
    ids=str,
)  # fmt: skip
def test_scores_come_as_lists_arrays_and_tensors(value: Any) -> None:
    found = scores_of(value, GOAL)
    assert found == (0.5, 20.0)
    assert [type(each) for each in found] == [float, float]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0.5, "2 goals.*2 scores.*as a list: not float"),
        (None, "2 scores.*as a list: not NoneType"),
        ("ab", "not str"),
        (b"ab", "not bytes"),
        ({"a": 1, "b": 2}, "not dict"),
        ({1, 2}, "not set"),
        (iter([1, 2]), "not list_iterator"),
        (np.float64(0.5), "not float64"),
        (np.array(0.5), "not ndarray"),
        (np.zeros((2, 1)), "not ndarray"),
        (Tensor(0.5), "not Tensor"),
        ([], "not with 0"),
        ([0.5], "not with 1"),
        ([0.5, 1, 2], "not with 3"),
        ([0.5] * 10**6, "not with 1000000"),
        (np.zeros(10**6), "not with 1000000"),
        ([0.5, math.nan], "score 2 of 2, the one to maximise, must be finite, not nan"),
        ([math.inf, 1], "score 1 of 2, the one to minimise, must be finite, not inf"),
        ([True, 1], "score 1 of 2.*not bool"),
        (["0.5", 1], "must be a number, not str"),
        ([None, 1], "must be a number, not NoneType"),
        ([[1, 2], 1], "must be a number, not list"),
        ([np.zeros(1), 1], "must be a number, not ndarray"),
        ([10**400, 1], "must be a number"),
        ([1j, 1], "must be a number, not complex"),
    ],
)
def test_what_is_not_one_score_for_each_goal_is_told(value: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says) as told:
        scores_of(value, GOAL)
    assert len(str(told.value)) < 300


def test_constraints_are_numbers_by_name() -> None:
    assert constraints_of({"memory_gb": np.float32(-0.5), "s": 3}) == {"memory_gb": -0.5, "s": 3.0}
    assert constraints_of(None) is None
    assert constraints_of({}) is None


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([0.5], "a mapping of names to numbers, not list"),
        (0.5, "not float"),
        ("memory", "not str"),
        ({1: 0.5}, "name of a constraint must be a text, not 1"),
        ({None: 0.5}, "not None"),
        ({"": 0.5}, "not ''"),
        ({"\ud800": 0.5}, r"not '\\ud800'"),
        ({"a": None}, "constraint 'a' must be a number, not NoneType"),
        ({"a": "0.5"}, "must be a number"),
        ({"a": True}, "must be a number, not bool"),
        ({"a": math.nan}, "constraint 'a' must be finite, not nan"),
        ({"a": -math.inf}, "must be finite"),
        ({"a": [1, 2]}, "must be a number"),
        ({str(k): 0.0 for k in range(MOST_CONSTRAINTS + 1)}, "at most 64 constraints, not 65"),
    ],
)
def test_what_is_no_constraint_is_told(value: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        constraints_of(value)


@pytest.mark.parametrize(
    ("constraints", "excess"),
    [
        (None, None), ({}, None), ({"a": -1.0, "b": -0.25}, -0.25), ({"a": 0.0}, 0.0), ({"a": 0.5, "b": -9.0}, 0.5),
        ({"a": 0.5, "b": 0.25}, 0.75), ({"a": 1e308, "b": 1e308}, sys.float_info.max),
    ],
)  # fmt: skip
def test_excess(constraints: Any, excess: float | None) -> None:
    assert excess_of(constraints) == excess
    assert met(constraints) is (excess is None or excess <= 0)


@given(st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.randoms())
def test_excess_is_finite_and_the_order_of_names_is_nothing(constraints: dict[str, float], random: Any) -> None:
    items = list(constraints.items())
    random.shuffle(items)
    excess = excess_of(constraints)
    assert excess is not None
    assert math.isfinite(excess)
    assert excess == excess_of(dict(items))
    assert met(constraints) is (excess <= 0)


def a_record(**fields: Any) -> TrialRecord:
    return TrialRecord(1, "trial", "s", 0, 0, "done", "0", {}, **fields)


@pytest.mark.parametrize(
    ("fields", "one", "several"),
    [
        ({"goal": "min", "score": 0.5}, 0.5, (0.5,)),
        ({"goal": "min"}, None, ()),
        ({"goal": None, "score": 0.5}, 0.5, (0.5,)),
        ({"goal": "min", "score": 0.5, "scores": (1.0, 2.0)}, 0.5, (0.5,)),
        ({"goal": GOAL, "scores": (1.0, 2.0)}, None, (1.0, 2.0)),
        ({"goal": GOAL, "scores": (1.0,)}, None, ()),
        ({"goal": GOAL, "scores": (1.0, 2.0, 3.0)}, None, ()),
        ({"goal": GOAL, "scores": ()}, None, ()),
        ({"goal": GOAL, "score": 0.5}, None, ()),
    ],
)
def test_a_record_written_by_hand_has_scores_or_it_has_none(fields: Any, one: Any, several: Any) -> None:
    record = a_record(**fields)
    assert (score_in(record), scores_in(record)) == (one, several)
    assert scored(record, 1) == one
    assert scored(record, 2) == (several if len(several) == 2 else None)
