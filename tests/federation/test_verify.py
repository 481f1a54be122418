"""A published average is what its updates make, and a doctored one is found; nothing is written by looking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.federation.rounds import keys_of, model, together
from tests.parts import body_at, plant

from dibs import NotFound, RoundStopped, RoundTimeout, Store
from dibs.federation import gather, verify
from dibs.federation._exports import flatten
from dibs.federation._files import chunks_of
from dibs.store import RoundKeys, blob_key

KEYS = RoundKeys("r")
EXPORTS: dict[str, Any] = {"a": model("a"), "b": {**model("b"), "b": np.full(100, np.inf)}, "c": model("c")}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store", create=True)
    together(made, EXPORTS, bad="drop")
    return made


def told(store: Store) -> tuple[str, str]:
    (one,) = verify(store, "r")
    return one.state, one.why


def everything(store: Store) -> dict[str, bytes]:
    return {
        entry.key: store.backend.read(entry.key).data
        for top in ("round/", "blobs/")
        for entry in store.backend.list(top)
    }


def test_it_is_the_same_and_nothing_is_written(store: Store) -> None:
    before = everything(store)
    assert told(store) == ("same", "")
    assert everything(store) == before


def test_every_rule_verifies(store: Store) -> None:
    options: list[dict[str, Any]] = [
        {"robust": "median"},
        {"others": "max"},
        {"clip": 1.0, "base": model("z")},
        {"bad": "stop"},
    ]
    for round, option in enumerate(options, 1):
        together(store, {name: model(name) for name in "abc"}, round=round, **option)
    together(store, EXPORTS, round=5, bad="stop")
    assert [(one.round, one.state) for one in verify(store, "r")] == [(round, "same") for round in range(6)]
    assert [one.round for one in verify(store, "r", [4, 2])] == [4, 2]


def test_a_run_that_is_under_way_or_put_away(store: Store) -> None:
    with pytest.raises(RoundTimeout):
        gather(store, model("a"), run="r", round=1, clients=["a", "b"], client="a", within=0.001)
    assert [one.state for one in verify(store, "r")] == ["same", "open"]
    gather(store, model("a"), run="r", round=2, clients=["a"], client="a", keep=1)
    assert [one.state for one in verify(store, "r")] == ["put away", "open", "same"]


@pytest.mark.parametrize(
    "what",
    ["blob", "weights", "rejected", "update gone", "update torn", "average torn", "list gone", "rule", "end torn"],
)
def test_what_is_not_so_is_found(store: Store, what: str) -> None:
    end, update = body_at(store, KEYS.average(0)), body_at(store, KEYS.update(0, "a"))["blob"]
    if what == "blob":  # somebody's own idea of an average
        other = store.put(b"".join(chunks_of(flatten(model("z"), "z")[0], {"run": "r", "round": "0"})))
        plant(store, KEYS.average(0), {**end, "blob": other})
        wanted = "was published"
    elif what == "weights":
        plant(store, KEYS.average(0), {**end, "weights": {"a": 0.9, "c": 0.1}})
        wanted = "the weights were"
    elif what == "rejected":
        plant(store, KEYS.average(0), {**end, "rejected": {}})
        wanted = "'b' is rejected now: tensor 'b' holds NaN"
    elif what == "update gone":
        store.backend.delete(blob_key(update))
        wanted = "'a' is rejected now: there is no blob"
    elif what == "update torn":
        plant(store, blob_key(update), b"x")
        wanted = "is damaged"
    elif what == "average torn":
        plant(store, blob_key(end["blob"]), b"x")
        wanted = "is damaged"
    elif what == "list gone":
        store.backend.delete(KEYS.averaging(0, 0))
        wanted = "whose updates went in"
    elif what == "end torn":
        plant(store, KEYS.average(0), b'{"v":1,')
        wanted = "average.json does not parse"
    else:
        terms = body_at(store, KEYS.terms(0))
        plant(store, KEYS.terms(0), {**terms, "rule": {"robust": "mode"}})
        wanted = "robust is None, 'median'"
    state, why = told(store)
    assert (state, wanted in why) == ("differs", True), why


def test_a_name_cannot_say_that_a_round_was_poison(store: Store) -> None:
    """What updates are called by stands in the reason for which a round was stopped, and is looked into all the same."""
    name, nan = "a(poison)", {"(poison)": np.array([np.nan])}
    with pytest.raises(RoundStopped):
        gather(store, nan, run="q", round=0, clients=[name], client=name)
    key = RoundKeys("q").average(0)
    plant(store, key, {**body_at(store, key), "rejected": {}})
    (one,) = verify(store, "q")
    assert (one.state, "is rejected now" in one.why) == ("differs", True), one


def test_what_is_not_there_is_told(store: Store) -> None:
    with pytest.raises(NotFound, match="no run 'x'"):
        list(verify(store, "x"))
    with pytest.raises(NotFound, match="no round 7: it has 0 to 0"):
        list(verify(store, "r", [7]))
    assert "forgotten.json" not in keys_of(store)
