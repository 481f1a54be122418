"""fork: every result that still fits is in the new study, everything else is counted, and nothing is guessed."""

from __future__ import annotations

import json
import logging
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import FakeMachine, at_once, body_at, plant, store_over
from tests.space.spaces import points, spaces

from dibs import Choice, Float, Int, Random, RefusedError, Space, SpaceError, Store, Study, UsageError
from dibs._canon import all_to_json, digest
from dibs.backend import CrashingBackend, Killed, MemoryBackend
from dibs.search import Sampler, Threshold
from dibs.study import report, take
from dibs.study._fork import Forked

SPACE = Space(x=Float(0, 1), k=Int(0, 9), opt=Choice("adam", "sgd"), momentum=Float(0, 1, when={"opt": ["sgd"]}))


@pytest.fixture
def store() -> Store:
    return store_over()


def searched(store: Store, trials: int = 20, space: Space = SPACE, **kwargs: Any) -> Study:
    study = Study(store, "spam", space, **{"goal": "min", "sampler": "random", "seed": 1, **kwargs})
    for trial in study.trials(trials):
        with trial:
            trial.done(float(trial.n))
    return study


def told(study: Study) -> Forked:
    assert study.forked is not None
    return study.forked


def attached(study: Study) -> dict[str, float]:
    """What the sampler of a study is shown: canonical point -> score."""
    history = study.finished()
    return {
        json.dumps(all_to_json(p), sort_keys=True): s for n, (p, s) in zip(history.n, history, strict=True) if n < 0
    }  # type: ignore[misc]


def of(study: Study, keep: Any = lambda point: True, change: Any = dict) -> dict[str, float]:
    """The same of a study's done trials, those to keep, as changed."""
    return {
        json.dumps(all_to_json(change(result.point)), sort_keys=True): result.score or 0.0
        for result in study.results("done")
        if keep(result.point)
    }


def test_the_same_space_takes_over_every_result(store: Store) -> None:
    study = searched(store)
    before = {e.key: e.version for e in store.backend.list("study/spam/")}
    fork = study.fork("two")
    assert attached(fork) == of(study)
    assert told(fork) == ("spam", 20, 0, {})
    assert fork.results() == []
    assert {e.key: e.version for e in store.backend.list("study/spam/")} == before, "the old one is only read"
    assert {body_at(store, e.key)["fork"]["n"] for e in store.backend.list("study/two/given/")} == set(range(20))


def test_what_was_agreed_stays_and_only_the_seed_is_another(store: Store) -> None:
    study = searched(store, pruner=Threshold(upper=9.0), max_step=7, stale_s=99.0, goal="max")
    one, again = study.fork("two").definition, study.fork("three").definition
    old = study.definition
    assert old is not None
    assert one is not None
    assert again is not None
    assert (one.goal, one.max_step, one.stale_s, one.space) == ("max", 7, 99.0, SPACE)
    assert one.sampler.describe() == old.sampler.describe()
    assert one.pruner is not None
    assert old.pruner is not None
    assert one.pruner.describe() == old.pruner.describe()
    assert len({old.seed, one.seed, again.seed}) == 3, "other points than there, and than in another fork"
    elsewhere = searched(store_over(), pruner=Threshold(upper=9.0), max_step=7, stale_s=99.0, goal="max").fork("two")
    assert elsewhere.definition is not None
    assert elsewhere.definition.seed == one.seed, "the same fork of the same study goes on in the same way"
    five = study.fork("five", seed=5)
    assert five.definition is not None
    assert five.definition.seed == five.definition.sampler.seed == 5


def test_narrower_and_wider_spaces(store: Store) -> None:
    study = searched(store, 40)
    narrow = study.fork("narrow", Space({**SPACE.params, "x": Float(0.25, 0.75)}))
    assert attached(narrow) == of(study, lambda p: 0.25 <= p["x"] <= 0.75)
    outside = 40 - len(attached(narrow))
    assert told(narrow).left == {"outside the new x": outside}
    assert outside > 0
    wide = study.fork("wide", {**SPACE.params, "x": Float(1e-9, 10, log=True), "opt": Choice("lion", "sgd", "adam")})
    assert attached(wide) == of(study)
    whole = study.fork("whole", Space({**SPACE.params, "k": Float(0, 20)}))
    assert attached(whole) == of(study, change=lambda p: {**p, "k": float(p["k"])}), (
        "an int is a float where one is wanted"
    )
    some = study.fork("some", Space(x=Float(0, 1), k=Int(0, 9), opt=Choice("adam")), drop="momentum")
    assert attached(some) == of(study, lambda p: p["opt"] == "adam")
    assert set(told(some).left) == {"outside the new opt"}


