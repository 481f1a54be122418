"""enqueue, attach, stop, resume, retry, and how many trials there are: each said once, for all."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.parts import FakeMachine, at_once, body_at, store_over

from dibs import Choice, Float, Int, NotFound, Space, SpaceError, Store, Study, UsageError
from dibs._canon import digest
from dibs.backend import MemoryBackend, WrapperBackend
from dibs.study import report, take
from dibs.study._claimer import Idle

SPACE = Space(x=Float(0, 1), k=Int(0, 9), opt=Choice("adam", "sgd"), momentum=Float(0, 1, when={"opt": ["sgd"]}))
WISH = {"x": 0.5, "k": 3, "opt": "adam"}


@pytest.fixture
def store() -> Store:
    store = store_over()
    Study(store, "spam", SPACE, goal="min", sampler="random", seed=1)
    return store


def worker(store: Store, pid: int = 2) -> Study:
    """The same study on another machine."""
    return Study(Store.over(store.backend, FakeMachine(pid)), "spam")


def run(study: Study, n: int, ends: Any = None) -> list[tuple[int, int, dict[str, Any]]]:
    """Claim until nothing is left below n; ``ends``: trial index -> how it ends, done otherwise."""
    seen = []
    for trial in study.trials(n):
        with trial:
            seen.append((trial.n, trial.attempt, trial.point))
            match (ends or {}).get(trial.n, "done"):
                case "failed":
                    trial.fail("said so")
                case "interrupted":
                    trial.interrupt("said so")
                case _:
                    trial.done(float(trial.n))
    return seen


def records(store: Store) -> list[dict[str, Any]]:
    keys = store.keys("spam")
    return [body_at(store, entry.key) for p in (keys.trials(), f"{keys.base}again/") for entry in store.backend.list(p)]


# enqueue


def test_a_wish_is_a_note_and_nothing_else(store: Store) -> None:
    before = {entry.key for entry in store.backend.list("")}
    assert worker(store).enqueue(WISH) is True
    key = store.keys("spam").wish(digest(WISH))
    assert {entry.key for entry in store.backend.list("")} - before == {key}
    body = body_at(store, key)
    assert (body["kind"], body["note"], body["study"], body["point"]) == ("note", "wish", "spam", WISH)


def test_a_point_is_wished_once_whoever_and_however_often(store: Store) -> None:
    same = [WISH, {"k": np.int64(3), "opt": "adam", "x": np.float64(0.5)}, dict(reversed(WISH.items()))]
    answers = at_once([partial(worker(store, pid).enqueue, same[pid % 3]) for pid in range(2, 8)])
    assert answers.count(True) == 1
    assert run(worker(store), 4)[0][2] == WISH
    assert worker(store).enqueue(WISH) is False, "once for the whole study, served or not"
    assert sum(record["wish"] is not None for record in records(store)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_many_workers_serve_a_wish_once(store: Store, seed: int) -> None:
    wishes = [{**WISH, "k": k} for k in range(5)]
    for wish in wishes:
        worker(store).enqueue(wish)
    at_once([partial(run, worker(store, pid), 12) for pid in range(2, 6)])
    served = [record["point"] for record in records(store) if record["wish"]]
    assert sorted(served, key=lambda point: point["k"]) == wishes
    assert sorted(record["n"] for record in records(store)) == list(range(12))


def test_a_wish_that_somebody_serves_just_now_is_not_served_again(store: Store) -> None:
    class Overtaken(WrapperBackend):
        """Somebody else serves the wish between our look and our claim."""

        def create(self, key: str, draft: Any) -> Any:
            if key == store.keys("spam").attempt(0, 0) and store.backend.read(key) is None:
                for trial in worker(store, 3).trials(1):
                    trial.done(0.5)
            return super().create(key, draft)

    worker(store).enqueue(WISH)
    ours = Study(Store.over(Overtaken(store.backend), FakeMachine(4)), "spam")
    seen = run(ours, 3)
    assert [n for n, _, _ in seen] == [1, 2]
    assert WISH not in [point for _, _, point in seen]
    assert [record["n"] for record in records(store) if record["wish"]] == [0]


def test_wishes_are_served_before_the_sampler_is_asked_from_the_lowest_free_index(store: Store) -> None:
    asked = [point for _, _, point in run(worker(store), 2)]
    worker(store).enqueue(WISH)
    worker(store).enqueue({**WISH, "k": 4})
    later = run(worker(store), 6)
    assert [n for n, _, _ in later] == [2, 3, 4, 5]
    assert {later[0][2]["k"], later[1][2]["k"]} == {3, 4}
    assert WISH not in asked
    carried = {record["n"]: record["wish"] for record in records(store)}
    assert [n for n in carried if carried[n]] == [2, 3]
    assert {carried[2], carried[3]} == {digest(WISH), digest({**WISH, "k": 4})}


def test_a_wish_without_room_is_queued_and_served_when_n_grows(store: Store) -> None:
    run(worker(store), 3)
    study = worker(store)
    study.enqueue(WISH)
    assert run(study, 3) == []
    assert study.claimer(3).step() == Idle("queued")
    assert study.view.wishes() == {digest(WISH): WISH}
    assert run(worker(store, 3), 4) == [(3, 0, WISH)]
    study.view.refresh()
    assert study.view.wishes() == {}
    assert study.claimer(4).step() == Idle("settled")


def test_a_wish_keeps_its_trial_through_interruptions(store: Store) -> None:
    worker(store).enqueue(WISH)
    for trial in worker(store).trials(2):
        trial.interrupt("said so")
        break
    assert run(worker(store, 3), 2)[0] == (0, 1, WISH)
    served = [record for record in records(store) if record["wish"] == digest(WISH)]
    assert [(record["n"], record["attempt"], record["point"]) for record in served] == [(0, 0, WISH), (0, 1, WISH)]


def test_a_wish_whose_record_was_removed_by_hand_is_served_again(store: Store) -> None:
    worker(store).enqueue(WISH)
    run(worker(store), 1)
    store.backend.delete(store.keys("spam").attempt(0, 0))
    assert run(worker(store, 3), 1) == [(0, 0, WISH)]


@pytest.mark.parametrize(
    "point",
    [
        {}, {"x": 0.5}, {**WISH, "x": 2.0}, {**WISH, "k": 1.5}, {**WISH, "opt": "rmsprop"}, {**WISH, "more": 1},
        {**WISH, "momentum": 0.5}, {**WISH, "opt": "sgd"}, {**WISH, "x": float("nan")}, {**WISH, "x": "0.5"}, None, [1],
    ],
)  # fmt: skip
def test_a_point_outside_the_space_is_refused_and_nothing_is_written(store: Store, point: Any) -> None:
    before = list(store.backend.list(""))
    with pytest.raises(SpaceError):
        worker(store).enqueue(point)
    with pytest.raises(SpaceError):
        worker(store).attach(point, 1.0)
    assert list(store.backend.list("")) == before


# attach


def test_an_attached_result_is_history_without_an_index(store: Store) -> None:
    study = worker(store)
    assert study.attach(WISH, 0.125) is True
    assert study.attach({**WISH, "k": np.int64(3)}, np.float32(0.125)) is False
    assert study.attach(WISH, 0.25) is True
    assert study.results() == []
    run(worker(store, 3), 2)
    history = worker(store, 4).finished()
    assert list(history.n) == [-1, -1, 0, 1]
    assert sorted(score for _, score in history[:2]) == [0.125, 0.25]
    assert [point for point, _ in history[:2]] == [WISH, WISH]
    assert [result.n for result in study.results()] == [0, 1]


@pytest.mark.parametrize("score", [None, "0.5", float("nan"), float("inf"), True, [1.0]])
def test_only_a_number_can_be_attached(store: Store, score: Any) -> None:
    with pytest.raises(UsageError, match="score"):
        worker(store).attach(WISH, score)
    assert list(store.backend.list(store.keys("spam").given)) == []


# stop and resume


def test_stopped_means_no_new_claims_and_running_ones_finish(store: Store) -> None:
    study = worker(store)
    trials = study.trials(5)
    trial = next(trials)
    assert worker(store, 3).stop() is True
    assert worker(store, 4).stop() is False
    trial.done(1.0)
    assert next(trials, None) is None
    assert study.claimer(5).step() == Idle("stopped")
    assert worker(store, 5).best().n == 0
    assert worker(store, 4).resume() is True
    assert worker(store, 3).resume() is False
    assert [n for n, _, _ in run(study, 3)] == [1, 2]


def test_stopping_and_resuming_again_and_again(store: Store) -> None:
    study, other = worker(store), worker(store, 3)
    for k in range(3):
        assert (study.stop(), other.stop()) == (True, False)
        assert run(other, 5) == []
        assert (other.resume(), study.resume()) == (True, False)
        assert len(run(other, k + 1)) == 1
    keys = [entry.key.rpartition("note/")[2] for entry in store.backend.list(store.keys("spam").notes())]
    assert sorted(keys) == [f"{kind}/{k}.json" for kind in ("go", "stop") for k in range(3)]


def test_all_who_stop_at_once_have_stopped_it_once(store: Store) -> None:
    answers = at_once([worker(store, pid).stop for pid in range(2, 8)])
    assert answers.count(True) == 1
    assert worker(store).resume() is True
    assert len(run(worker(store), 1)) == 1


def test_resume_of_a_study_that_runs_says_no(store: Store) -> None:
    assert worker(store).resume() is False
    assert list(store.backend.list(store.keys("spam").notes())) == []


# retry


def test_retry_frees_exactly_the_failed(store: Store) -> None:
    first = run(worker(store), 5, {1: "failed", 3: "failed"})
    take(store, WISH, study="spam", trial=5, goal="min")
    take(store, WISH, study="spam", trial=6, goal="min")
    report(store, WISH, [1.0], study="spam", trial=6, state="pruned")
    study = worker(store)
    assert run(study, 5) == []
    assert study.retry() == [1, 3]
    assert study.retry() == [], "freed already"
    again = run(worker(store, 3), 5)
    assert again == [(n, 1, point) for n, _, point in first if n in (1, 3)]
    states = {result.n: (result.state, result.attempt) for result in worker(store, 4).results()}
    assert states == {
        0: ("done", 0), 1: ("done", 1), 2: ("done", 0), 3: ("done", 1), 4: ("done", 0), 5: ("running", 0), 6: ("pruned", 0),
    }  # fmt: skip
    assert study.retry() == []


def test_retry_of_one_trial(store: Store) -> None:
    run(worker(store), 4, {1: "failed", 3: "failed"})
    study = worker(store)
    assert study.retry(2) == []
    with pytest.raises(NotFound, match="no trial 99"):
        study.retry(99)
    assert study.retry(3) == [3]
    assert [(n, attempt) for n, attempt, _ in run(study, 4)] == [(3, 1)]


def test_a_trial_that_fails_again_can_be_retried_again(store: Store) -> None:
    run(worker(store), 1, {0: "failed"})
    for attempt in (1, 2, 3):
        assert worker(store).retry() == [0]
        assert [at for _, at, _ in run(worker(store), 1, {0: "failed"})] == [attempt]
    assert worker(store).results()[0].attempt == 3


def test_who_folded_the_trial_before_sees_the_retry_of_another(store: Store) -> None:
    run(worker(store), 2, {0: "failed"})
    watcher = worker(store, 3)
    assert watcher.results("failed")[0].n == 0
    assert run(watcher, 2) == []
    watcher.stop()  # refreshes the notes on its own
    assert worker(store, 4).retry() == [0]
    watcher.resume()
    assert [(n, attempt) for n, attempt, _ in run(watcher, 2)] == [(0, 1)]


def test_all_who_retry_at_once_free_it_once(store: Store) -> None:
    run(worker(store), 1, {0: "failed"})
    answers = at_once([worker(store, pid).retry for pid in range(2, 7)])
    assert [0] in answers
    ran = at_once([partial(run, worker(store, pid), 1) for pid in range(2, 7)])
    assert sum(len(mine) for mine in ran) == 1
    assert len(records(store)) == 2


# how many


def test_n_is_the_largest_anybody_asked_for(store: Store) -> None:
    run(worker(store), 2)
    assert worker(store).results()[-1].n == 1
    run(worker(store, 3), 5)
    assert run(worker(store), 3) == []
    study = worker(store)
    study.view.refresh()
    assert study.view.of == 5
    assert [record["of"] for record in records(store)] == [2, 2, 5, 5, 5]
    take(store, WISH, study="spam", trial=5, goal="min", of=40)
    study.view.refresh()
    assert study.view.of == 40
    assert [result.n for result in study.results()] == list(range(6)), "and no index above what was claimed"


def test_failed_and_pruned_trials_count(store: Store) -> None:
    assert len(run(worker(store), 4, {0: "failed", 1: "failed"})) == 4
    assert run(worker(store), 4) == []


def test_a_worker_takes_up_only_what_is_below_its_own_n(store: Store) -> None:
    run(worker(store), 5, {3: "failed"})
    store.backend.delete(store.keys("spam").attempt(4, 0))
    worker(store).retry()
    assert run(worker(store, 3), 3) == []
    assert [(n, attempt) for n, attempt, _ in run(worker(store, 4), 4)] == [(3, 1)]
    assert [n for n, _, _ in run(worker(store, 5), 5)] == [4]


def test_none_asked_for_is_none_claimed(store: Store) -> None:
    assert run(worker(store), 0) == []
    for n in (-1, 1.5, True, "3", None):
        with pytest.raises(UsageError, match="number of trials"):
            worker(store).trials(n)  # type: ignore[arg-type]
    assert records(store) == []


@pytest.mark.parametrize("bucket", [False, True], ids=["folder", "bucket"])
def test_what_this_process_said_counts_for_it_at_once(bucket: bool) -> None:
    """Where a listing is a request, what was not there is looked for now and then only; but not what one wrote oneself."""
    study = Study(store_over(MemoryBackend(conditional_replace=bucket)), "s", Space(x=Float(0, 1)), goal="min", seed=0)
    for trial in study.trials(2):
        trial.done(0.5)
    assert study.enqueue({"x": 0.25})
    assert study.run(lambda trial: 1.0, 2, progress=False).why == "queued"
    assert study.attach({"x": 0.75}, -1.0)
    assert -1.0 in [score for _, score in study.finished()]
    assert study.stop()
    assert study.run(lambda trial: 1.0, 3, progress=False).why == "stopped"
    assert study.resume()
    assert study.run(lambda trial: trial.point["x"], 3, progress=False).why == "settled"
    assert study.results()[2].point == {"x": 0.25}
