"""What an asker had seen is enough to show it again: whoever replays a trial gets the same point."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
from tests.parts import FakeMachine, plant, store_over

from dibs import Float, NotFound, Random, Space, Store, Study
from dibs._canon import digest
from dibs.backend import MemoryBackend
from dibs.record import TrialRecord
from dibs.search import History, _sampler
from dibs.study import take
from dibs.study._attempt import Attempt
from dibs.study._definition import read_definition
from dibs.study._given import FEW
from dibs.study._replay import replay
from dibs.study._saw import LONGEST, rows_of, saw_of
from dibs.study._scoring import Attached
from dibs.study._view import view_of

SPACE = Space(x=Float(0, 1))


class Echo(Random):
    """Draws from all it was shown: another history is another point."""

    name: ClassVar[str] = "tests-echo"
    needs_history: ClassVar[bool] = True

    def ask(self, space: Space, n: int, history: Iterable[Any] = ()) -> dict[str, Any]:
        shown = History.coerce(history)
        rows = zip(
            shown.n.tolist(), shown.state.tolist(), shown.step.tolist(), shown.score.tolist(), shown.points, strict=True
        )
        said = [[str(part) for part in row] for row in rows]
        return {"x": int(digest([n, said])[:8], 16) / 2**32}


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as a test runs: it is made from its name, as those of this package are."""
    monkeypatch.setitem(_sampler._KNOWN, Echo.name, Echo)


def worker(bucket: MemoryBackend, pid: int) -> Study:
    return Study(store_over(bucket, FakeMachine(pid)), "s", SPACE, goal="min", seed=0, sampler=Echo(), stale_s=600)


def claimed(study: Study, trials: int = 30) -> Attempt:
    found = study.claimer(trials).step()
    assert isinstance(found, Attempt)
    return found


def replayed(bucket: MemoryBackend, n: int) -> Any:
    """By somebody who comes by later and knows nothing."""
    store = store_over(bucket, FakeMachine(99))
    view = view_of(store, "s")
    view.refresh()
    return replay(view, read_definition(store, "s"), n)


def a_lively_study(bucket: MemoryBackend) -> int:
    """Two workers, all states, attached results, a wish, a retried failure, a rescued trial; how many trials."""
    one, two = worker(bucket, 1), worker(bucket, 2)
    one.attach({"x": 0.25}, 3.0)
    held = [claimed(one), claimed(two)]
    claimed(one).close("done", score=0.5, step=3)
    claimed(two).close("failed", reason="no")
    one.attach({"x": 0.75}, 2.0)
    claimed(one).close("pruned", score=0.9, step=1)
    claimed(two).close("failed", reason="once", again=True)
    claimed(one).close("interrupted", reason="SIGTERM")
    claimed(two).close("done", score=0.1)
    one.enqueue({"x": 0.125})
    claimed(two).close("done", score=0.2)
    one.retry()
    claimed(two).close("done", score=0.4)
    claimed(one)
    held[0].close("done", score=0.3)
    claimed(two)
    held[1].close("done", score=0.7)
    last = claimed(one)
    return last.n + 1


@pytest.mark.parametrize("conditional", [False, True])
def test_every_point_comes_out_again(conditional: bool) -> None:
    bucket = MemoryBackend(conditional_replace=conditional)
    count = a_lively_study(bucket)
    said = {n: replayed(bucket, n) for n in range(count)}
    wished = [n for n, answer in said.items() if answer.matches is None]
    assert len(wished) == 1  # a bucket is asked for new parts of a study now and then only; who wished knows of it
    assert all("wished" in said[n].said for n in wished)
    assert all(answer.matches for n, answer in said.items() if n not in wished), said
    assert count > 8


def with_trial_8(**fields: Any) -> MemoryBackend:
    """A lively study, of whose trial 8 somebody edited the record."""
    bucket = MemoryBackend()
    a_lively_study(bucket)
    store = store_over(bucket, FakeMachine(98))
    key = store.keys("s").attempt(8, 0)
    there = bucket.read(key)
    assert there is not None
    plant(store, key, {**json.loads(there.data), **fields})
    return bucket


def test_another_sequence_of_points_is_told() -> None:
    bucket = with_trial_8(point={"x": 0.5})
    answer = replayed(bucket, 8)
    assert answer.matches is False
    assert answer.point != {"x": 0.5}


def test_what_is_patchy_leaves_a_digest() -> None:
    rows: list[Any] = [(2 * n, {"x": 0.5}, 0.5, "done", None) for n in range(LONGEST + 2)]
    saw = saw_of(History(rows), {})
    assert set(saw) == {"to", "digest"}
    assert saw == saw_of(History(rows), {})
    assert saw != saw_of(History(rows[:-2] + rows[-1:]), {})
    with pytest.raises(NotFound, match="too patchy"):
        rows_of(saw, lambda n, attempt: None, lambda name: None)


def test_a_whole_history_is_two_numbers() -> None:
    rows: list[Any] = [(n, {"x": 0.5}, 0.5, "done", None) for n in range(10_000)]
    assert saw_of(History(rows), {}) == {"to": 10_000, "not": [], "running": [], "attempts": {}}
    assert saw_of(History(), {}) == {"to": 0, "not": [], "running": [], "attempts": {}}


