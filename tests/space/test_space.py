"""The space: names, points, the unit cube, comparing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dibs._canon import dumps
from dibs.errors import SpaceError
from dibs.space import Choice, Constant, Float, Int, Space

from .spaces import SETTINGS, json_like, points, spaces, typed_items

SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True),
    layers=Int(1, 8),
    opt=Choice("adam", "sgd"),
    momentum=Float(0, 0.99, when={"opt": ["sgd"]}),
    epochs=30,
)


def test_names_axes_and_size() -> None:
    assert SPACE.names == ("epochs", "layers", "lr", "momentum", "opt")
    assert SPACE.axes == ("layers", "lr", "momentum", "opt")
    assert (len(SPACE), SPACE.dims, list(SPACE)) == (5, 4, list(SPACE.names))
    assert "lr" in SPACE
    assert SPACE["epochs"] == Constant(30)
    assert list(SPACE.params) == list(SPACE.names)


def test_the_order_of_declaration_means_nothing() -> None:
    turned = Space(dict(reversed(list(SPACE.params.items()))))
    assert turned == SPACE
    assert hash(turned) == hash(SPACE)
    assert repr(turned) == repr(SPACE)
    assert typed_items(turned.point([0.1, 0.2, 0.3, 0.4])) == typed_items(SPACE.point([0.1, 0.2, 0.3, 0.4]))
    assert dumps(turned.to_json()) == dumps(SPACE.to_json())


def test_an_inactive_parameter_is_absent() -> None:
    assert SPACE.point([0, 0.25, 0.5, 0.0]) == {"epochs": 30, "layers": 1, "lr": 1e-4, "opt": "adam"}
    assert SPACE.point({"layers": 0, "lr": 0.25, "opt": 0}) == SPACE.point([0, 0.25, 0.5, 0.0])
    assert SPACE.point([0, 0.25, 0.5, 0.9])["momentum"] == 0.495
    assert SPACE.active({"opt": "adam"}) == {"epochs", "layers", "lr", "opt"}
    assert SPACE.active({"opt": "sgd"}) == set(SPACE.names)
    assert SPACE.active({}) == {"epochs", "layers", "lr", "opt"}


def test_a_chain_of_conditions() -> None:
    space = Space(
        c=Float(0, 1, when={"b": [2, 3], "k": "on"}), b=Int(1, 3, when={"a": True}), a=Choice(True, 1), k=Constant("on")
    )
    assert space.order.index("a") < space.order.index("b") < space.order.index("c")
    assert space.active({"a": True, "b": 2}) == {"a", "b", "c", "k"}
    assert space.active({"a": True, "b": 1}) == {"a", "b", "k"}
    assert space.active({"a": 1, "b": 2}) == {"a", "k"}  # 1 is not True, and a dead parent's child is dead


@SETTINGS
@given(st.data())
def test_points_come_back_from_the_unit_cube_and_from_check(data: st.DataObject) -> None:
    space = data.draw(spaces())
    point = data.draw(points(space))
    assert typed_items(space.point(space.unit(point))) == typed_items(point)
    assert typed_items(space.check(point)) == typed_items(point)
    assert space.active(point) == point.keys()
    assert list(point) == sorted(point)
    assert all(0 <= u < 1 for u in space.unit(point).values())


@SETTINGS
@given(spaces())
def test_a_space_comes_back(space: Space) -> None:
    assert Space.from_json(space.to_json()) == space
    assert dumps(Space.from_json(space.to_json()).to_json()) == dumps(space.to_json())
    assert eval(repr(space)) == space
    assert pickle.loads(pickle.dumps(space)) == space
    assert hash(pickle.loads(pickle.dumps(space))) == hash(space)
    assert space.differences(space) == []


def test_a_name_that_python_would_read_as_another_is_printed_as_text() -> None:
    micro, mu = Space({"\u00b5": 1}), Space({"\u03bc": 1})
    assert micro != mu
    assert repr(mu) == "Space(\u03bc=Constant(1))"
    assert eval(repr(micro)) == micro
    assert repr(Space({"class": 1})) == "Space({'class': Constant(1)})"


def test_frozen() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        SPACE.names = ()
    with pytest.raises(AttributeError, match="frozen"):
        del SPACE.names
    with pytest.raises(TypeError):
        SPACE.params["x"] = Int(1, 2)  # type: ignore[index]


@pytest.mark.parametrize(
    ("make", "says", "parameter"),
    [
        (lambda: Space(), "empty", None),
        (lambda: Space({}), "empty", None),
        (lambda: Space([("a", 1)]), "pass a dict", None),
        (lambda: Space({"": 1}), "at least one character", None),
        (lambda: Space({1: 1}), "is a str", None),
        (lambda: Space({"a\n": 1}), "control characters", "a\n"),
        (lambda: Space({"a": 1}, a=2), "declared twice", "a"),
        (lambda: Space.from_pairs([("a", 1), ("a", 1)]), "declared twice", "a"),
        (lambda: Space(a=["x", "y"]), "write Choice(*values)", "a"),
        (lambda: Space(a=Float), "cannot be a value", "a"),
        (lambda: Space({str(i): 1 for i in range(10_000)}), "at most 1000", None),
        (lambda: Space(a=Int(1, 2, when={"b": 1})), "'b', which is no parameter", "a"),
        (lambda: Space(a=Int(1, 2, when={"b": 0.5}), b=Float(0, 1)), "only a Choice, an Int or a Constant", "a"),
        (lambda: Space(a=Int(1, 2, when={"b": 3}), b=Int(1, 2)), "waits for 'b' to be 3 (int)", "a"),
        (lambda: Space(a=Int(1, 2, when={"b": True}), b=Int(1, 2)), "True (bool)", "a"),
        (lambda: Space(a=Int(1, 2, when={"b": 1.0}), b=Choice(1, 2)), "1.0 (float)", "a"),
        (lambda: Space(a=Int(1, 2, when={"b": 2}), b=Int(1, 3, step=2)), "cannot be", "a"),
        (lambda: Space(a=Int(1, 2, when={"b": ("x", "y")}), b=Choice("x", "y")), "write a list", "a"),
        (lambda: Space(a=Int(1, 2, when={"a": 1})), "circle", "a"),
        (lambda: Space(a=Int(1, 2, when={"b": 1}), b=Int(1, 2, when={"a": 1}), c=1), "circle", "a"),
    ],
)
def test_a_wrong_space_is_refused_by_name(make: Any, says: str, parameter: str | None) -> None:
    with pytest.raises(SpaceError) as caught:
        make()
    assert says in str(caught.value)
    assert caught.value.parameter == parameter


def test_a_long_chain_of_conditions_is_no_recursion() -> None:
    chain: dict[str, Any] = {"p0000": Choice(0, 1)}
    for i in range(1, 1000):
        chain[f"p{i:04}"] = Choice(0, 1, when={f"p{i - 1:04}": 1})
    space = Space(chain)
    assert len(space.point([0.9] * 1000)) == 1000
    assert space.size() == 1001


GOOD = {"lr": 0.01, "layers": 2, "opt": "sgd", "momentum": 0.5}


def test_check_makes_a_callers_point_plain() -> None:
    given_ = {"opt": np.str_("sgd"), "lr": np.float64(0.01), "layers": np.int64(2), "momentum": np.int8(0)}
    assert SPACE.check(given_) == {"epochs": 30, **GOOD, "momentum": 0.0}
    assert [type(v) for v in SPACE.check(given_).values()] == [int, int, float, float, str]


@pytest.mark.parametrize(
    ("change", "says", "parameter"),
    [
        ({"lr": 1}, "1.0 is not in [1e-05, 0.1]", "lr"),
        ({"lr": None}, "must be a number", "lr"),
        ({"layers": 2.0}, "write 2", "layers"),
        ({"opt": "rmsprop"}, "'rmsprop' (str) is not one of ['adam', 'sgd']", "opt"),
        ({"opt": "adam"}, "only active when {'opt': ['sgd']}; leave it out", "momentum"),
        ({"opt": ...}, "missing; it is Choice('adam', 'sgd')", "opt"),
        ({"momentum": ...}, "missing", "momentum"),
        ({"epochs": 31}, "not the constant 30", "epochs"),
        ({"lrr": 1}, "'lrr' is no parameter", None),
        ({3: 1}, "3 is no parameter", None),
    ],
)
def test_a_point_outside_the_space_is_refused_by_name(change: Any, says: str, parameter: str | None) -> None:
    point = {name: value for name, value in {**GOOD, **change}.items() if value is not ...}
    with pytest.raises(SpaceError) as caught:
        SPACE.check(point)
    assert says in str(caught.value)
    assert caught.value.parameter == parameter


@SETTINGS
@given(spaces(), json_like)
def test_check_never_fails_otherwise(space: Space, anything: Any) -> None:
    for point in (anything, dict.fromkeys(space.names, anything)):
        with suppress(SpaceError):
            space.check(point)


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ([0.1], "1 coordinates for the 4 axes"),
        ({"lr": 0.1, "opt": 0.1}, "layers: no coordinate"),
        ({"epochs": 0.1}, "'epochs' is not an axis"),
        ([0.1, 0.2, 0.3, 1.5], "1.5 is not in [0, 1]"),
        ([0.1, 0.2, 0.3, float("nan")], "finite"),
        ([0.1, 0.2, 0.3, "x"], "must be a number"),
    ],
)
def test_coordinates_that_are_none(unit: Any, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.point(unit)
    assert says in str(caught.value)


def test_numpy_coordinates_give_plain_values() -> None:
    for dtype in (np.float64, np.float32):
        point = SPACE.point(np.array([0.3, 0.4, 0.5, 0.6], dtype=dtype))
        assert [type(v) for v in point.values()] == [int, int, float, float, str]


@SETTINGS
@given(spaces(), spaces())
def test_equal_means_no_differences(one: Space, two: Space) -> None:
    assume(one.names == two.names or len(one) < 3)
    assert (one == two) == (one.differences(two) == [])
    assert one != "something else"


def test_differences_show_both_sides() -> None:
    other = Space({**SPACE.params, "layers": Int(1, 9), "new": 1})
    assert SPACE.differences(other) == [("layers", {"int": [1, 8]}, {"int": [1, 9]}), ("new", None, {"constant": 1})]
    assert Space(a=1).differences(Space(a=True)) == [("a", {"constant": 1}, {"constant": True})]


def test_a_prior_is_a_difference() -> None:
    one, two = Space(a=Float(0, 1, prior=0.5)), Space(a=Float(0, 1))
    assert one.differences(two) == [("a", {"float": [0.0, 1.0], "prior": 0.5}, {"float": [0.0, 1.0]})]


def test_look_ups_agree_with_the_frozen_space() -> None:
    SPACE.lookup_float("lr", 1e-5, 1e-1, log=True)
    SPACE.lookup_float("momentum", 0, 0.99)
    SPACE.lookup_int("layers", 1, 8)
    SPACE.lookup_categorical("opt", ["sgd", "adam"])
    Space(a=Float(0, 1, prior=0.5)).lookup_float("a", 0, 1)  # what is believed is nobody's who looks up
    Space(a=Choice("x", "y", prior="y")).lookup_categorical("a", ["y", "x"])


@pytest.mark.parametrize(
    ("look", "says"),
    [
        (
            lambda: SPACE.lookup_float("lr", 1e-5, 1e-1),
            "Float(1e-05, 0.1), but the study has Float(1e-05, 0.1, log=True)",
        ),
        (lambda: SPACE.lookup_int("layers", 1, 9), "asked for as Int(1, 9), but the study has Int(1, 8)"),
        (lambda: SPACE.lookup_int("lr", 1, 9), "but the study has Float"),
        (lambda: SPACE.lookup_categorical("opt", ["adam"]), "asked for as Choice('adam'), but"),
        (lambda: SPACE.lookup_categorical("lr", ["adam"]), "but the study has Float"),
        (lambda: SPACE.lookup_float("wd", 0, 1), "'wd' is no parameter of the study, which has"),
        (lambda: SPACE.lookup_float("lr", 1, 0), "lr: Float(1.0, 0.0): low is above high"),
        (lambda: Space(a=Choice(1)).lookup_categorical("a", [True]), "Choice(True), but the study has Choice(1)"),
    ],
)
def test_a_look_up_that_differs_shows_both(look: Any, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        look()
    assert says in str(caught.value)
    assert caught.value.parameter is not None


def test_the_package_is_light() -> None:
    code = "import sys, dibs.space; print([m for m in ('numpy', 'scipy', 'msgspec', 'click', 'random') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
