"""What a study is: created once, compared by whoever joins, refused with the field, both values and the cure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parts import FakeMachine, at_once, body_at, plant, store_over

import dibs
from dibs import Choice, Float, Int, NotFound, RefusedError, Space, SpaceError, Study, UsageError
from dibs.backend import FolderBackend
from dibs.errors import RecordError
from dibs.search import Grid, Median, Random, Sampler, Sobol
from dibs.store import Store, escape
from dibs.study import report, take

SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True), opt=Choice("adam", "sgd", (1, 2.0)), momentum=Float(0, 0.99, when={"opt": ["sgd"]})
)


class Mine(Sampler):
    """A sampler of somebody's own."""

    def __init__(self, step: float = 0.1, seed: int | None = None) -> None:
        super().__init__(seed)
        self.step = step

    def args(self) -> dict[str, Any]:
        return {"step": self.step}

    def ask(self, space: Space, n: int, history: Iterable[Any] = ()) -> dict[str, Any]:
        return {"x": min(1.0, n * self.step)}


@pytest.fixture
def store() -> Store:
    return store_over()


def define(store: Store, **terms: Any) -> Study:
    return Study(store, "spam", **{"space": SPACE, "goal": "min", **terms})


def keys_in(store: Store) -> list[str]:
    return [entry.key for entry in store.backend.list("")]


# creating


def test_what_is_written_once(store: Store) -> None:
    define(store, seed=7, stale_s=600, max_step=30, sampler="random", me="node3")
    body = body_at(store, "study/spam/study.json")
    assert len(body.pop("nonce")) == 32
    assert body.pop("created_at").endswith("Z")
    assert body.pop("who")["me"] == "node3"
    assert body == {
        "v": 1, "kind": "study", "study": "spam", "goal": "min", "seed": 7, "stale_s": 600.0, "max_step": 30,
        "sampler": {"name": "random", "version": 1, "args": {}}, "pruner": None, "space": SPACE.to_json(),
    }  # fmt: skip
    assert keys_in(store) == ["study/spam/study.json"]


def test_what_is_left_out_has_a_default_and_the_seed_is_drawn_once(store: Store) -> None:
    ours = define(store).definition
    assert ours is not None
    assert (ours.sampler.name, ours.stale_s, ours.max_step) == ("auto", 3600.0, None)
    theirs = Study(Store.over(store.backend, FakeMachine(2)), "spam").definition
    assert theirs == ours
    other = Study(store, "other", SPACE, goal="min").definition
    assert other is not None
    assert other.seed != ours.seed


def test_the_samplers_own_seed_is_the_studys(store: Store) -> None:
    study = define(store, sampler=Random(seed=5))
    assert study.definition is not None
    assert study.definition.seed == 5


@pytest.mark.parametrize("name", ["Spam v2", "é" * 100, "x" * 300, "a/b", "\U0001f600", "nul", "spam", "con.json"])
def test_a_study_of_any_name(store: Store, name: str) -> None:
    study = Study(store, name, SPACE, goal="max")
    assert Study(store, name).definition == study.definition
    assert store.studies() == [name]
    assert keys_in(store) == [f"study/{escape(name)}/study.json"]


def test_two_long_names_are_two_studies(store: Store) -> None:
    one = Study(store, "x" * 300, SPACE, goal="min")
    other = Study(store, "x" * 301, SPACE, goal="max")
    assert (one.goal, other.goal) == ("min", "max")
    assert store.studies() == sorted(["x" * 300, "x" * 301])


def test_all_who_create_at_once_have_one_study(store: Store) -> None:
    stores = [Store.over(store.backend, FakeMachine(pid)) for pid in range(8)]
    studies = at_once([lambda s=s: define(s) for s in stores])
    assert len({study.definition.seed for study in studies}) == 1


def test_of_two_who_create_differently_at_once_one_is_refused(store: Store) -> None:
    def create(goal: Any, pid: int) -> str:
        try:
            return str(Study(Store.over(store.backend, FakeMachine(pid)), "spam", SPACE, goal=goal).goal)
        except RefusedError as told:
            return f"refused {told.theirs} {told.ours}"

    for _ in range(10):
        told = at_once([lambda: create("min", 1), lambda: create("max", 2)])
        assert sorted(told) in (["min", "refused min max"], ["max", "refused max min"])
        store.backend.delete("study/spam/study.json")


# refusals of those who join


OTHER_LR = Space(
    lr=Float(1e-4, 1e-1, log=True), opt=Choice("adam", "sgd", (1, 2.0)), momentum=Float(0, 0.99, when={"opt": ["sgd"]})
)


