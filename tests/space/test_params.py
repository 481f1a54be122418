"""One parameter: what is refused, what its values are, and the way to the unit interval and back."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import SpaceError
from dibs.space import Choice, Constant, Float, Int, Param, Space

from .spaces import FIVE, SETTINGS, choices, floats, ints, params, units, values

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Float(2, 1), "low is above high; swap"),
        (lambda: Float(0, 1, log=True), "above 0"),
        (lambda: Float(-1, 1, log=True), "above 0"),
        (lambda: Float(NAN, 1), "low must be a finite number"),
        (lambda: Float(0, INF), "high must be a finite number"),
        (lambda: Float(0, 10**400), "high must be a finite number"),
        (lambda: Float(-1e308, 1e308), "reaches beyond 1e+300"),
        (lambda: Float(1e-300, 1e300, log=True), "spans more"),
        (lambda: Float(0, 1, step=0), "a step is above 0"),
        (lambda: Float(0, 1, step=-0.1), "a step is above 0"),
        (lambda: Float(0, 1, step=NAN), "step must be a finite number"),
        (lambda: Float(0, 1, step=2), "wider than the range"),
        (lambda: Float(0, 1, step=1e-300), "leave the step out"),
        (lambda: Float(1, 2, step=0.1, log=True), "exclude each other"),
        (lambda: Float(True, 2), "low must be a number, not True"),
        (lambda: Float("0", 2), "low must be a number, not '0'"),
        (lambda: Float(None, 2), "low must be a number"),
        (lambda: Float(np.zeros(2), 2), "low must be a number"),
        (lambda: Float(0, 1, log=1), "must be True or False"),
        (lambda: Int(2, 1), "low is above high; swap"),
        (lambda: Int(0, 8, log=True), "starts at 1"),
        (lambda: Int(0.0, 8), "must be an int, not 0.0 (float): write 0"),
        (lambda: Int(0, 8.5), "must be an int, not 8.5"),
        (lambda: Int(False, 8), "must be an int, not False"),
        (lambda: Int("1", 8), "must be an int, not '1'"),
        (lambda: Int(0, 2**63), "64 bits"),
        (lambda: Int(0, 8, step=0), "a step is above 0"),
        (lambda: Int(0, 8, step=9), "wider than the range"),
        (lambda: Int(1, 8, step=2, log=True), "exclude each other"),
        (lambda: Int(1, 2**46, log=True), "Float(log=True)"),
        (lambda: Choice(), "no values"),
        (lambda: Choice(["a", "b"]), "unpack it"),
        (lambda: Choice("a", ["b"]), "write a tuple"),
        (lambda: Choice("a", {"b"}), "cannot be a value"),
        (lambda: Choice("a", object()), "cannot be a value"),
        (lambda: Choice("a", NAN), "must be finite"),
        (lambda: Choice("a", (1, [2])), "write a tuple"),
        (lambda: Choice(1, 2, 1), "1 twice"),
        (lambda: Choice(1, np.int64(1)), "1 twice"),
        (lambda: Choice(2**64), "64 bits"),
        (lambda: Choice("\ud800"), "Unicode"),
        (lambda: Choice("a", ordered="yes"), "must be True or False"),
        (lambda: Constant([1]), "write a tuple"),
        (lambda: Float(0, 1, when=["opt"]), "write when="),
        (lambda: Float(0, 1, when={1: ["a"]}), "named by a str"),
        (lambda: Float(0, 1, when={"opt": []}), "can never hold"),
        (lambda: Float(0, 1, when={"opt": {"a"}}), "cannot be a value"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(make: Any, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        make()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_deep_tuple_is_refused_not_a_crash() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = (deep,)
    with pytest.raises(SpaceError, match="nested"):
        Choice(deep)


def test_numpy_scalars_become_pythons() -> None:
    made = [
        Float(np.float64(0), np.int32(2)),
        Int(np.int64(1), np.uint8(8)),
        Choice(np.int64(1), np.bool_(True), np.str_("a"), (np.float64(1),)),
        Constant(np.float64(3)),
    ]
    assert made == [Float(0.0, 2.0), Int(1, 8), Choice(1, True, "a", (1.0,)), Constant(3.0)]
    assert "np." not in repr(made)


def test_five_choices_are_five() -> None:
    choice = Choice(*FIVE)
    assert choice.cells == 5
    assert [repr(choice.value(k / 5 + 0.1)) for k in range(5)] == [repr(v) for v in FIVE]
    assert [choice.index(v) for v in FIVE] == list(range(5))
    assert Choice(1) != Choice(True) != Choice(1.0)
    assert Choice((1,)) != Choice((True,))
    assert Constant(1) != Constant(1.0)
    assert len({Choice(v) for v in FIVE}) == 5


@SETTINGS
@given(params, units)
def test_a_value_comes_back_with_its_type(param: Param, u: float) -> None:
    value = param.value(u)
    again = param.value(param.unit(value))
    assert (repr(again), type(again)) == (repr(value), type(value))
    assert 0 <= param.unit(value) < 1
    assert repr(param.check(value)) == repr(value)


@SETTINGS
@given(st.one_of(ints(), choices()), st.data())
def test_every_cell_comes_back(param: Param, data: st.DataObject) -> None:
    assert param.cells is not None
    k = data.draw(st.integers(0, min(param.cells, 2**50) - 1))
    value = param.cell(k)
    assert param.index(value) == k
    if param.cells <= 2**50:
        assert repr(param.value(param.unit(value))) == repr(value)


@SETTINGS
@given(st.one_of(floats(), ints()), units)
def test_numbers_stay_in_their_range(param: Any, u: float) -> None:
    assert param.low <= param.value(u) <= param.high
    assert param.value(0.0) == param.low
    top = param.value(1.0)
    assert top == param.value(1 - 2**-53)
    assert top == (param.high if param.cells is None or param.log else param.cell(param.cells - 1))


@SETTINGS
@given(floats(), units, st.floats(-1e-13, 1e-13))
def test_a_last_bit_of_noise_does_not_show(param: Any, u: float, noise: float) -> None:
    """At most one of two neighbours: what comes out is on a grid, however noisily it was asked for."""
    near = min(max(u + noise, 0.0), 1.0)
    value = param.value(u)
    at_an_end = value in (
        param.low,
        param.high,
    )  # an end need not lie on the grid of decimals: it is a value of its own
    assert param.value(param.unit(value) + noise) == value or at_an_end or _fine(param)
    assert abs(param.value(near) - value) <= _pitch(param, value) or _fine(param)


def _pitch(param: Any, value: float) -> float:
    if param.step is not None:
        return float(param.step) * 1.001
    width = math.log(param.high / param.low) * value if param.log and param.low < param.high else param.high - param.low
    return float(2.01 * 2**-32 * width)


def _fine(param: Any) -> bool:
    """A range so narrow or so far from 0 that floats themselves are the grid."""
    if param.cells is not None:
        return bool(param.cells > 1e9)
    if param.log:
        return math.log(param.high / param.low) < 1e-2 or param.low < 1e-300
    return bool(
        (param.high - param.low) < 1e-4 * max(abs(param.low), abs(param.high)) or param.high - param.low < 1e-290
    )


@pytest.mark.parametrize(
    ("param", "u", "value"),
    [
        (Float(1e-5, 1e-1, log=True), 0.25, 1e-4),
        (Float(1e-4, 1e-1, log=True), 1 / 3, 1e-3),
        (Float(0, 0.99), 0.5, 0.495),
        (Float(-3, 7), 1 / 3, 0.333333333),
        (Float(0, 1, step=0.1), 0.3, 0.3),
        (Float(5, 5), 0.9, 5.0),
        (Float(5, 5, log=True), 0.9, 5.0),
        (Int(1, 8), 0.999, 8),
        (Int(0, 2**63 - 1), 0.5, 2**62),
        (Int(10, 31, step=10), 0.99, 30),
        (Choice("a", "b"), 0.5, "b"),
        (Constant("x"), 0.7, "x"),
    ],
)
def test_values_written_out(param: Param, u: float, value: Any) -> None:
    assert repr(param.value(u)) == repr(value)


@pytest.mark.parametrize(
    "param",
    [
        Float(1e15, 1e15 + 1),  # eight floats wide
        Float(1e9, 1e9 + 3),
        Float(1, 1 + 2**-50),
        Float(1, 1 + 2**-20, log=True),
        Float(-5e-324, 2),  # an end that is no decimal of the grid, next to one that is
        Float(1 / 3, 2 / 3),
        Float(0, 5e-324),
        Float(1e-320, 1e-310, log=True),
        Int(-(2**63), 2**63 - 1),  # more values than floats in [0, 1)
        Int(0, 3 * 2**60),
        Int(0, 2**53 + 7, step=3),
        Int(1, 2**45, log=True),
    ],
)
def test_narrow_wide_and_crooked_ranges_come_back(param: Any) -> None:
    for j in range(200):
        value = param.value(j / 199)
        assert param.value(param.unit(value)) == value


def test_an_end_swallows_what_lies_within_half_a_step() -> None:
    low, high = 2 / 3, 4 / 3  # the nearest decimals are inside
    for log in (False, True):
        assert [Float(low, high, log=log).value(u) for u in (1e-12, 1 - 1e-12)] == [low, high]


def test_zero_has_one_sign() -> None:
    assert repr(Float(-0.0, 1)) == "Float(0.0, 1.0)"
    assert repr(Float(-1, 1).value(0.5 - 1e-12)) == "0.0"
    assert repr(Float(-1, 1).check(-0.0)) == "0.0"


def test_a_condition_does_not_depend_on_how_it_is_written() -> None:
    one = Float(0, 1, when={"b": [2, 1, 2], "a": "x"})
    two = Float(0, 1, when={"a": ["x"], "b": [1, 2]})
    assert one == two
    assert hash(one) == hash(two)
    assert repr(one) == repr(two) == "Float(0.0, 1.0, when={'a': ['x'], 'b': [1, 2]})"
    assert Float(0, 1, when=one.when) == two
    assert Float(0, 1, when={}) == Float(0, 1) != two


def test_a_stepped_float_counts_in_decimals() -> None:
    grid = Float(0, 1, step=0.1)
    assert [grid.cell(k) for k in range(11)] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert Float(0, 1, step=0.3).cells == 4
    assert Float(0, 1, step=0.3).value(0.99) == 0.9
    assert Float(0.1, 0.7, step=0.2).cells == 4  # 0.1 + 3 * 0.2 is above 0.7 in floats
    assert repr(grid.check(0.1 + 0.2)) == "0.3"
    with pytest.raises(SpaceError, match=r"nearest is 0\.4"):
        grid.check(0.36)


def test_a_log_int_gives_each_number_its_share() -> None:
    param = Int(1, 4, log=True)
    width = math.log(4.5 / 0.5)
    for k in range(1, 5):
        low, high = math.log((k - 0.5) / 0.5) / width, math.log((k + 0.5) / 0.5) / width
        assert {param.value(low + (high - low) * f) for f in (0.001, 0.5, 0.999)} == {k}
        assert param.unit(k) == pytest.approx((low + high) / 2)


@pytest.mark.parametrize(
    ("param", "value", "says"),
    [
        (Float(0, 1), 1.5, "1.5 is not in [0.0, 1.0]"),
        (Float(0, 1), True, "must be a number, not True"),
        (Float(0, 1), "0.5", "must be a number, not '0.5'"),
        (Float(0, 1), NAN, "finite"),
        (Int(1, 8), 9, "9 is not in [1, 8]"),
        (Int(1, 8), 3.0, "write 3"),
        (Int(1, 8), True, "must be an int"),
        (Int(1, 9, step=2), 4, "steps of 2; one is 3"),
        (Choice(1, "a"), 1.0, "1.0 (float) is not one of [1, 'a']"),
        (Choice(1, "a"), True, "True (bool) is not one of"),
        (Choice((3, 3)), [3, 3], "write a tuple"),
        (Constant(30), 31, "not the constant 30"),
    ],
)
def test_a_value_that_is_not_the_parameters(param: Param, value: Any, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        param.check(value)
    assert says in str(caught.value)


@SETTINGS
@given(params)
def test_frozen_printed_pickled(param: Param) -> None:
    assert eval(repr(param)) == param
    assert pickle.loads(pickle.dumps(param)) == param
    assert copy.deepcopy(param) == param
    assert hash(copy.copy(param)) == hash(param)
    with pytest.raises(AttributeError, match="frozen"):
        param.cells = 3
    with pytest.raises(AttributeError, match="frozen"):
        del param.cells
    assert param != "something else"


@SETTINGS
@given(values)
def test_any_value_can_be_a_choice_and_comes_back_from_json(value: Any) -> None:
    space = Space(x=Choice(value))
    again = Space.from_json(space.to_json())
    assert repr(again.point([0.5])) == repr({"x": value})


@pytest.mark.parametrize(
    ("param", "at"),
    [
        (Float(1e-5, 1e-1, log=True, prior=1e-3), 0.5),
        (Float(0, 1), None),
        (Float(0, 1, step=0.25, prior=0.5), 0.5),
        (Int(1, 4, prior=1), 0.125),
        (Choice("a", "b", prior="b"), 0.75),
        (Choice("a", None, prior=None), 0.75),
        (Choice("a", None), None),
        (Constant(3), None),
    ],
)
def test_a_prior_lies_in_the_unit_interval_and_is_part_of_the_parameter(param: Any, at: float | None) -> None:
    assert param.prior_at == (at if at is None else pytest.approx(at))
    assert param.free().prior_at is None
    assert (param == param.free()) is (at is None)
    assert ("prior" in param.to_json()) is (at is not None)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Float(0, 1, prior=2), "prior=2: 2.0 is not in [0.0, 1.0]"),
        (lambda: Float(0, 1, prior=True), "prior=True: it must be a number"),
        (lambda: Float(0, 1, step=0.5, prior=0.3), "prior=0.3: 0.3 is not on the grid"),
        (lambda: Int(1, 8, prior=2.0), "prior=2.0: it must be an int"),
        (lambda: Choice("a", "b", prior=None), "prior=None: None (NoneType) is not one of"),
        (lambda: Choice(1, 2, prior=True), "prior=True: True (bool) is not one of"),
    ],
)
def test_a_prior_is_one_of_the_parameters_values(make: Any, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        make()
    assert says in str(caught.value)
