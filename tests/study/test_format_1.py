"""Old data is a fixture: tests/data/format-1/ was written once by the first writer of format 1, and is read as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.make_format_1 import LONG, SPACE, TRACE, WISH
from tests.parts import body_at
from tests.study.formats import copy_of

from dibs import RefusedError, Store, Study
from dibs.record import TrialRecord, Who, decode, decode_trial, encode
from dibs.space._values import typed
from dibs.study import finished, in_flight
from dibs.study._claimer import Idle

DATA = Path(__file__).parents[1] / "data" / "format-1"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return copy_of(DATA, tmp_path, monkeypatch)


def record(store: Store, n: int, attempt: int = 0) -> TrialRecord:
    key = store.keys(LONG).attempt(n, attempt)
    there = store.backend.read(key)
    assert there is not None
    return decode_trial(there.data, key)


def test_nothing_of_it_was_changed() -> None:
    """Each record is its own canonical form; whoever edits one of them breaks this, and the promise."""
    files = list(DATA.rglob("*.json"))
    assert len(files) > 30
    for path in files:
        data = path.read_bytes()
        assert encode(decode(data, path.name)) == data


def test_the_marker_and_the_studies(store: Store) -> None:
    assert (store.marker["v"], store.marker["kind"], store.marker["claim"]) == (1, "dibs", "link")
    assert store.studies() == sorted([LONG, "Stopped?", "rolled"])


def test_the_definition_joins_with_the_same_space(store: Store) -> None:
    study = Study(store, LONG, SPACE, goal="min", sampler="sobol", seed=7, stale_s=600, max_step=30)
    assert study.definition is not None
    assert study.space == SPACE
    with pytest.raises(RefusedError, match="seed = 7"):
        Study(store, LONG, seed=8)


def test_the_results(store: Store) -> None:
    study = Study(store, LONG)
    assert [(r.n, r.attempt, r.state, r.score, r.reason) for r in study.results()] == [
        (0, 0, "done", 0.051, None),
        (1, 0, "done", 0.25, None),
        (2, 0, "failed", None, "ValueError: the loss is nan"),
        (3, 1, "done", 0.125, None),
        (4, 1, "done", 0.0625, None),
        (5, 0, "interrupted", None, "SIGTERM"),
        (6, 0, "pruned", 0.8, "worse than the median at step 1"),
        (7, 0, "running", None, None),
        (8, 0, "failed", None, "OSError: a retry is left"),
        (12, 0, "done", 9.0, None),
    ]
    assert study.best().n == 0
    assert (study.best().who, study.best().took) == (Who("a", "node1", "b", 10, "t-10"), 12.5)
    assert study.view.of == 13
    assert study.view.problems == {}


def test_points_come_back_typed(store: Store) -> None:
    results = {r.n: r.point for r in Study(store, LONG).results()}
    assert {name: typed(value) for name, value in results[1].items()} == {n: typed(v) for n, v in WISH.items()}
    assert typed(results[0]["ngrams"]) == typed((1, 1))
    for point in (results[n] for n in range(9)):
        assert SPACE.check(point) == point
        assert ("momentum" in point) == (point["opt"] == "sgd")


def test_the_histories(store: Store) -> None:
    assert list(finished(store, study=LONG).n) == [-1, 0, 1, 3, 4, 12]
    assert finished(store, study=LONG)[0] == ({**WISH, "layers": 8}, 0.5)
    assert list(in_flight(store, study=LONG).n) == [7]


def test_blobs_files_and_the_live_curve(store: Store) -> None:
    done, failed = record(store, 0), record(store, 2)
    assert done.blob is not None
    assert failed.blob is not None
    assert decode(store.get(done.blob), "blob")["curve"] == [[0, 0.9], [1, "nan"], [29, 0.051]]
    assert decode(store.get(failed.blob), "blob")["traceback"] == TRACE
    assert store.get(done.files["ck.pt"]) == bytes(range(256))
    assert body_at(store, store.keys(LONG).live(7, 0))["curve"] == [[0, 0.75]]
    assert record(store, 3, 0).state == "failed"
    assert record(store, 1).wish is not None


def test_going_on_where_it_was_left(store: Store) -> None:
    study = Study(store, LONG)
    assert study.view.wishes() == {}
    study.view.refresh()
    assert [point["ngrams"] for point in study.view.wishes().values()] == [None]
    seen = {(trial.n, trial.attempt): (trial.point, trial.done(0.5))[0] for trial in study.trials(11)}
    assert list(seen) == [(5, 1), (8, 1), (9, 0), (10, 0)]
    assert seen[5, 1] == record(store, 5, 0).point
    assert typed(seen[9, 0]["ngrams"]) == typed(None)
    assert study.claimer(11).step() == Idle("held")
    assert study.retry() == [2]
    assert [(trial.n, trial.attempt, trial.done(0.5)) for trial in study.trials(11)] == [(2, 1, None)]


def test_same_seed_same_points(store: Store) -> None:
    """What the sampler said then it says today; 1 and the wished one were given."""
    definition = Study(store, LONG).definition
    assert definition is not None
    for n in (0, 2, 3, 4, 5, 6, 7, 8):
        assert definition.sampler.ask(SPACE, n) == record(store, n).point
    stopped = Study(store, "Stopped?")
    assert stopped.definition is not None
    assert stopped.definition.sampler.ask(stopped.space, 0) == stopped.best().point


def test_the_stopped_study(store: Store) -> None:
    study = Study(store, "Stopped?")
    assert (study.goal, study.best().score) == ("max", 0.5)
    assert list(study.trials(3)) == []
    assert study.resume() is True
    assert [trial.n for trial in study.trials(2) if trial.done(0.25) is None] == [1]


def test_a_copy_in_a_roll_is_the_record(store: Store) -> None:
    study = Study(store, "rolled")
    assert [(r.n, r.score) for r in study.results()] == [(n, float(n)) for n in range(5)]
    assert list(study.trials(5)) == []


def test_names(store: Store) -> None:
    assert sorted(name.name for name in store.scan()) == sorted(["model", "Model/v2", "..", "nul", "x" * 200])
    bound, other = store.resolve("model"), store.resolve("Model/v2")
    assert bound is not None
    assert other is not None
    assert (bound.digest, bound.meta) == (None, {"round": 2, "é": [1, 1.0, None]})
    assert other.digest is not None
    assert store.get(other.digest) == b"weights of Model/v2"
    assert store.claim("nul") is False
