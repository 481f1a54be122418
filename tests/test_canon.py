"""Canonical JSON, typed values, digests and chance."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs._canon import chance, chance_by_name, digest, dumps, from_json, plain, to_json
from dibs.space._values import typed

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=12)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = (value,)
    return value


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        ({"b": 1, "a": None}, b'{"a":null,"b":1}'),
        ({"é": "\U0001f600"}, '{"é":"\U0001f600"}'.encode()),
        ([1, 1.0, True, "1"], b'[1,1.0,true,"1"]'),
        ([1e-05, 0.1, 1e22, -0.0], b"[1e-05,0.1,1e+22,-0.0]"),
        ({"nested": {"z": [], "a": {}}}, b'{"nested":{"a":{},"z":[]}}'),
        ("a\n\0", b'"a\\n\\u0000"'),
    ],
)
def test_one_text_per_object(obj: Any, text: bytes) -> None:
    assert dumps(obj) == text


@pytest.mark.parametrize("bare", [math.nan, math.inf, -math.inf, [math.nan], {"a": {"b": math.inf}}])
def test_no_bare_nan_or_infinity_is_ever_written(bare: Any) -> None:
    with pytest.raises(ValueError):
        dumps(bare)


def test_a_lone_surrogate_does_not_stop_a_traceback_from_being_written() -> None:
    assert json.loads(dumps({"traceback": "file \udcff.py"})) == {"traceback": "file ?.py"}


@given(st.dictionaries(st.text(max_size=3), LEAVES.filter(lambda leaf: leaf is not None), max_size=5))
def test_the_digest_does_not_depend_on_the_order(items: dict[str, Any]) -> None:
    assert digest(items) == digest(dict(reversed(items.items())))
    assert len(digest(items)) == 64


def test_a_known_digest() -> None:
    # SHA-256 of {"lr":0.1,"opt":"adam"}: what stands under note/wish/ in every store of format 1
    assert digest({"opt": "adam", "lr": 0.1}) == "58414775cfc96a687189ce59ec4a687af29350cede73f133658b9534003da46d"


@given(VALUES)
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    assert typed(from_json(json.loads(dumps(to_json(value))))) == typed(value)


@given(VALUES, VALUES)
def test_two_values_have_one_text_only_if_they_are_one_value(one: Any, other: Any) -> None:
    assert (dumps(to_json(one)) == dumps(to_json(other))) == (repr(one) == repr(other))


def test_five_choices_are_five_texts() -> None:
    assert len({dumps(to_json(value)) for value in (None, True, 1, 1.0, "1", (1,), (1.0,), ("1",), ())}) == 9


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (np.int64(3), 3),
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("adam"), "adam"),
        (np.array(7), 7),
    ],
)
def test_numpy_scalars_become_python_values(scalar: Any, value: Any) -> None:
    assert typed(from_json(to_json(scalar))) == typed(value)
    assert typed(plain(scalar)) == typed(value)
    assert to_json((scalar,)) == {"tuple": [value]}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (math.nan, "finite"),
        (np.float32("inf"), "finite"),
        ([1], "tuple"),
        ({"a": 1}, "tuple"),
        (b"x", "bytes"),
        (1j, "complex"),
        (object, "type"),
        ("\ud800", "Unicode"),
        (("a", ["b"]), "tuple"),
        (np.array([1, 2]), "ndarray"),
        (np.datetime64("2026-01-01"), "date"),
        (nested(17), "16 deep"),
    ],
)
def test_what_is_no_value_is_refused_with_the_reason(value: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        to_json(value)


@pytest.mark.parametrize("obj", [[1], {}, {"tuple": 1}, {"tuple": [], "more": 1}, {"tuple": [[1]]}, {"list": []}])
def test_json_that_is_no_value_is_refused(obj: Any) -> None:
    with pytest.raises(TypeError, match="not a parameter's value"):
        from_json(obj)


def test_tuples_nest_sixteen_deep_and_no_deeper() -> None:
    deep = nested(16)
    assert from_json(to_json(deep)) == deep
    obj: Any = 1
    for _ in range(5000):
        obj = {"tuple": [obj]}
    with pytest.raises(TypeError, match="16 deep"):
        from_json(obj)


def test_chance_is_the_same_on_every_machine() -> None:
    # top 53 bits of the 8-byte words of SHAKE-256 over ["seed-1",0,0,"trial"]
    assert chance(2, "seed-1", 0, 0, "trial") == [0.3623709214128973, 0.2730018231356457]
    assert chance(1, "seed-1", 0, 0, "trial") == chance(2, "seed-1", 0, 0, "trial")[:1]


@given(st.integers(0, 2**63 - 1), st.integers(0, 10**6), st.text(max_size=5))
def test_chance_is_in_the_unit_interval_and_depends_on_the_whole_key(seed: int, n: int, purpose: str) -> None:
    words = chance(4, 1, seed, n, purpose)
    assert all(0.0 <= word < 1.0 for word in words)
    assert words != chance(4, 1, seed, n + 1, purpose)
    assert words != chance(4, 1, seed, n, purpose + "x")
    assert chance_by_name(1, seed, n)(purpose) == words[0] == chance(1, 1, seed, n, purpose)[0]