@pytest.mark.parametrize(
    ("terms", "field", "theirs", "ours"),
    [
        ({"goal": "max"}, "goal", "'min'", "'max'"),
        ({"seed": 8}, "seed", "7", "8"),
        ({"stale_s": 60}, "stale_s", "600.0", "60"),
        ({"max_step": 31}, "max_step", "30", "31"),
        ({"sampler": "sobol"}, "sampler", "'random'", "'sobol'"),
        ({"sampler": Sobol()}, "sampler", "random", "sobol"),
        ({"sampler": Random(seed=8)}, "seed", "7", "8"),
        ({"space": OTHER_LR}, "space (lr)", "1e-05", "0.0001"),
        ({"space": Space(lr=Float(1e-5, 1e-1, log=True))}, "space (momentum)", "0.99", "yours has none"),
        ({"space": {"lr": Float(1e-5, 1e-1), "opt": 3}}, "space (lr)", "'log': True", "say {'float': [1e-05, 0.1]}"),
    ],
)
def test_a_difference_is_refused_with_the_field_both_values_and_the_cure(
    store: Store, terms: dict[str, Any], field: str, theirs: str, ours: str
) -> None:
    define(store, seed=7, stale_s=600, max_step=30, sampler="random")
    before = keys_in(store)
    with pytest.raises(RefusedError) as told:
        define(store, **terms)
    text = str(told.value)
    assert told.value.field == field
    assert field in text
    assert theirs in text
    assert ours in text
    assert "leave" in text or "join without it" in text
    assert told.value.theirs != told.value.ours
    assert keys_in(store) == before


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"seed": 7},
        {"seed": np.int64(7)},
        {"stale_s": 600},
        {"stale_s": np.float32(600)},
        {"max_step": np.int32(30)},
        {"sampler": "random"},
        {"sampler": Random()},
        {"sampler": Random(seed=7)},
        {"space": None},
        {"goal": None},
    ],
)
def test_what_agrees_or_is_left_out_joins(store: Store, terms: dict[str, Any]) -> None:
    ours = define(store, seed=7, stale_s=600, max_step=30, sampler="random")
    assert define(store, **terms).definition == ours.definition


def test_choices_that_only_look_alike_are_refused(store: Store) -> None:
    Study(store, "s", Space(x=Choice(1, 2)), goal="min")
    with pytest.raises(RefusedError, match="space"):
        Study(store, "s", Space(x=Choice(1.0, 2.0)), goal="min")
    assert Study(store, "s", Space(x=Choice(1, 2)), goal="min").space == Space(x=Choice(1, 2))


# a sampler of somebody's own


def test_a_sampler_of_ones_own_is_passed_by_everybody_who_claims(store: Store) -> None:
    space = Space(x=Float(0, 1))
    study = Study(store, "s", space, goal="min", sampler=Mine(0.25))
    for trial in study.trials(2):
        with trial:
            trial.done(trial.point["x"])
    reader = Study(store, "s")
    assert [result.point["x"] for result in reader.results()] == [0.0, 0.25]
    assert reader.best().score == 0.0
    before = keys_in(store)
    with pytest.raises(UsageError, match="passed as an instance"):
        reader.trials(3)
    assert keys_in(store) == before
    for trial in Study(store, "s", sampler=Mine(0.25)).trials(3):
        with trial:
            assert trial.point == {"x": 0.5}
            trial.done(1.0)
    with pytest.raises(RefusedError, match=r"'step': 0.25.*'step': 0.5"):
        Study(store, "s", sampler=Mine(0.5))


def test_a_sampler_of_a_later_version_still_reads(store: Store) -> None:
    define(store, sampler="random")
    body = body_at(store, "study/spam/study.json")
    plant(store, "study/spam/study.json", {**body, "sampler": {"name": "random", "version": 99, "args": {}}})
    study = Study(store, "spam")
    assert study.results() == []
    with pytest.raises(UsageError, match="upgrade"):
        study.trials(3)


# what cannot be meant


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ({"goal": "MIN"}, "'min' or 'max'"),
        ({"goal": ["min"]}, "one goal: write goal='min'"),
        ({"seed": 1.0}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"seed": "7"}, "seed"),
        ({"stale_s": 0}, "stale_s"),
        ({"stale_s": -1}, "stale_s"),
        ({"stale_s": float("inf")}, "stale_s"),
        ({"stale_s": float("nan")}, "stale_s"),
        ({"stale_s": True}, "stale_s"),
        ({"stale_s": "1h"}, "stale_s"),
        ({"max_step": -1}, "max_step"),
        ({"max_step": 1.5}, "max_step"),
        ({"sampler": "bayes"}, "unknown sampler 'bayes'"),
        ({"sampler": 3}, "no sampler"),
        ({"sampler": Sobol}, r"an instance of the sampler: Sobol\(\)"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"name": "\ud800"}, "Unicode"),
        ({"ranks": "all"}, "ranks"),
        ({"space": {"lr": [1, 2]}}, "lr"),
        ({"space": {"lr": Float}}, "lr"),
        ({"space": {"a": Float(0, 1, when={"b": [1]})}}, "b"),
    ],
)
def test_what_cannot_be_meant_is_told_before_anything_is_made(tmp_path: Path, terms: dict[str, Any], says: str) -> None:
    given = {"name": "spam", "space": SPACE, "goal": "min", **terms}
    with pytest.raises(UsageError, match=says):
        Study(tmp_path / "store", given.pop("name"), given.pop("space"), **given)
    assert list(tmp_path.iterdir()) == []