def test_a_new_parameter_is_nobodys_unless_it_is_said_what_it_was(store: Store) -> None:
    study = searched(store)
    new = Space({**SPACE.params, "dropout": Float(0, 0.5)})
    assert told(study.fork("two", new)).left == {"without dropout, which is new: fill says what it was": 20}
    fork = study.fork("two", new, fill={"dropout": 0})
    assert attached(fork) == of(study, change=lambda p: {**p, "dropout": 0.0})
    constant = Space({**SPACE.params, "epochs": 30})
    assert told(study.fork("three", constant)).attached == 0, "not even a constant is guessed"
    assert told(study.fork("three", constant, fill={"epochs": 30})).attached == 20
    nested = Space({**SPACE.params, "dropout": Float(0, 0.5), "warm": Int(0, 3, when={"k": [1, 2]})})
    fork = study.fork("four", nested, fill={"dropout": 0.25, "warm": 3})
    assert attached(fork) == of(
        study, change=lambda p: {**p, "dropout": 0.25, **({"warm": 3} if p["k"] in (1, 2) else {})}
    ), "only where it is active"


def test_a_parameter_that_is_gone(store: Store) -> None:
    study = searched(store)
    new = Space(x=Float(0, 1), k=Int(0, 9))
    left = told(study.fork("two", new)).left
    reasons = {f"with {name}, which is gone: drop leaves it out" for name in ("opt", "momentum")}
    assert (left.keys(), sum(left.values())) == (reasons, 20)
    fork = study.fork("two", new, drop=["opt", "momentum"])
    assert attached(fork) == of(study, change=lambda p: {"x": p["x"], "k": p["k"]})
    fixed = study.fork("three", Space(x=Float(0, 1), k=Int(0, 9), opt="adam"), drop=["momentum"])
    assert attached(fixed) == of(study, lambda p: p["opt"] == "adam"), "the constant that it is now"


def test_conditions_that_come_and_go(store: Store) -> None:
    study = searched(store)
    always = Space({**SPACE.params, "momentum": Float(0, 1)})
    without = sum(r.point["opt"] == "adam" for r in study.results())
    assert told(study.fork("two", always)).left == {"without momentum, which is new: fill says what it was": without}
    fork = study.fork("three", always, fill={"momentum": 0.0})
    assert attached(fork) == of(study, change=lambda p: {"momentum": 0.0, **p})
    never = Space({**SPACE.params, "momentum": Float(0, 1, when={"opt": ["adam"]})})
    assert set(told(study.fork("four", never)).left) == {
        "with momentum, which would not be active: drop leaves it out",
        "without momentum, which is new: fill says what it was",
    }
    dropped = study.fork("five", never, drop=["momentum"], fill={"momentum": 0.5})
    assert told(dropped).attached == 20


def test_only_done_trials_and_attached_results_and_all_is_counted(store: Store) -> None:
    study = searched(store, 6)
    for trial in study.trials(8):
        with trial:
            trial.fail("said so")
    loop = study.trials(9)
    running = next(loop)
    study.attach({"x": 0.5, "k": 1, "opt": "adam"}, 3.5)
    study.attach({"x": 0.5, "k": 2, "opt": "adam"}, 0.25)
    fork = study.fork("two", Space({**SPACE.params, "k": Int(0, 1)}))
    got = told(fork)
    assert got.attached == len(attached(fork)) == len(of(study, lambda p: p["k"] <= 1)) + 1
    everything = len(study.results()) + 2
    assert got.attached + got.there + sum(got.left.values()) == everything
    assert (got.left["failed"], got.left["running"]) == (2, 1)
    running.done(1.0)


