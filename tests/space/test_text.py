"""Spaces and points as JSON, TOML and words: written out, and thrown at with anything."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs._canon import dumps, to_json
from dibs.errors import SpaceError
from dibs.space import Choice, Constant, Float, Int, Space

from .spaces import SETTINGS, json_like, names, points, spaces, typed_items

SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True),
    layers=Int(1, 8),
    opt=Choice("adam", "sgd"),
    momentum=Float(0.0, 0.99, when={"opt": ["sgd"]}),
    kernel=Choice((3, 3), (5, 5)),
    size=Choice("s", "m", "l", ordered=True),
    width=Int(16, 64, step=16),
    drop=Float(0, 0.5, step=0.1),
    epochs=Constant(30, when={"opt": "adam"}),
)
JSON = {
    "lr": {"float": [1e-05, 0.1], "log": True},
    "layers": {"int": [1, 8]},
    "opt": {"choice": ["adam", "sgd"]},
    "momentum": {"float": [0.0, 0.99], "when": {"opt": ["sgd"]}},
    "kernel": {"choice": [{"tuple": [3, 3]}, {"tuple": [5, 5]}]},
    "size": {"choice": ["s", "m", "l"], "ordered": True},
    "width": {"int": [16, 64], "step": 16},
    "drop": {"float": [0.0, 0.5], "step": 0.1},
    "epochs": {"constant": 30, "when": {"opt": ["adam"]}},
}
TOML = """
lr = {float = [1e-5, 0.1], log = true}
layers = {int = [1, 8]}
opt = ["adam", "sgd"]
kernel = [[3, 3], [5, 5]]
width = {int = [16, 64], step = 16}
drop = {float = [0, 0.5], step = 0.1}
epochs = {constant = 30, when = {opt = "adam"}}

[momentum]
float = [0, 0.99]
when = {opt = ["sgd"]}

