"""``dibs federation``: what the verbs show of rounds, in text and JSON, and their codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.federation.rounds import model, together
from tests.parts import body_at, plant

from dibs import RecordError, RoundTimeout, Store
from dibs.federation import gather
from dibs.store import RoundKeys

Call = Any


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Round 0: all but one, that is late. Round 1: NaN of one. Round 2: begun."""
    made = Store(tmp_path / "s", create=True)
    names = ["a", "b", "c"]
    options: dict[str, Any] = {"run": "spam", "clients": names, "me": "node1"}
    with pytest.raises(RoundTimeout):
        gather(made, model("a"), client="a", round=0, quorum=2, within=0.001, **options)
    gather(made, model("b"), client="b", round=0, quorum=2, grace=0, **options)
    gather(made, model("c"), client="c", round=0, quorum=2, **options)
    bad = {**model("b"), "w": np.full((20, 25), np.nan, np.float32)}
    together(made, {"a": model("a"), "b": bad, "c": model("c")}, run="spam", round=1, bad="drop", me="node1")
    with pytest.raises(RoundTimeout):
        gather(made, model("a"), client="a", round=2, within=0.001, **options)
    return made


def test_status_shows_rounds_and_who_is_in(dibs: Call, store: Store) -> None:
    lines = dibs("federation", "status", "--store", "s").stdout.splitlines()
    assert lines[0] == f"run spam in {store.url}: 3 rounds"
    assert [line.split() for line in lines[1:5]] == [
        ["round", "state", "answered", "in", "missing", "late", "rejected", "averaged", "by"],
        ["0", "done", "2/3", "2", "c", "node1"],
        ["1", "done", "3/3", "2", "b", "node1"],
        ["2", "waiting", "1/3", "b,", "c"],
    ]
    assert lines[5] == "  round 1: b rejected: tensor 'w' holds NaN or an infinity"


def test_status_in_json_is_everything(dibs: Call, store: Store) -> None:
    told = json.loads(dibs("federation", "status", "--store", "s", "--run", "spam", "--json").stdout)
    zero, one, two = told["rounds"]
    assert (zero["late"], zero["missing"], zero["weights"]) == (["c"], [], {"a": 0.5, "b": 0.5})
    assert (one["rejected"], one["state"]) == ({"b": "tensor 'w' holds NaN or an infinity"}, "done")
    assert (two["state"], two["answered"], two["missing"], two["blob"]) == ("waiting", ["a"], ["b", "c"], None)


def test_a_store_shows_its_runs(dibs: Call, store: Store) -> None:
    said = dibs("status", "--store", "s").stdout
    assert "federated run spam: 3 rounds; round 2 waiting, 1 of 3 answered" in said
    assert json.loads(dibs("status", "--store", "s", "--json").stdout)["runs"][0]["rounds"] == 3
    late = {"run": "other", "round": 0, "clients": ["a", "b"], "quorum": 1, "grace": 0}
    for client in "ab":
        gather(store, model(client), client=client, **late)
    assert (
        "federated run other: 1 round; round 0 done, 1 of 2 answered, 1 late" in dibs("status", "--store", "s").stdout
    )


def test_verify_says_what_is_the_same_and_what_is_not(dibs: Call, store: Store) -> None:
    assert dibs("federation", "verify", "--store", "s").stdout == "run spam: 2 same, 1 open\n"
    keys = RoundKeys("spam")
    plant(store, keys.average(1), {**body_at(store, keys.average(1)), "weights": {"a": 0.25, "c": 0.75}})
    said = dibs("federation", "verify", "--store", "s", "--run", "spam", code=1).stdout
    assert said.startswith("round 1 DIFFERS: the weights were")
    assert dibs("federation", "verify", "--store", "s", "--round", "0").stdout == "run spam: 1 same\n"
    told = json.loads(dibs("federation", "verify", "--store", "s", "--json", code=1).stdout)
    assert [each["state"] for each in told["rounds"]] == ["same", "differs", "open"]


@pytest.mark.parametrize("verb", ["status", "verify"])
def test_what_is_not_there_is_one_line(dibs: Call, store: Store, tmp_path: Path, verb: str) -> None:
    assert "there is: 'spam'" in dibs("federation", verb, "--store", "s", "--run", "x", code=2).stderr
    Store(tmp_path / "empty", create=True)
    assert "no run of federated rounds" in dibs("federation", verb, "--store", "empty", code=2).stderr
    assert "has no round 9" in dibs("federation", "verify", "--store", "s", "--round", "9", code=2).stderr
    gather(store, model("a"), run="other", round=0, clients=["a"], client="a")
    assert "2 runs ('other', 'spam'): say --run" in dibs("federation", verb, "--store", "s", code=2).stderr


def test_a_name_cannot_steer_a_terminal(dibs: Call, tmp_path: Path) -> None:
    made = Store(tmp_path / "s", create=True)
    gather(made, model("a"), run="r\x1b[2J", round=0, clients=["a\x1b[2J"], client="a\x1b[2J", me="m\x1b[2J")
    assert "\x1b" not in dibs("federation", "status", "--store", "s").stdout + dibs("status", "--store", "s").stdout


def test_damage_is_shown(dibs: Call, store: Store) -> None:
    plant(store, RoundKeys("spam").terms(2), b"{")
    said = dibs("federation", "status", "--store", "s").stdout
    assert "damaged" in said
    assert "terms.json does not parse" in said
    assert "lists such records" not in said  # this is where they are listed
    with pytest.raises(RecordError, match="`dibs federation status` lists such records"):
        gather(store, model("a"), run="spam", round=2, clients=["a", "b", "c"], client="a")