def test_a_fork_of_a_fork_has_both_ones_results(store: Store) -> None:
    study = searched(store, 5)
    two = study.fork("two")
    for trial in two.trials(3):
        with trial:
            trial.done(100.0 + trial.n)
    assert attached(two.fork("three")) == {**of(study), **of(two)}


def test_the_same_point_and_score_is_one_result_and_two_scores_are_two(store: Store) -> None:
    study = Study(store, "spam", Space(c=Choice("a", "b")), goal="min", sampler="random", seed=1)
    for trial in study.trials(6):
        with trial:
            trial.done([1.0, 1.0, 2.0, 1.0, 1.0, 2.0][trial.n])
    results = {(result.point["c"], result.score) for result in study.results()}
    fork = study.fork("two")
    assert told(fork).attached == len(results)
    assert told(fork).left == {"the same point and score again": 6 - len(results)}


def test_values_that_only_their_types_tell_apart(store: Store) -> None:
    study = Study(store, "spam", Space(c=Choice(True, 1, 1.0, "1", None, (1, 2), (True, 2))), goal="min")
    for k, value in enumerate(study.space["c"].values):  # type: ignore[attr-defined]
        study.attach({"c": value}, float(k))
    fork = study.fork("two", Space(c=Choice(1, (1, 2), "1")))
    kinds = {score: type(point["c"]) for point, score in fork.finished()}
    assert kinds == {1.0: int, 3.0: str, 5.0: tuple}
    assert told(fork).left == {"outside the new c": 4}


def test_said_again_it_adds_what_is_missing(store: Store) -> None:
    study = searched(store, 5)
    study.fork("two")
    assert told(study.fork("two")) == ("spam", 0, 5, {})
    for trial in study.trials(8):
        with trial:
            trial.done(float(trial.n))
    assert told(study.fork("two")) == ("spam", 3, 5, {})
    assert attached(Study(store, "two")) == of(study)
    by_another = Study(Store.over(store.backend, FakeMachine(9)), "spam").fork(
        "two", seed=study.fork("two").definition.seed
    )  # type: ignore[union-attr]
    assert told(by_another).there == 8


def test_a_name_that_is_taken_by_another_search_is_refused(store: Store) -> None:
    study = searched(store, 3)
    Study(store, "other", SPACE, goal="max")
    Study(store, "narrow", Space({**SPACE.params, "x": Float(0, 0.5)}), goal="min", sampler="random")
    with pytest.raises(RefusedError, match="goal"):
        study.fork("other")
    with pytest.raises(RefusedError, match="space"):
        study.fork("narrow")
    with pytest.raises(RefusedError, match="seed"):
        study.fork("two").name and study.fork("two", seed=3)
    for name in ("other", "narrow"):
        assert list(store.backend.list(f"study/{name}/given/")) == []
    with pytest.raises(UsageError, match="another name than 'spam'"):
        study.fork("spam")


