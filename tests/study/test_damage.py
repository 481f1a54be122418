"""Whatever lies in a study's folder, reading and asking go on, and what does not read is listed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine, plant, store_over

from dibs import Float, RecordError, Space, Study
from dibs._canon import digest
from dibs.errors import NewerFormat
from dibs.search import Sobol
from dibs.store import Store
from dibs.study import abandoned, finished, in_flight, report, take
from dibs.study._definition import read_definition

SPACE = Space(x=Float(0, 1))
NONCE = "0123456789abcdef" * 2
RECORD: dict[str, Any] = {
    "v": 1, "kind": "trial", "study": "spam", "n": 1, "attempt": 0, "state": "done", "nonce": NONCE, "of": 4,
    "point": {"x": 0.5}, "goal": "min", "score": 0.125, "step": 0, "beat_s": 60.0, "took_s": 1.0,
}  # fmt: skip


def keys_in(store: Store) -> list[str]:
    return [entry.key for entry in store.backend.list("study/")]


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return store_over()
    return Store.over(Store(tmp_path / "store").backend, FakeMachine(), patience_s=5.0)


def without(*fields: str) -> dict[str, Any]:
    return {name: value for name, value in RECORD.items() if name not in fields}


WHOLE = json.dumps(RECORD).encode()
DAMAGE: dict[str, Any] = {
    "empty": b"",
    "half": WHOLE[: len(WHOLE) // 2],
    "binary": bytes(range(256)) * 20,
    "zeros": bytes(4096),
    "newer": {**RECORD, "v": 2, "state": "resting", "point": [1]},
    "wrong state": {**RECORD, "state": "finished"},
    "score is a text": {**RECORD, "score": "0.1"},
    "point is a list": {**RECORD, "point": [["x", 1]]},
    "a list for a value": {**RECORD, "point": {"x": [1]}},
    "no nonce": without("nonce"),
    "deep": b'{"v":1,"point":{"x":' + b'{"tuple":[' * 3000 + b"]}" * 3000 + b"}}",
    "deep tuples": json.dumps(RECORD).replace("0.5", '{"tuple":[' * 200 + "1" + "]}" * 200).encode(),
    "ten megabytes": b'{"v":1,"text":"' + b"x" * 10_000_000 + b'"}',
    "foreign": b'{"name":"some-package","version":"1.0.0"}',
    "a list": b"[1,2,3]",
    "null": b"null",
    "another trial": {**RECORD, "n": 2},
    "another attempt": {**RECORD, "attempt": 1},
    "another study": {**RECORD, "study": "ham"},
    "a note": {**RECORD, "kind": "note"},
}


@pytest.mark.parametrize("junk", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_record_that_does_not_read_is_a_running_trial_and_is_listed(store: Store, junk: Any) -> None:
    study = Study(store, "spam", SPACE, goal="min")
    for n in (0, 2):
        take(store, {"x": 0.25}, study="spam", trial=n, goal="min")
        report(store, {"x": 0.25}, [1.0], study="spam", trial=n, state="done")
    key = store.keys("spam").attempt(1, 0)
    plant(store, key, junk)
    assert [(r.n, r.state, r.score) for r in study.results()] == [
        (0, "done", 1.0),
        (1, "running", None),
        (2, "done", 1.0),
    ]
    assert study.best().n == 0
    assert list(study.view.problems) == [key]
    assert key in study.view.problems[key]
    assert len(finished(store, study="spam")) == 2
    assert len(in_flight(store, study="spam")) == 0
    assert take(store, {"x": 0.25}, study="spam", trial=1, goal="min") is None
    for trial in study.trials(4):  # the index is taken, the others are asked for
        with trial:
            trial.done(0.5)
    assert [(r.n, r.state) for r in study.results()] == [(0, "done"), (1, "running"), (2, "done"), (3, "done")]
    if isinstance(junk, bytes):
        there = store.backend.read(key)
        assert there is not None
        assert there.data == junk, "nobody but its owner mends it"
    store.backend.delete(key)
    assert [r.n for r in study.results()] == [0, 2, 3]
    assert study.view.problems == {}


@pytest.mark.parametrize("what", ["folder", "fifo", "dangling link", "link to a record"])
def test_what_is_no_file_where_a_record_belongs(tmp_path: Path, what: str) -> None:
    real = Store(tmp_path / "store")
    store = Store.over(real.backend, FakeMachine(), patience_s=5.0)
    study = Study(store, "spam", SPACE, goal="min", stale_s=60)
    path = tmp_path / "store" / store.keys("spam").attempt(0, 0)
    path.parent.mkdir(parents=True)
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    else:
        (tmp_path / "elsewhere").write_bytes(WHOLE)
        path.symlink_to(tmp_path / ("elsewhere" if what == "link to a record" else "nowhere"))
    for trial in study.trials(3):
        with trial:
            trial.done(0.5)
    assert isinstance(store.machine, FakeMachine)
    assert store.machine.clock.slept == []
    assert [(r.n, r.state) for r in study.results()] == [(0, "running"), (1, "done"), (2, "done")]
    assert list(study.view.problems) == [store.keys("spam").attempt(0, 0)]
    assert study.abandoned() == [(0, 0)], "it was never written by anybody, so it does not move"
    assert study.rescue() == [(0, 0)]
    for trial in study.trials(3):
        assert (trial.n, trial.attempt) == (0, 1)
        with trial:
            trial.done(0.25)
    assert study.best().n == 0


def test_an_unreadable_record_is_rescued_like_any_quiet_one(tmp_path: Path) -> None:
    Study(Store(tmp_path / "store"), "spam", SPACE, goal="min", stale_s=60)
    store = Store(tmp_path / "store")
    key = store.keys("spam").attempt(0, 0)
    plant(store, key, b'{"v":1')
    path = tmp_path / "store" / key
    stamp = path.stat().st_mtime
    for age_s, found in ((0, []), (170, []), (190, [(0, 0)])):  # three of its beats, not knowing how long they are
        os.utime(path, (stamp - age_s, stamp - age_s))
        fresh = Store(tmp_path / "store")
        assert Study(fresh, "spam").abandoned() == abandoned(fresh, "spam") == found
    study = Study(Store(tmp_path / "store"), "spam")
    assert study.rescue() == [(0, 0)]
    for trial in study.trials(1):
        with trial:
            assert trial.attempt == 1
            trial.done(0.5)
    assert study.best().attempt == 1


def test_the_point_comes_from_the_highest_attempt_that_reads(store: Store) -> None:
    study = Study(store, "spam", SPACE, goal="min")
    first = take(store, {"x": 0.125}, study="spam", trial=0, goal="min")
    assert first is not None
    report(store, {"x": 0.125}, [], study="spam", trial=0, state="interrupted")
    take(store, {"x": 0.75}, study="spam", trial=0, goal="min")
    plant(store, store.keys("spam").attempt(0, 1), b"\0" * 10)
    study.view.notes.release(0, 1, None)
    third = take(store, {"x": 0.75}, study="spam", trial=0, goal="min")
    assert third == (2, {"x": 0.125}, first.seed)


def test_a_newer_record_is_never_judged_quiet(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    study = Study(store, "spam", SPACE, goal="min", stale_s=60)
    key = store.keys("spam").attempt(0, 0)
    plant(store, key, {**RECORD, "n": 0, "v": 2, "state": "running"})
    os.utime(tmp_path / "store" / key, (1, 1))
    assert study.abandoned() == []
    assert "upgrade" in study.view.problems[key]
    assert list(study.trials(1)) == []


@pytest.mark.parametrize(
    "name", ["00000001-0.json.bak", "copy-00000001-0.json", "1-0.json", "readme", "00000001-0.json~"]
)
def test_other_files_in_the_folder_are_left_alone(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "store")
    study = Study(store, "spam", SPACE, goal="min")
    folder = (tmp_path / "store" / store.keys("spam").attempt(1, 0)).parent
    folder.mkdir(parents=True)
    (folder / name).write_bytes(WHOLE)
    assert study.results() == []
    for trial in study.trials(2):
        with trial:
            trial.done(0.5)
    assert [r.n for r in study.results()] == [0, 1]
    assert study.view.problems == {}
    assert (folder / name).read_bytes() == WHOLE


def test_digits_that_are_no_numbers_are_left_alone(tmp_path: Path) -> None:
    """``"²".isdigit()`` holds, and ``int("²")`` raises."""
    store = Store(tmp_path / "store")
    study = Study(store, "spam", SPACE, goal="min")
    for name in ("trial/²²²²²²", "again/²²²²²²", "slot/0/²", "roll/0/²²²²²²²²", "note/stop/²"):
        path = tmp_path / "store" / store.keys("spam").base / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
        path.with_suffix("").mkdir()
    study.run(lambda trial: trial.point["x"], 2, max_running=1)
    assert len(study.results()) == 2
    assert study.view.problems == {}


# notes and attached results


NOT_WISHES: dict[str, Any] = {
    "empty": b"",
    "half": b'{"v":1,"point":{"x":0',
    "newer": {"v": 2, "point": {"x": 0.5}},
    "no point": {"v": 1, "kind": "note"},
    "a list": {"v": 1, "point": [1]},
    "another point": {"v": 1, "point": {"x": 0.75}},
    "no value": {"v": 1, "point": {"x": [1]}},
    "deep": b'{"v":1,"point":{"x":' + b'{"a":' * 400 + b"1" + b"}" * 400 + b"}}",
}


@pytest.mark.parametrize("junk", NOT_WISHES.values(), ids=NOT_WISHES.keys())
def test_a_wish_that_does_not_read_is_listed_and_the_others_are_served(store: Store, junk: Any) -> None:
    study = Study(store, "spam", SPACE, goal="min")
    key = store.keys("spam").wish(digest({"x": 0.5}))
    plant(store, key, junk)
    plant(store, store.keys("spam").notes() + "readme", b"put by hand")
    study.enqueue({"x": 0.875})
    for trial in study.trials(1):
        with trial:
            assert trial.point == {"x": 0.875}
            trial.done(1.0)
    assert list(study.view.problems) == [key]
    store.backend.delete(key)
    assert study.enqueue({"x": 0.5}), "the cure"
    for trial in study.trials(2):
        with trial:
            assert trial.point == {"x": 0.5}
            trial.done(1.0)
    assert study.view.problems == {}


def test_stop_and_release_notes_count_by_their_names(store: Store) -> None:
    """An empty note is a claim all the same: whoever wrote it was told it is said."""
    study = Study(store, "spam", SPACE, goal="min")
    plant(store, store.keys("spam").stop(0), b"")
    plant(store, store.keys("spam").notes() + "stop/now.json", b"")
    assert list(study.trials(3)) == []
    plant(store, store.keys("spam").go(0), b"")
    assert next(study.trials(3)).n == 0


@pytest.mark.parametrize(
    "junk",
    [
        b"", b"{", {"v": 1}, {"v": 2, "point": {}, "score": 1.0}, {"v": 1, "point": {"x": 0.5}, "score": None},
        {"v": 1, "point": {"x": 0.5}, "score": "0.5"}, {"v": 1, "point": {"x": [0.5]}, "score": 0.5},
        {"v": 1, "point": None, "score": 0.5}, {"v": 1, "point": {"x": 0.5}, "score": 10**400},
    ],
)  # fmt: skip
def test_an_attached_result_that_does_not_read_is_listed(store: Store, junk: Any) -> None:
    study = Study(store, "spam", SPACE, goal="min")
    study.attach({"x": 0.25}, 3.0)
    key = store.keys("spam").given_score("ab" * 32)
    plant(store, key, junk)
    assert list(study.finished()) == [({"x": 0.25}, 3.0)]
    assert list(study.view.problems) == [key]
    store.backend.delete(key)
    assert len(study.finished()) == 1
    assert study.view.problems == {}


# study.json damaged


BODY: dict[str, Any] = {
    "v": 1, "kind": "study", "study": "spam", "goal": "min", "seed": 0, "stale_s": 3600.0, "max_step": None,
    "pruner": None, "sampler": {"name": "sobol", "version": 1, "args": {}}, "space": {"x": {"float": [0.0, 1.0]}},
    "nonce": "0" * 32,
}  # fmt: skip


def test_the_definition_above_reads(store: Store) -> None:
    plant(store, "study/spam/study.json", BODY)
    definition = read_definition(store, "spam")
    assert definition is not None
    assert definition.space == Space(x=Float(0, 1))


@pytest.mark.parametrize(
    "junk",
    [
        b"", b"{", b"\xff", b"[]", b'{"v":1}', b'{"v":1,"kind":"trial"}',
        *({**BODY, "goal": goal} for goal in (None, "MIN", 1, ["min"])),
        *({**BODY, "seed": seed} for seed in (None, "0", -1, 1.5)),
        *({**BODY, "stale_s": stale_s} for stale_s in (None, 0, "1h", [])),
        *({**BODY, "max_step": max_step} for max_step in (-1, "30")),
        *({**BODY, "sampler": sampler} for sampler in (None, "sobol", {}, {"name": 1})),
        *({**BODY, "space": space} for space in (None, [], {"x": 1}, {"x": {"float": [1, 0]}}, {"x": {"double": [0, 1]}})),
        {**BODY, "kind": "trial"}, {**BODY, "study": "ham"}, {**BODY, "study": None},
        *({k: v for k, v in BODY.items() if k != field} for field in ("goal", "seed", "space", "sampler", "stale_s", "kind")),
    ],
)  # fmt: skip
def test_a_damaged_definition_is_a_record_error_that_names_the_file(store: Store, junk: Any) -> None:
    plant(store, "study/spam/study.json", junk)
    for terms in ({}, {"space": SPACE, "goal": "min"}):
        with pytest.raises(RecordError, match=r"study/spam/study\.json") as told:
            Study(store, "spam", **terms)
        assert told.value.key == "study/spam/study.json"
    assert isinstance(store.machine, FakeMachine)
    assert store.machine.clock.slept == [], "nobody is writing it: a link brings the whole record with it"
    with pytest.raises(RecordError):
        take(store, {"x": 0.5}, study="spam", trial=0, goal="min")
    assert keys_in(store) == ["study/spam/study.json"]


def test_a_newer_definition_says_upgrade(store: Store) -> None:
    plant(store, "study/spam/study.json", {**BODY, "v": 2, "space": "in another form"})
    with pytest.raises(NewerFormat, match="upgrade"):
        Study(store, "spam")


def test_a_definition_claimed_by_mkdir_is_waited_for(tmp_path: Path) -> None:
    root = tmp_path / "store"
    marker = dict(Store(root).marker)
    (root / "dibs.json").write_text(json.dumps({**marker, "claim": "mkdir"}))
    store = Store.over(Store(root).backend, FakeMachine())
    folder = root / "study" / "spam"
    folder.mkdir(parents=True)
    (folder / "study.json.claim").mkdir()

    class Slow(FakeMachine):
        """Its creator writes while we wait."""

        def __init__(self) -> None:
            super().__init__(2)
            self.clock.sleep = self.wait  # type: ignore[method-assign]

        def wait(self, seconds: float) -> None:
            self.clock.now += seconds
            (folder / "study.json").write_text(json.dumps(BODY))

    definition = read_definition(Store.over(store.backend, Slow()), "spam")
    assert definition is not None
    assert definition.sampler == Sobol(seed=0, goal="min")
    (folder / "study.json").unlink()
    with pytest.raises(RecordError, match="has not written"):
        read_definition(store_over(store.backend, patience_s=2.0), "spam")


def test_results_are_read_without_the_definition(store: Store) -> None:
    Study(store, "spam", SPACE, goal="min")
    take(store, {"x": 0.25}, study="spam", trial=0, goal="min")
    report(store, {"x": 0.25}, [1.0], study="spam", trial=0, state="done")
    take(store, {"x": 0.5}, study="spam", trial=1, goal="min")
    plant(store, "study/spam/study.json", b"{")
    store.kept.clear()
    assert list(finished(store, study="spam")) == [({"x": 0.25}, 1.0)]
    assert list(in_flight(store, study="spam")) == [({"x": 0.5}, None)]
    assert abandoned(store, "spam") == []


def test_a_record_removed_by_hand_is_a_hole_that_is_filled(store: Store) -> None:
    study = Study(store, "spam", SPACE, goal="min", sampler="random", seed=1)
    for trial in study.trials(4):
        with trial:
            trial.done(float(trial.n))
    point = study.results()[1].point
    store.backend.delete(store.keys("spam").attempt(1, 0))
    fresh = Study(Store.over(store.backend, FakeMachine(2)), "spam")
    for trial in fresh.trials(4):
        with trial:
            assert (trial.n, trial.point) == (1, point)
            trial.done(9.0)
    assert [r.n for r in fresh.results()] == [0, 1, 2, 3]
    store.backend.delete(store.keys("spam").attempt(2, 0))
    taken = take(store, {"x": 0.5}, study="spam", trial=2, goal="min")
    assert taken is None or taken.attempt == 0  # this reader holds the old copy: both answers are true of some moment