def test_a_sampler_that_cannot_search_the_space_says_so_before_there_is_a_study(store: Store) -> None:
    class Picky(Mine):
        def size(self, space: Space) -> int:
            raise SpaceError("this sampler wants an Int")

    with pytest.raises(SpaceError, match="wants an Int"):
        define(store, sampler=Picky())
    assert keys_in(store) == []


# reading and the function API


def test_reading_needs_no_space_and_never_creates(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no study 'spam'.*there: none.*a space and a goal"):
        Study(store, "spam")
    define(store)
    Study(store, "ham", SPACE, goal="min")
    with pytest.raises(NotFound, match="there: 'ham', 'spam'"):
        Study(store, "eggs")
    with pytest.raises(NotFound, match="to create it give a goal"):
        Study(store, "eggs", SPACE)
    with pytest.raises(NotFound, match="to create it give a space"):
        Study(store, "eggs", goal="min")
    assert len(keys_in(store)) == 2
    with pytest.raises(dibs.StoreError, match="there is no store"):
        Study(tmp_path / "store", "spam")
    assert list(tmp_path.iterdir()) == []


def test_a_study_begun_by_functions_gets_a_definition_if_the_goals_agree(store: Store) -> None:
    point = {"lr": 0.01, "opt": "adam"}
    take(store, point, study="spam", trial=0, goal="max")
    report(store, point, [0.5], study="spam", trial=0, state="done")
    reader = Study(store, "spam")
    assert (reader.goal, reader.best().score) == ("max", 0.5)
    with pytest.raises(UsageError, match="no definition"):
        reader.trials(5)
    with pytest.raises(NotFound, match=r"has records but no definition.*a goal"):
        Study(store, "spam", SPACE)
    with pytest.raises(RefusedError, match="goal = 'max', and you say 'min'") as told:
        define(store, goal="min")
    assert told.value.field == "goal"
    assert "study/spam/study.json" not in keys_in(store)
    study = define(store, goal="max")
    assert study.finished().points == (point,)


def test_a_damaged_record_does_not_stop_a_definition(store: Store) -> None:
    plant(store, store.keys("spam").attempt(0, 0), b"\0\0")
    take(store, {"lr": 0.01}, study="spam", trial=1, goal="min")
    assert define(store).goal == "min"


def test_a_creator_that_dies_between_mkdir_and_its_record_is_told_with_the_cure(tmp_path: Path) -> None:
    backend = FolderBackend(tmp_path / "store", claim="mkdir")
    backend.prepare()
    store = store_over(backend)
    claim = tmp_path / "store" / f"{store.keys('spam').study}.claim"
    claim.mkdir(parents=True)
    with pytest.raises(RecordError, match=r"remove the folder .*study\.json\.claim"):
        Study(store, "spam", SPACE, goal="min")
    assert isinstance(store.machine, FakeMachine)
    assert sum(store.machine.clock.slept) == pytest.approx(5.0, abs=0.1), "somebody alive would have written it by then"
    claim.rmdir()
    assert Study(store, "spam", SPACE, goal="min").goal == "min"


def test_the_grid_says_how_many_trials_there_are(store: Store) -> None:
    study = Study(store, "g", Space(a=Int(1, 2), b=Choice("x", "y")), goal="min", sampler=Grid())
    for trial in study.trials(100):
        with trial:
            trial.done(1.0)
    assert len(study.results()) == 4


class Owned(Random):
    """One of somebody's own, who says odd things of it."""

    name = "tests-owned"

    def __init__(self, said: Any) -> None:
        super().__init__()
        self.said = said

    def args(self) -> dict[str, Any]:
        return {"said": self.said}


class OwnPruner(Median):
    name = "tests-own-pruner"

    def __init__(self, said: Any) -> None:
        super().__init__()
        self.said = said

    def args(self) -> dict[str, Any]:
        return {"said": self.said}


@pytest.mark.parametrize(
    "said", [(1, (2, "x")), {1: 2}, np.float32(0.5), np.arange(3), {"a": np.int64(3)}, 2**70, 1e-7]
)
def test_who_joins_with_an_equal_one_is_let_in_whatever_json_makes_of_it(store: Store, said: Any) -> None:
    for _ in range(2):
        Study(store, "s", SPACE, goal="min", seed=1, sampler=Owned(said), pruner=OwnPruner(said))
    with pytest.raises(RefusedError, match="sampler"):
        Study(store, "s", sampler=Owned("another"))
    with pytest.raises(RefusedError, match="pruner"):
        Study(store, "s", sampler=Owned(said), pruner=OwnPruner("another"))


@pytest.mark.parametrize("said", [object(), {1, 2}, math.nan, -math.inf, "\ud800", b"x", {(1, 2): 3}])
def test_what_is_no_json_is_told_before_there_is_a_study(store: Store, said: Any) -> None:
    with pytest.raises(UsageError, match=r"args\(\) of Owned"):
        Study(store, "s", SPACE, goal="min", sampler=Owned(said))
    with pytest.raises(UsageError, match=r"args\(\) of OwnPruner"):
        Study(store, "s", SPACE, goal="min", pruner=OwnPruner(said))
    with pytest.raises(NotFound):
        Study(store, "s")
