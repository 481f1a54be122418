"""Parameters come back as they went in, whatever they are; and when two sets of them are the same."""

from __future__ import annotations

import enum
import json
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.sink._score import better, finite
from dibs.sink._values import pack, same, unpack

LEAVES = (
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(st.characters())
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


class Hostile(Mapping[str, Any]):
    """A mapping that says it has one item, and raises when asked for it."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("no")

    def __iter__(self) -> Any:
        raise RuntimeError("no")

    def __len__(self) -> int:
        return 1


class Unsayable:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __float__(self) -> float:
        raise RuntimeError("no")


class Nameless(type):
    @property
    def __name__(cls) -> str:
        raise RuntimeError("no")


class Unnameable(Unsayable, metaclass=Nameless):
    pass


class Three(enum.IntEnum):
    THREE = 3


def through_a_file(value: Any) -> Any:
    return unpack(json.loads(json.dumps(pack(value)).encode("ascii")))


def types(value: Any) -> Any:
    """The value with every leaf's type, which equality does not see."""
    if isinstance(value, dict):
        return {key: types(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [type(value), *map(types, value)]
    return type(value), value


@given(value=VALUES)
def test_plain_values_come_back_equal_and_of_their_type(value: Any) -> None:
    back = through_a_file(value)
    assert types(back) == types(value)
    assert same(pack(back), pack(value))


@pytest.mark.parametrize(
    ("value", "back"),
    [
        (np.float64(0.25), 0.25),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("adam"), "adam"),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        (Three.THREE, 3),
        ({1, 2}, "{1, 2}"),
        (b"x", "b'x'"),
        pytest.param(10**5000, "<an int of 16610 bits>", id="a long int"),
        (Hostile(), "<Hostile>"),
        (Unsayable(), "<Unsayable>"),
        pytest.param(Unnameable(), "<Unnameable>", id="no name"),
    ],
)
def test_other_values_come_back_as_what_is_nearest(value: Any, back: Any) -> None:
    found = through_a_file({"p": value})
    assert found == {"p": back}
    assert type(found["p"]) is type(back)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_what_json_has_no_word_for(value: float) -> None:
    assert through_a_file([value]) == [value]
    assert math.isnan(through_a_file(math.nan))


def test_one_that_holds_itself_ends() -> None:
    endless: list[Any] = [1]
    endless += [endless] * 3
    assert len(json.dumps(pack(endless))) < 3_000_000
    assert pack(list(range(20_000)))["text"].startswith("[0, 1, 2")


def test_one_that_holds_itself_very_many_times_over_ends() -> None:
    shared: Any = [1]
    for _ in range(200):
        shared = [shared, {"again": shared}]
    assert len(json.dumps(pack(shared))) < 3_000_000


def test_a_long_int_where_python_writes_none() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        for digits in range(600, 660):
            json.dumps(pack(10**digits))
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"lr": 0.1 + 0.2}, {"lr": 0.3}),
        ({"lr": 0.30000000000000004}, {"lr": "0.3"}),
        ({"lr": "0.30000000000000004"}, {"lr": "0.3"}),
        ({"lr": np.float64(0.3)}, {"lr": 0.3}),
        ({"n": 3}, {"n": 3.0}),
        ({"n": "1e3"}, {"n": 1000}),
        ({"n": -0.0}, {"n": 0}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1.0}),
        ({"on": True}, {"on": "True"}),
        ({"on": None}, {"on": "None"}),
        ({"shape": (3, 4)}, {"shape": [3.0, 4.0]}),
        ([0.1, 2.0], np.array([0.1, 2.0])),
        ({"x": math.nan}, {"x": "nan"}),
    ],
)
def test_what_optimisers_return_of_the_same_parameters(one: Any, other: Any) -> None:
    assert same(pack(one), pack(other))
    assert same(pack(other), pack(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"on": True}, {"on": 1.0}),
        ({"on": True}, {"on": 1}),
        ({"on": True}, {"on": "1"}),
        ({"on": False}, {"on": 0}),
        ({"on": False}, {"on": None}),
        ({"lr": 0.3}, {"lr": 0.3001}),
        ({"lr": 0.3}, {"lr": 0.3, "n": 1}),
        ({"opt": "adam"}, {"opt": "Adam"}),
        ({"opt": "1_0"}, {"opt": 10}),
        ({"n": 2**53}, {"n": 2**53 + 1}),
        ([1, 2], [2, 1]),
        ({}, None),
        ({}, []),
    ],
)
def test_what_is_not_the_same(one: Any, other: Any) -> None:
    assert not same(pack(one), pack(other))


@pytest.mark.parametrize(
    "value", [1, 2.5, np.float32(0.5), np.int8(3), np.array(1.0), Three.THREE], ids=lambda value: type(value).__name__
)
def test_a_score_is_a_number(value: Any) -> None:
    assert finite(value) == float(value)


@pytest.mark.parametrize(
    "value",
    [True, np.True_, "1", np.str_("1"), b"1", None, math.nan, math.inf, np.float64("nan"), 10**400, 1j, [1.0],
     np.array([1.0]), np.array(True), np.array("1"), np.datetime64("2026-01-01", "ns"), np.timedelta64(5, "ns"), np.array(5, "m8[ns]"), Unsayable(), object()],
)  # fmt: skip
def test_what_is_no_score(value: Any) -> None:
    assert finite(value) is None


def test_better_is_strict() -> None:
    assert better(2.0, 1.0, True)
    assert better(1.0, 2.0, False)
    assert better(1.0, None, True)
    assert not better(1.0, 1.0, True)
    assert not better(1.0, 1.0, False)
