"""The fold and what it shows: one result per trial, whatever its attempts have been through."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import FakeMachine, store_over

from dibs import Float, NoResult, Space, Store, Study, UsageError
from dibs.record import STATES, TrialRecord
from dibs.study import report, take
from dibs.study._fold import Seen, fold

SPACE = Space(x=Float(0, 1))
POINT = {"x": 0.5}


@pytest.fixture
def store() -> Store:
    return store_over()


def attempts(store: Store, n: int, *ends: tuple[str, float] | str) -> None:
    """Attempts 0, 1, ... of trial n, each claimed by a machine of its own and ended in order."""
    held = []
    for attempt, end in enumerate(ends):
        mine = Store.over(store.backend, FakeMachine(10 + attempt))
        assert take(mine, POINT, study="spam", trial=n, goal="min", attempt=attempt) is not None
        held.append((mine, end))
    for mine, end in held:
        state, score = end if isinstance(end, tuple) else (end, 1.0)
        if state != "running":
            report(mine, POINT, [score], study="spam", trial=n, state=state)


def shown(store: Store) -> list[tuple[int, int, str, float | None]]:
    study = Study(Store.over(store.backend, FakeMachine(9)), "spam")
    return [(r.n, r.attempt, r.state, r.score) for r in study.results()]


@pytest.mark.parametrize(
    ("ends", "attempt", "state", "score"),
    [
        (["done"], 0, "done", 1.0),
        (["running"], 0, "running", None),
        ([("done", 0.5), "running"], 0, "done", 0.5),
        ([("done", 0.5), "interrupted"], 0, "done", 0.5),
        ([("done", 0.5), "failed"], 0, "done", 0.5),
        ([("done", 0.5), ("pruned", 0.1)], 0, "done", 0.5),
        ([("done", 0.5), ("done", 0.9)], 1, "done", 0.9),  # among equals the highest counts
        (["running", ("done", 0.9)], 1, "done", 0.9),
        ([("pruned", 0.7), "failed"], 0, "pruned", 0.7),
        ([("pruned", 0.7), ("pruned", 0.8)], 1, "pruned", 0.8),
        (["failed", "interrupted"], 0, "failed", None),
        (["failed", "running"], 0, "failed", None),
        (["interrupted", "running"], 1, "running", None),
        (["running", "interrupted"], 1, "interrupted", None),
        (["interrupted", "interrupted"], 1, "interrupted", None),
        (["failed", "failed"], 1, "failed", None),
    ],
)
def test_a_trial_is_a_fold_over_its_attempts(
    store: Store, ends: list[Any], attempt: int, state: str, score: float | None
) -> None:
    attempts(store, 0, *ends)
    assert shown(store) == [(0, attempt, state, score)]


def test_an_acknowledged_result_is_never_undone_by_a_rescue(store: Store) -> None:
    attempts(store, 0, ("done", 0.5), "running")
    reader = Study(store, "spam")
    assert reader.best().score == 0.5
    late = Store.over(store.backend, FakeMachine(30))
    assert take(late, POINT, study="spam", trial=0, goal="min", attempt=2) is None, "settled"
    assert reader.best().score == 0.5


def seen(attempt: int, state: str | None, again: bool = False) -> Seen:
    if state is None:
        return Seen(0, attempt, None, 0.0)
    record = TrialRecord(
        v=1, kind="trial", study="s", n=0, attempt=attempt, state=state, nonce="a", point={}, again=again  # type: ignore[arg-type]
    )  # fmt: skip
    return Seen(0, attempt, record, 0.0)


ENDS = st.tuples(st.sampled_from([*STATES, None]), st.booleans(), st.booleans())  # state, again, released


@given(st.lists(ENDS, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_fold_agrees_with_the_design_in_any_order(ends: list[tuple[str | None, bool, bool]], random: Any) -> None:
    all_seen = [seen(attempt, state, again and state == "failed") for attempt, (state, again, _) in enumerate(ends)]
    released = {attempt for attempt, (_, _, free) in enumerate(ends) if free}
    shuffled = list(all_seen)
    random.shuffle(shuffled)
    found = fold(shuffled, released)

    def final(one: Seen) -> bool:
        return one.state == "failed" and not (one.record and one.record.again) and one.attempt not in released

    settling = (
        [one for one in all_seen if one.state == "done"]
        or [one for one in all_seen if one.state == "pruned"]
        or [one for one in all_seen if final(one)]
    )
    assert found.settled == bool(settling)
    assert found.counts == (settling or all_seen)[-1]
    assert found.top == all_seen[-1]
    assert found.waiting == (not settling and (all_seen[-1].closed or all_seen[-1].attempt in released))


@given(st.lists(ENDS, min_size=1, max_size=4), ENDS)
def test_once_settled_a_later_attempt_does_not_unsettle_it(
    ends: list[tuple[str | None, bool, bool]], later: tuple[str | None, bool, bool]
) -> None:
    all_seen = [seen(attempt, state) for attempt, (state, _, _) in enumerate(ends)]
    before = fold(all_seen)
    after = fold([*all_seen, seen(len(ends), later[0], later[1])])
    if before.settled:
        assert after.settled
        rank = {"done": 3, "pruned": 2, "failed": 1}
        assert rank[after.state] >= rank[before.state]


# reading


def finish(store: Store, scores: list[float | str]) -> None:
    for n, score in enumerate(scores):
        attempts(store, n, ("done", score) if isinstance(score, float) else score)


def test_the_best_and_the_top(store: Store) -> None:
    finish(store, [3.0, 1.0, "failed", 2.0, 1.0, "running", ("pruned"), 0.5])
    study = Study(store, "spam")
    assert (study.goal, study.best().n) == ("min", 7)
    assert [r.n for r in study.top(3)] == [7, 1, 4]
    assert [r.n for r in study.top(2)] == [7, 1], "ties by the lower index"
    assert [r.n for r in study.top(100)] == [7, 1, 4, 3, 0]
    assert study.top(0) == []
    with pytest.raises(UsageError, match="negative"):
        study.top(-1)


def test_the_best_of_a_maximum() -> None:
    store = store_over()
    study = Study(store, "spam", SPACE, goal="max", sampler="random", seed=0)
    for trial in study.trials(5):
        with trial:
            trial.done([1.0, 5.0, 2.0, 5.0, 4.0][trial.n])
    assert [r.n for r in study.top(5)] == [1, 3, 4, 2, 0]


def test_the_fields_of_a_result(store: Store) -> None:
    study = Study(store, "spam", SPACE, goal="min", me="node3")
    for trial in study.trials(1):
        with trial:
            trial.report(0.5)
            assert isinstance(store.machine, FakeMachine)
            store.machine.clock.now += 12.5
            trial.done()
    (result,) = study.results()
    assert (result.n, result.attempt, result.state, result.score, result.took) == (0, 0, "done", 0.5, 12.5)
    assert (result.who.me, result.who.host, result.who.pid) == ("node3", "fake", 1)
    assert (result.reason, result.started) == (None, "2027-01-15T08:16:40.000Z")
    assert SPACE.check(result.point) == result.point
    result.point["x"] = 9.0
    assert study.results()[0].point["x"] != 9.0, "a result is the caller's own"


def test_results_by_state(store: Store) -> None:
    finish(store, [3.0, "failed", "running", "interrupted", "pruned", 1.0])
    study = Study(store, "spam")
    assert [r.n for r in study.results()] == list(range(6))
    assert {state: [r.n for r in study.results(state)] for state in STATES} == {
        "done": [0, 5], "failed": [1], "running": [2], "interrupted": [3], "pruned": [4],
    }  # fmt: skip
    for wrong in ("finished", "", "DONE"):
        with pytest.raises(UsageError, match="running, done, pruned, failed, interrupted"):
            study.results(wrong)


def test_without_a_result_the_counts_are_told(store: Store) -> None:
    study = Study(store, "spam", SPACE, goal="min")
    with pytest.raises(NoResult, match=r"no done trial yet \(no trials\)"):
        study.best()
    finish(store, ["failed", "running", "failed", "interrupted"])
    with pytest.raises(NoResult, match="1 running, 2 failed, 1 interrupted"):
        study.best()
    assert study.top(3) == []
    study.attach({"x": 0.5}, 0.25)
    with pytest.raises(NoResult, match=r"1 interrupted\); attached results \(1\) are no trials of it"):
        study.best()


def test_records_that_disagree_about_the_goal_need_one_told(store: Store) -> None:
    for n, goal in enumerate(["min", "max"]):
        take(store, POINT, study="spam", trial=n, goal=goal)  # type: ignore[arg-type]
        report(store, POINT, [float(n)], study="spam", trial=n, state="done")
    with pytest.raises(UsageError, match=r"different goals.*goal="):
        Study(store, "spam").best()
    assert Study(store, "spam", goal="max").best().n == 1


@pytest.mark.parametrize("order", list(itertools.permutations([0, 1, 2])))
def test_results_do_not_depend_on_who_was_first(store: Store, order: tuple[int, ...]) -> None:
    for n in order:
        attempts(store, n, ("done", float(n)))
    assert shown(store) == [(0, 0, "done", 0.0), (1, 0, "done", 1.0), (2, 0, "done", 2.0)]
