"""take and report: the rules of the design one by one."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parts import FakeMachine, at_once, body_at, plant, store_over

from dibs import Float, RefusedError, Space, Store, Study, UsageError
from dibs.backend import MemoryBackend, WrapperBackend
from dibs.errors import AlreadyClosed, NotOwner, Superseded
from dibs.space._values import typed
from dibs.study import Taken, _functions, finished, report, take
from dibs.study._view import view_of

POINT = {"x": 0.5}
SPACE = Space(x=Float(0, 1))


@pytest.fixture
def store() -> Store:
    return store_over()


def other(store: Store, pid: int = 2) -> Store:
    """The same store seen by another machine."""
    return Store.over(store.backend, FakeMachine(pid))


def took(store: Store, trial: int = 0, point: dict[str, Any] = POINT, **terms: Any) -> Taken | None:
    return take(store, point, study="spam", trial=trial, goal="min", **terms)


def told(
    store: Store, curve: Any, state: str = "done", trial: int = 0, point: dict[str, Any] = POINT, **more: Any
) -> bool:
    return report(store, point, curve, study="spam", trial=trial, state=state, **more)


def record(store: Store, n: int = 0, attempt: int = 0) -> dict[str, Any]:
    return body_at(store, store.keys("spam").attempt(n, attempt))


def ended(store: Store, state: str, trial: int = 0, **more: Any) -> None:
    assert took(store, trial) is not None
    told(store, [1.0], state, trial, **more)


# take


def test_what_a_claim_writes(store: Store) -> None:
    taken = take(store, {"x": 0.5, "t": (1, "a")}, study="spam", trial=3, goal="min", me="node3")
    assert taken is not None
    assert (taken.attempt, taken.point) == (0, {"x": 0.5, "t": (1, "a")})
    body = record(store, 3)
    assert (body.pop("started_at")[-1], len(body.pop("nonce")), body.pop("who")["me"]) == ("Z", 32, "node3")
    assert body == {
        "v": 1, "kind": "trial", "study": "spam", "n": 3, "attempt": 0, "of": 4, "state": "running", "goal": "min",
        "seed": taken.seed, "point": {"x": 0.5, "t": {"tuple": [1, "a"]}}, "wish": None, "saw": None, "contract": None,
        "files": {}, "beat_s": 60.0,
    }  # fmt: skip


def test_at_most_one_gets_a_trial(store: Store) -> None:
    first = took(store)
    assert first == (0, POINT, record(store)["seed"])
    assert took(store) is None
    assert took(other(store)) is None
    for trial in range(5, 10):
        answers = at_once([lambda pid=pid, trial=trial: took(other(store, pid), trial) for pid in range(2, 10)])
        assert sum(answer is not None for answer in answers) == 1


def test_threads_of_one_process_share_out_the_trials(store: Store) -> None:
    answers = at_once([lambda: [trial for trial in range(12) if took(store, trial)] for _ in range(6)])
    assert sorted(trial for mine in answers for trial in mine) == list(range(12))


def test_it_writes_no_definition_and_one_record(store: Store) -> None:
    took(store)
    assert [entry.key for entry in store.backend.list("")] == [store.keys("spam").attempt(0, 0)]


@pytest.mark.parametrize(("of", "written"), [(None, 8), (100, 100), (np.int64(100), 100), (3, 8), (0, 8)])
def test_of_is_the_number_wanted_and_at_least_this_one(store: Store, of: Any, written: int) -> None:
    took(store, 7, of=of)
    assert record(store, 7)["of"] == written


def test_the_seed_is_a_function_of_the_studys_seed_and_the_index(store: Store) -> None:
    seeds = [took(store, n).seed for n in range(3)]  # type: ignore[union-attr]
    assert len(set(seeds)) == 3
    assert seeds == [took(store_over(), n).seed for n in range(3)]  # type: ignore[union-attr]
    seeded = store_over()
    Study(seeded, "spam", SPACE, goal="min", seed=7)
    theirs = store_over()
    Study(theirs, "spam", SPACE, goal="min", seed=7)
    assert took(seeded) == took(theirs)
    assert took(seeded, 1).seed != seeds[1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("state", "attempt"),
    [("running", None), ("done", None), ("pruned", None), ("failed", None), ("interrupted", 1)],
)
def test_without_an_attempt_the_next_one_is_taken_where_anybody_may(
    store: Store, state: str, attempt: int | None
) -> None:
    took(store)
    if state != "running":
        told(store, [1.0], state)
    again = took(other(store), point={"x": 0.75})
    assert (again and again.attempt) == attempt


def test_a_failure_with_a_retry_left_is_taken_again(store: Store) -> None:
    ended(store, "failed")
    plant(store, store.keys("spam").attempt(0, 0), {**record(store), "again": True})
    again = took(other(store))
    assert again is not None
    assert again.attempt == 1


@pytest.mark.parametrize("state", ["running", "failed"])
def test_a_released_attempt_is_taken_again(store: Store, state: str) -> None:
    took(store)
    if state == "failed":
        told(store, [1.0], "failed")
    mine, theirs = other(store, 2), other(store, 3)
    assert took(mine) is None
    assert took(theirs) is None
    Study(mine, "spam", goal="min").view.notes.release(0, 0, None)
    for reader in (theirs, mine):  # whoever looked before sees it too; one of them gets it
        again = took(reader)
        assert (again is not None) == (reader is theirs)


@pytest.mark.parametrize("state", ["done", "pruned"])
def test_a_release_frees_nothing_that_is_done_or_pruned(store: Store, state: str) -> None:
    ended(store, state)
    Study(store, "spam").view.notes.release(0, 0, None)
    assert took(other(store)) is None


def test_attempt_k_needs_the_one_before_to_exist(store: Store) -> None:
    for attempt in (1, 2):
        with pytest.raises(UsageError, match=f"attempt {attempt} of trial 0 needs attempt {attempt - 1}"):
            took(store, attempt=attempt)
    took(store)
    with pytest.raises(UsageError, match="attempt 2 of trial 0 needs attempt 1"):
        took(other(store), attempt=2)
    assert took(other(store), attempt=1) is not None  # the caller decides that attempt 0 is lost
    assert took(other(store, 3), attempt=1) is None
    assert took(other(store, 3), attempt=2) is not None


def test_attempt_0_by_name(store: Store) -> None:
    assert took(store, attempt=0) is not None
    assert took(store, attempt=0) is None
    told(store, [1.0], "interrupted")
    assert took(store, attempt=0) is None


def test_no_attempt_of_a_settled_trial(store: Store) -> None:
    for trial, state in enumerate(["done", "pruned", "failed"]):
        ended(store, state, trial)
        assert took(store, trial, attempt=1) is None


def test_the_second_attempt_has_the_firsts_point_and_seed(store: Store) -> None:
    first = took(store, point={"x": 0.25})
    assert first is not None
    told(store, [], "interrupted", point={"x": 0.25})
    again = took(other(store), point={"x": 0.75})
    assert again == (1, {"x": 0.25}, first.seed)
    assert record(store, 0, 1)["point"] == {"x": 0.25}


def test_nothing_is_taken_in_a_stopped_study(store: Store) -> None:
    study = Study(store, "spam", SPACE, goal="min")
    ended(store, "interrupted", 1)
    study.stop()
    for reader in (store, other(store)):
        assert [took(reader, 0), took(reader, 1), took(reader, 1, attempt=1)] == [None, None, None]
    study.resume()
    assert took(other(store)) is not None


def test_a_claim_asks_for_no_notes_where_none_can_have_come() -> None:
    asked: list[str] = []

    class Asked(WrapperBackend):
        def _around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
            asked.append(key)
            return call()

    store = store_over(Asked(MemoryBackend()))
    for n in range(3):
        took(store, n)
    asked.clear()
    assert took(store, 3) is not None
    assert store.keys("spam").notes() not in asked
    view_of(other(store), "spam").notes.stop(None)
    assert took(store, 4) is None


def test_wishes_are_not_served(store: Store) -> None:
    study = Study(store, "spam", SPACE, goal="min")
    study.enqueue({"x": 0.125})
    assert took(store) is not None
    assert record(store)["wish"] is None
    study.view.refresh()
    assert list(study.view.wishes().values()) == [{"x": 0.125}]


def test_another_goal_than_the_studys_is_refused_before_any_claim(store: Store) -> None:
    Study(store, "spam", SPACE, goal="max")
    with pytest.raises(RefusedError, match=r"goal='max'.*'min'") as refused:
        took(store)
    assert (refused.value.field, refused.value.theirs, refused.value.ours) == ("goal", "max", "min")
    assert [entry.key for entry in store.backend.list("")] == ["study/spam/study.json"]


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ({"trial": -1}, "trial"), ({"trial": True}, "trial"), ({"trial": 1.0}, "trial"), ({"trial": "1"}, "trial"),
        ({"trial": None}, "trial"), ({"trial": 2**63}, "trials"), ({"me": 3}, "me"), ({"of": 2**63}, "trials"),
        ({"of": -1}, "of"), ({"of": "9"}, "of"), ({"of": 1.5}, "of"),
        ({"attempt": -1}, "attempt"), ({"attempt": "1"}, "attempt"), ({"attempt": True}, "attempt"),
        ({"goal": "MIN"}, "goal"), ({"goal": None}, "goal"), ({"study": ""}, "name"), ({"study": 3}, "name"),
        ({"point": None}, "point"), ({"point": [("x", 1)]}, "point"), ({"point": {1: 2}}, "point"),
        ({"point": {"x": [1]}}, "tuple"), ({"point": {"x": math.nan}}, "finite"), ({"point": {"x": object()}}, "point"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_claims_nothing(store: Store, terms: dict[str, Any], says: str) -> None:
    given = {"point": POINT, "study": "spam", "trial": 0, "goal": "min", **terms}
    with pytest.raises(UsageError, match=says):
        take(store, given.pop("point"), **given)
    assert list(store.backend.list("")) == []


def test_numpy_indexes_and_points(store: Store) -> None:
    taken = take(store, {"x": np.float32(0.5), "n": np.int64(3)}, study="spam", trial=np.int64(4), goal="min")  # type: ignore[arg-type]
    assert taken is not None
    assert typed(tuple(taken.point.values())) == typed((0.5, 3))
    report(store, {"x": np.float32(0.5), "n": np.int64(3)}, [1.0], study="spam", trial=np.int64(4), state="done")  # type: ignore[arg-type]
    assert record(store, 4)["state"] == "done"


@pytest.mark.parametrize(
    "value", [None, True, False, 1, 1.0, "1", 0, -0.0, (1, (2.0, "x", None)), (), "é\U0001f600", 2**62]
)
def test_a_value_comes_back_typed_through_a_record_on_disk(tmp_path: Path, value: Any) -> None:
    store = Store(tmp_path / "store")
    taken = take(store, {"x": value, "y": 1.0}, study="spam", trial=0, goal="min")
    assert taken is not None
    assert typed(taken.point["x"]) == typed(value)
    report(store, {"x": value, "y": 1.0}, [1.0], study="spam", trial=0, state="interrupted")
    fresh = Store(tmp_path / "store")
    again = take(fresh, {"x": "something else"}, study="spam", trial=0, goal="min")
    assert again is not None
    assert typed(again.point["x"]) == typed(value)
    report(fresh, again.point, [1.0], study="spam", trial=0, state="done")
    for reader in (fresh, Store(tmp_path / "store")):
        (point, score), = finished(reader, study="spam")  # fmt: skip
        assert typed(point["x"]) == typed(value)
        assert score == 1.0


# who may report


def test_only_the_process_that_took_it_reports(store: Store) -> None:
    took(store)
    with pytest.raises(NotOwner, match="not taken by this process"):
        told(store, [1.0], trial=1)
    with pytest.raises(NotOwner, match="not taken"):
        report(store, POINT, [1.0], study="ham", trial=0, state="done")
    with pytest.raises(NotOwner, match="not taken"):
        told(other(store), [1.0])
    assert record(store)["state"] == "running"


def test_only_the_latest_ends_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_functions, "REMEMBERED", 5)
    store, before = store_over(), len(_functions._taken)
    monkeypatch.setattr(_functions, "_ended", type(_functions._ended)())
    for n in range(20):
        take(store, {"x": n}, study="spam", trial=n, goal="min")
        if n != 3:  # this one is still held, however many end meanwhile
            report(store, {"x": n}, [1.0], study="spam", trial=n, state="done")
    assert len(_functions._taken) - before == 6
    with pytest.raises(AlreadyClosed):
        report(store, {"x": 19}, [1.0], study="spam", trial=19, state="done")
    with pytest.raises(NotOwner):
        report(store, {"x": 0}, [1.0], study="spam", trial=0, state="done")
    report(store, {"x": 3}, [1.0], study="spam", trial=3, state="done")
    assert len(finished(store, study="spam")) == 20


def test_a_store_opened_again_is_the_same_store(tmp_path: Path) -> None:
    took(Store(tmp_path / "store"))
    told(Store(tmp_path / "store"), [1.0])
    assert record(Store(tmp_path / "store"))["score"] == 1.0


@pytest.mark.parametrize("state", ["done", "pruned", "failed", "interrupted"])
def test_the_first_close_is_the_last_write(store: Store, state: str) -> None:
    ended(store, state)
    before = record(store)
    for later in ("running", "done", "failed"):
        with pytest.raises(AlreadyClosed, match=f"attempt 0 of trial 0 as {state}"):
            told(store, [0.1], later)
    assert record(store) == before


def test_after_the_close_the_next_attempt_can_be_taken_and_reported(store: Store) -> None:
    ended(store, "interrupted")
    again = took(store)
    assert again is not None
    told(store, [0.25])
    assert (record(store)["state"], record(store, 0, 1)["score"]) == ("interrupted", 0.25)


def test_removed_by_hand_and_claimed_anew_is_superseded(store: Store) -> None:
    took(store)
    store.backend.delete(store.keys("spam").attempt(0, 0))
    assert took(other(store)) is not None
    for state in ("done", "failed"):
        with pytest.raises(Superseded, match="claimed anew by"):
            told(store, [1.0], state)
    assert record(store)["state"] == "running"


def test_removed_by_hand_and_claimed_by_nobody_is_written_all_the_same(store: Store) -> None:
    took(store)
    store.backend.delete(store.keys("spam").attempt(0, 0))
    told(store, [1.0])
    assert record(store)["score"] == 1.0


def test_a_rescued_owner_learns_of_it_and_still_writes_its_own_end(store: Store) -> None:
    took(store)
    assert isinstance(store.machine, FakeMachine)
    store.machine.clock.now += 2
    assert told(store, [1.0], "running") is False
    assert took(other(store), attempt=1) is not None
    store.machine.clock.now += 2
    assert told(store, [1.0, 0.5], "running") is True
    told(store, [1.0, 0.5], "done")
    assert (record(store)["state"], record(store, 0, 1)["state"]) == ("done", "running")
    assert Study(store, "spam").best().attempt == 0


def test_a_taken_point_is_the_one_to_report(store: Store) -> None:
    took(store, point={"x": 0.25})
    with pytest.raises(UsageError, match=r"has the point \{'x': 0.25\}: train what take returned"):
        told(store, [1.0], point={"x": 0.5})
    with pytest.raises(RefusedError, match="taken with goal='min'"):
        told(store, [1.0], point={"x": 0.25}, goal="max")
    assert record(store)["state"] == "running"
    told(store, [1.0], point={"x": 0.25}, goal="min")


FORKED = """
import os, signal, sys
from threading import Event, Thread
from dibs.errors import NotOwner
from dibs.store import Store
from dibs.study import report, take
from dibs.study._functions import _taken
store = Store(sys.argv[1])
for n in range(2):
    assert take(store, {"x": 1}, study="spam", trial=n, goal="min")
mine, held, over = next(a for a in _taken.values() if a.n == 0), Event(), Event()
def beat():  # what a thread of the parent's may be at when it forks
    with mine.lock:
        held.set()
        over.wait()
beating = Thread(target=beat)
beating.start()
held.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    for state in ("running", "done"):
        try:
            report(store, {"x": 1}, [9.0], study="spam", trial=0, state=state)
        except NotOwner as told:
            print(type(told).__name__, "forked" in str(told), flush=True)
    assert take(store, {"x": 1}, study="spam", trial=1, goal="min") is None
    assert take(store, {"x": 1}, study="spam", trial=2, goal="min")
    report(store, {"x": 1}, [2.0], study="spam", trial=2, state="done")
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
over.set()
beating.join()
report(store, {"x": 1}, [1.0], study="spam", trial=0, state="done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_does_not_own_what_its_parent_took(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "store")], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["NotOwner True"] * 2
    results = Study(Store(tmp_path / "store"), "spam").results()
    assert [(r.n, r.state, r.score) for r in results] == [(0, "done", 1.0), (1, "running", None), (2, "done", 2.0)]