def test_only_what_was_seen_is_in_it() -> None:
    rows: list[Any] = [
        (-1, {"x": 0.1}, 0.1, "done", None), (0, {"x": 0.2}, 0.2, "done", None), (1, {"x": 0.3}, None, "running", None),
        (3, {"x": 0.4}, 0.4, "pruned", 2), (5, {"x": 0.5}, None, "running", None),
    ]  # fmt: skip
    saw = saw_of(History(rows), {3: 2, 5: 1, 9: 4}, ["abc.json"])
    assert saw == {
        "to": 4, "not": [2], "running": [1, 5], "attempts": {"3": 2, "5": 1}, "given": ["abc.json"]
    }  # fmt: skip
    points = {0: 0.2, 1: 0.3, 3: 0.4, 5: 0.5}
    asked: list[tuple[int, int]] = []

    def record(n: int, attempt: int) -> TrialRecord:
        asked.append((n, attempt))
        state: Any = {1: "running", 3: "pruned"}.get(n, "done")
        return TrialRecord(
            1, "trial", "s", n, attempt, state, "0", {"x": points[n]}, score=points[n], step=2 if n == 3 else None
        )

    again = rows_of(saw, record, lambda name: Attached({"x": 0.1}, 0.1))
    assert History(again) == History(rows)
    assert asked == [(0, 0), (1, 0), (3, 2), (5, 1)]


@pytest.mark.parametrize(
    "saw",
    [
        {"to": 10**18, "not": [], "running": [], "attempts": {}}, {"to": -1}, {"to": True}, {}, 7, "all", [],
        {"to": 2, "not": 3, "running": [], "attempts": {}}, {"to": 2, "not": [], "running": [{}], "attempts": {}},
        {"to": 2, "not": [], "running": [], "attempts": []}, {"to": 2, "not": [], "running": [], "attempts": {"0": "x"}},
        {"to": 2, "not": [], "running": [1.5], "attempts": {}},
    ],
)  # fmt: skip
def test_a_record_that_lies_costs_a_sentence(saw: Any) -> None:
    bucket = with_trial_8(saw=saw)
    answer = replayed(bucket, 8)
    assert answer.matches is None
    assert answer.said


def test_what_is_lacking_is_named() -> None:
    answer = replayed(with_trial_8(saw={"to": 2, "not": [], "running": [7_000], "attempts": {}}), 8)
    assert answer.matches is None
    assert "attempt 0 of trial 7000, which its asker had seen, does not read" in answer.said


def test_a_loop_of_ones_own_records_nothing() -> None:
    bucket = MemoryBackend()
    worker(bucket, 1)
    store: Store = store_over(bucket, FakeMachine(3))
    assert take(store, {"x": 0.5}, study="s", trial=0, goal="min", of=5)
    assert "loop of its owner's own" in replayed(bucket, 0).said
    with pytest.raises(NotFound):
        replayed(bucket, 3)


def test_a_sampler_without_history_needs_nothing_to_be_asked_again() -> None:
    bucket = MemoryBackend()
    study = Study(store_over(bucket, FakeMachine(1)), "s", SPACE, goal="min", seed=0, sampler="sobol")
    assert claimed(study).n == 0
    assert claimed(study).n == 1
    there = bucket.read(study.store.keys("s").attempt(1, 0))
    assert there is not None
    assert json.loads(there.data)["saw"] is None
    assert replayed(bucket, 1).matches


@pytest.mark.parametrize("many", [FEW - 1, FEW, FEW + 1, 2 * LONGEST])
def test_a_fork_of_many_results_can_be_asked_again_and_says_so_when_there_are_others(many: int) -> None:
    bucket = MemoryBackend()
    study = worker(bucket, 1)
    for k in range(many):
        study.attach({"x": k / many}, float(k))
    fork = study.fork("t")
    for trial in fork.trials(4):
        with trial:
            trial.done(0.5)
    found = [json.loads(bucket.read(e.key).data)["saw"]["given"] for e in bucket.list("study/t/trial/")]  # type: ignore[union-attr]
    assert [len(given) for given in found] == [many if many <= FEW else 2] * 4

    def again(n: int) -> Any:
        store = store_over(bucket, FakeMachine(99))
        view = view_of(store, "t")
        view.refresh()
        return replay(view, read_definition(store, "t"), n)

    assert [again(n).matches for n in range(4)] == [True] * 4
    fork.attach({"x": 0.5}, -1.0)
    for trial in fork.trials(5):
        with trial:
            trial.done(0.5)
    assert again(4).matches is True, "what was attached meanwhile is seen"
    assert again(0).matches is (True if many <= FEW else None)
    assert (
        many <= FEW
        or again(0).said == f"its asker had seen {many} attached results, and now there are others: {many + 1} of them"
    )


@pytest.mark.parametrize(
    "given", [{}, {"count": 3}, {"digest": "x"}, {"count": None, "digest": 1}, {"count": 1, "digest": [1]}]
)
def test_a_hostile_word_about_attached_results_costs_a_sentence(given: Any) -> None:
    bucket = MemoryBackend()
    a_lively_study(bucket)
    key = store_over(bucket).keys("s").attempt(8, 0)
    body = json.loads(bucket.read(key).data)  # type: ignore[union-attr]
    plant(store_over(bucket), key, {**body, "saw": {**body["saw"], "given": given}})
    assert replayed(bucket, 8).matches is None