def test_somebody_elses_seed_is_as_created(store: Store) -> None:
    study = searched(store, 3)
    first = study.fork("two", seed=77)
    again = study.fork("two")
    assert first.definition == again.definition
    assert told(again).there == 3


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"fill": {"y": 0}}, "no parameter 'y'"),
        ({"fill": {"dropout": 7}}, "dropout"),
        ({"fill": {"dropout": None}}, "dropout"),
        ({"fill": {"x": 0.5}}, "every old trial has 'x'"),
        ({"drop": ["y"]}, "no such parameter"),
        ({"space": {"x": Float(0, 1), "bad": [1, 2]}}, "bad"),
        ({"space": {}}, "empty"),
        ({"drop": None}, "drop is a list of names"),
        ({"drop": ["k", 5]}, "drop is a list of names"),
        ({"drop": [["k"]]}, "drop is a list of names"),
        ({"fill": [("k", 1)]}, "fill is a mapping"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_made(store: Store, kwargs: dict[str, Any], said: str) -> None:
    study = searched(store, 2)
    with pytest.raises(SpaceError, match=said):
        study.fork("two", **{"space": Space({**SPACE.params, "dropout": Float(0, 0.5)}), **kwargs})
    assert store.studies() == ["spam"]


@pytest.mark.parametrize("name", ["../x", "\x1b[31m", "n" * 300, "Spam", "a/b", "con"])
def test_hostile_names_are_names(store: Store, name: str) -> None:
    assert told(searched(store, 2).fork(name)).attached == 2
    assert sorted(store.studies()) == sorted(["spam", name])


class Mine(Sampler):
    """Somebody's own."""

    def __init__(self, at: float = 0.5, seed: int | None = None) -> None:
        super().__init__(seed)
        self.at = at

    def ask(self, space: Space, n: int, history: Any = ()) -> dict[str, Any]:
        return space.point([self.at] * space.dims)

    def args(self) -> dict[str, Any]:
        return {"at": self.at}


class Picky(Mine):
    """One that can do nothing with floats."""

    def size(self, space: Space) -> int | None:
        if any(isinstance(param, Float) for param in space.params.values()):
            raise UsageError("no floats, please")
        return None


def test_a_sampler_that_cannot_search_the_new_space_says_so_before_there_is_a_study(store: Store) -> None:
    study = searched(store, 3, Space(k=Int(0, 9)), sampler=Picky())
    with pytest.raises(UsageError, match="no floats"):
        study.fork("two", Space(k=Float(0, 9)))
    assert store.studies() == ["spam"]


def test_a_sampler_of_ones_own_is_taken_along(store: Store) -> None:
    study = searched(store, 1, sampler=Mine(0.25))
    fork = study.fork("two")
    assert [trial.point["x"] for trial in [next(fork.trials(1))]] == [0.25]
    elsewhere = Study(Store.over(store.backend, FakeMachine(5)), "spam").fork("three")
    with pytest.raises(UsageError, match="Mine"):
        next(elsewhere.trials(1))
    joined = Study(store, "three", sampler=Mine(0.25))
    assert [trial.point["x"] for trial in [next(joined.trials(1))]] == [0.25]


def test_a_sampler_that_brought_its_seed_gets_the_forks(store: Store) -> None:
    study = Study(store, "spam", SPACE, goal="min", sampler=Random(seed=3))
    fork = study.fork("two")
    assert fork.definition is not None
    assert study.definition is not None
    assert fork.definition.seed == fork.definition.sampler.seed != 3
    assert study.definition.sampler.seed == 3


def test_a_study_without_a_definition_has_no_space_to_begin_again_with(store: Store) -> None:
    taken = take(store, {"x": 0.5}, study="plain", trial=0, me="me", goal="min")
    assert taken
    report(store, {"x": 0.5}, [1.0], study="plain", trial=0, me="me", state="done", goal="min")
    with pytest.raises(UsageError, match="no definition"):
        Study(store, "plain").fork("two")
    Study(store, "plain", Space(x=Float(0, 1), epochs=3), goal="min")
    fork = Study(store, "plain").fork("two")
    assert [point for point, _ in fork.finished()] == [{"epochs": 3, "x": 0.5}], "its loop left the constant out"


@pytest.mark.parametrize(
    "point",
    [
        {}, {"x": "0.5", "k": 1, "opt": "adam"}, {"x": 0.5, "k": 1.5, "opt": "adam"}, {"x": True, "k": 1, "opt": "adam"},
        {"x": 0.5, "k": 1, "opt": {"tuple": ["adam"]}}, {"x": 1e300, "k": 2**62, "opt": None}, {"": 1, "\x1b": 2},
        {"x": 0.5, "k": 1, "opt": "adam", "momentum": 0.5}, {"x": 0.5, "k": 1, "opt": "sgd"},
    ],
    ids=str,
)  # fmt: skip
def test_points_written_by_hand_are_counted_and_left_out(store: Store, point: dict[str, Any]) -> None:
    study = searched(store, 4)
    key = store.keys("spam").attempt(2, 0)
    plant(store, key, {**body_at(store, key), "point": point})
    got = told(Study(Store.over(store.backend, FakeMachine(7)), "spam").fork("two"))
    assert (got.attached, sum(got.left.values())) == (3, 1)
    assert study.name == "spam"


def test_what_does_not_read_is_counted(store: Store) -> None:
    study = searched(store, 4)
    study.attach({"x": 0.5, "k": 1, "opt": "adam"}, 3.5)
    plant(store, store.keys("spam").attempt(1, 0), b"{")
    plant(store, store.keys("spam").given_score(digest(1)), b"{")
    got = told(Study(Store.over(store.backend, FakeMachine(7)), "spam").fork("two"))
    assert got == ("spam", 4, 0, {"attached and not readable": 1, "running": 1})


def test_it_is_told_in_the_log_and_loud_where_something_is_left(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    study = searched(store, 4)
    with caplog.at_level(logging.INFO, "dibs"):
        study.fork("two")
        study.fork("three", Space({**SPACE.params, "x": Float(0, 1e-9)}))
    said = [(record.levelname, record.getMessage()) for record in caplog.records if "taken over" in record.getMessage()]
    assert said[0] == ("INFO", "study two: 4 results of spam taken over, 0 were there")
    assert said[1][0] == "WARNING"
    assert said[1][1].endswith("0 results of spam taken over, 0 were there; left out: 4 outside the new x")


def test_progress_ends_with_all_of_it(store: Store) -> None:
    seen: list[tuple[int, int]] = []
    study = searched(store, 6)
    study.fork("two", on_progress=lambda looked, whole: seen.append((looked, whole)))
    assert seen == [(6, 6)]
    study.fork("two", on_progress=lambda looked, whole: seen.append((looked, whole)))
    assert seen == [(6, 6)], "nothing to do is no progress"


def test_machines_that_fork_at_once_make_one_study(store: Store) -> None:
    study = searched(store, 30)
    forks = at_once([
        lambda pid=pid: Study(Store.over(store.backend, FakeMachine(pid)), "spam").fork("two") for pid in range(2, 8)
    ])  # fmt: skip
    assert sum(told(fork).attached for fork in forks) == 30
    assert all(told(fork).attached + told(fork).there == 30 for fork in forks)
    assert len({fork.definition.seed for fork in forks}) == 1
    assert attached(Study(store, "two")) == of(study)


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_step_and_said_again(when: Any) -> None:
    backend = MemoryBackend()
    study = searched(store_over(backend), 5)
    wanted = of(study)
    inner = CrashingBackend(backend)
    Study(Store.over(inner, FakeMachine(2)), "spam").fork("count")
    for crash_at in range(1, inner.calls + 1):
        name = f"at {crash_at}"
        with pytest.raises(Killed):
            Study(Store.over(CrashingBackend(backend, crash_at, when), FakeMachine(100 + crash_at)), "spam").fork(name)
        again = Study(Store.over(backend, FakeMachine(3)), "spam").fork(name)
        assert attached(again) == wanted, crash_at
        assert told(again).attached + told(again).there == 5


@given(st.data())
def test_whatever_the_spaces_every_result_that_fits_is_there_and_all_are_counted(data: st.DataObject) -> None:
    old, new = data.draw(spaces()), data.draw(spaces())
    if data.draw(st.booleans()):  # close relatives: random ones have little in common
        new = Space.from_pairs(
            [(name, param) for name, param in old.params.items() if param.when is None and data.draw(st.booleans())]
            or [(name, param.free()) for name, param in old.params.items()]
        )
    given = [data.draw(points(old)) for _ in range(data.draw(st.integers(0, 6)))]
    store = store_over()
    study = Study(store, "old", old, goal="min", sampler="random", seed=1)
    for k, point in enumerate(given):
        study.attach(point, float(k))
    drop = [name for name in old if data.draw(st.booleans())]
    got = told(fork := study.fork("new", new, drop=drop))
    history = fork.finished()
    assert got.attached == len(history)
    assert got.attached + sum(got.left.values()) == len(given)
    for point, _ in history:
        assert new.check(point) == point
    scores = Counter(score for _, score in history)
    for k, point in enumerate(given):
        fits = point.keys() == new.active(point) if point.keys() <= set(new) else False
        try:
            fits = fits and bool(new.check(point) is not None)
        except SpaceError:
            fits = False
        if fits:
            assert scores[float(k)] == 1, point


def test_joining_with_another_space_says_that_a_fork_takes_the_results_along(store: Store) -> None:
    searched(store, 1)
    with pytest.raises(RefusedError, match=r"study\.fork\(name, space\).*`dibs fork spam NEW --space FILE`"):
        Study(store, "spam", Space(x=Float(0, 2)), goal="min")