[size]
choice = ["s", "m", "l"]
ordered = true
"""


def test_json_is_the_formats() -> None:
    assert dumps(SPACE.to_json()) == dumps(JSON)
    assert Space.from_json(JSON) == SPACE
    assert Space.from_json(json.loads(dumps(JSON))) == SPACE


def test_toml() -> None:
    assert Space.from_toml(TOML) == SPACE
    assert Space.from_toml("epochs = 30\nrate = 1.0\nname = 'x'\nk = {constant = [3, 3]}") == Space(
        epochs=30, rate=1.0, name="x", k=(3, 3)
    )
    assert Space.from_toml("a = [[1, 2], [3]]\nb = {int = [1, 2], when = {a = [[3]]}}") == Space(
        a=Choice((1, 2), (3,)), b=Int(1, 2, when={"a": [(3,)]})
    )


@pytest.mark.parametrize(
    ("obj", "says"),
    [
        (None, "a table of parameters"),
        ([], "a table of parameters"),
        ({}, "empty"),
        ({"a": 1}, "'a': 1 is no parameter"),
        ({"a": {}}, "has one of float, int, choice, constant"),
        ({"a": {"float": [0, 1], "int": [0, 1]}}, "has one of"),
        ({"a": {"normal": [0, 1]}}, "has one of"),
        ({"a": {"float": [0, 1], "lgo": True}}, "unknown field 'lgo'; float knows log, prior, step, when"),
        ({"a": {"choice": [1], "log": True}}, "unknown field 'log'"),
        ({"a": {"float": 1}}, "followed by a list"),
        ({"a": {"float": [0, 1, 2]}}, "followed by [low, high]"),
        ({"a": {"float": ["0", 1]}}, "'a': Float: low must be a number"),
        ({"a": {"float": [1, 0]}}, "'a': Float(1.0, 0.0): low is above"),
        ({"a": {"float": [0, 1], "log": "yes"}}, "True or False"),
        ({"a": {"choice": {}}}, "followed by a list"),
        ({"a": {"choice": [[1]]}}, '{"tuple": [...]}'),
        ({"a": {"choice": [{"tuple": 1}]}}, '{"tuple": [...]}'),
        ({"a": {"constant": 1, "when": 3}}, "when is followed by"),
        ({"a": {"constant": 1, "when": {"b": 3}}}, "no parameter of the space"),
        ({3: {"constant": 1}}, "is a str"),
    ],
)
def test_json_that_is_no_space(obj: Any, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        Space.from_json(obj)
    assert says in str(caught.value)


def test_priors_in_json_and_toml() -> None:
    space = Space(
        wd=Float(0, 1, prior=0.01),
        heads=Int(1, 16, log=True, prior=4),
        bias=Choice(None, (1, 2), prior=(1, 2)),
        norm=Choice(None, "layer", prior=None),
    )
    assert space.to_json() == {
        "wd": {"float": [0.0, 1.0], "prior": 0.01},
        "heads": {"int": [1, 16], "log": True, "prior": 4},
        "bias": {"choice": [None, {"tuple": [1, 2]}], "prior": {"tuple": [1, 2]}},
        "norm": {"choice": [None, "layer"], "prior": None},
    }
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space
    toml = """
    wd = {float = [0, 1], prior = 0.01}
    heads = {int = [1, 16], log = true, prior = 4}
    bias = {choice = ["no", [1, 2]], prior = [1, 2]}
    """
    assert Space.from_toml(toml) == Space(wd=space["wd"], heads=space["heads"], bias=Choice("no", (1, 2), prior=(1, 2)))


def test_hostile_json() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = {"tuple": [deep]}
    with pytest.raises(SpaceError, match="nested"):
        Space.from_json({"a": {"constant": deep}})
    with pytest.raises(SpaceError, match="at most 1000"):
        Space.from_json({f"p{i}": {"constant": i} for i in range(10_000)})


@SETTINGS
@given(st.one_of(json_like, st.dictionaries(names, json_like, max_size=3)))
def test_any_json_is_a_space_or_one_error(obj: Any) -> None:
    try:
        space = Space.from_json(obj)
    except SpaceError:
        return
    assert Space.from_json(space.to_json()) == space


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lr = ", "not valid TOML"),
        ("lr = 1\nlr = 2", "not valid TOML"),
        ("lr = 1979-05-27", "cannot be a value"),
        ("lr = inf", "must be finite"),
        ("lr = []", "no values"),
        ("lr = {float = [1, 0]}", "low is above high"),
        ("[space]\nlr = 1", "has one of float, int, choice, constant"),
        ("a = " + "[" * 5000 + "]" * 5000, ""),
        ("a = 1" + "0" * 5000, ""),
        ("", "empty"),
    ],
)
def test_toml_that_is_no_space(text: str, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        Space.from_toml(text)
    assert says in str(caught.value)


POINT = {
    "lr": 0.01,
    "layers": 2,
    "opt": "sgd",
    "momentum": 0.5,
    "kernel": (3, 3),
    "size": "m",
    "width": 32,
    "drop": 0.3,
}
WORDS = "lr=1e-2 layers=2 opt=sgd momentum=.5 kernel=[3,3] size=m width=32 drop=0.3"


@pytest.mark.parametrize(
    "text",
    [
        WORDS,
        WORDS.replace("[3,3]", "'(3, 3)'").replace("opt=sgd", 'opt="sgd"'),
        json.dumps({name: to_json(value) for name, value in POINT.items()}),
        " " + json.dumps(POINT),
    ],
)
def test_a_point_as_a_person_writes_it(text: str) -> None:
    assert typed_items(SPACE.read(text)) == sorted(typed_items(POINT))


@pytest.mark.parametrize(
    ("choices", "word", "value"),
    [
        ((True, 1, "x"), "true", True),
        ((True, "x"), "True", True),
        ((None, "x"), "null", None),
        ((None, "x"), "None", None),
        ((1, 1.0), "1", 1),
        ((1, 1.0), "1.0", 1.0),
        ((1.0, 2.0), "1", 1.0),
        ((1e-3, 1e-2), "0.001", 1e-3),
        ((1e-3, 1e-2), "1e-3", 1e-3),
        (("1", "2"), "1", "1"),
        (("a b", "c"), "'a b'", "a b"),
        (("", "c"), "", ""),
    ],
)
def test_a_choice_is_found_by_what_is_typed(choices: Any, word: str, value: Any) -> None:
    assert repr(Space(x=Choice(*choices)).read(f"x={word}")) == repr({"x": value})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lr", "write name=value"),
        ("lr=x", "lr: 'x' is not a number"),
        ("drop=nan", "drop: it must be a finite number"),
        ("layers=2.5", "layers: '2.5' is not an int"),
        ("opt=rms", "opt: 'rms' is not one of ['adam', 'sgd']"),
        ("lr=1e-3 lr=1e-3", "lr is given twice"),
        ("wd=1", "'wd' is no parameter"),
        ("lr='1", "cannot read"),
        ('{"lr": ', "not valid JSON"),
        ('{"lr": 0.01, "lr": 0.02}', "lr is given twice"),
        ('{"lr": NaN}', "lr: nan cannot be a value"),
        ("{" * 5000, "not valid JSON"),
        ('{"lr":' * 5000 + "1" + "}" * 5000, ""),
        ("layers=" + "1" * 5000, "is not an int"),
        ("", "missing"),
    ],
)
def test_words_that_are_no_point(text: str, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.read(text)
    assert says in str(caught.value)


def test_two_meanings_are_not_guessed() -> None:
    with pytest.raises(SpaceError, match="may mean 1 or '1': write the point as JSON"):
        Space(x=Choice(1, "1")).read("x=1")
    assert Space(x=Choice(1, "1")).read('{"x": "1"}') == {"x": "1"}


@SETTINGS
@given(st.data())
def test_a_point_comes_back_from_its_json(data: st.DataObject) -> None:
    space = data.draw(spaces())
    point = data.draw(points(space))
    text = dumps({name: to_json(value) for name, value in point.items()}).decode()
    assert typed_items(space.read(text)) == typed_items(point)


@SETTINGS
@given(spaces(), st.text(max_size=20))
def test_any_text_is_a_point_or_one_error(space: Space, text: str) -> None:
    for words in (text, "{" + text, f"{space.names[0]}={text}"):
        with suppress(SpaceError):
            space.read(words)
