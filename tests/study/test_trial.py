"""A trial's one way out, by every door: scores, errors, signals, forks, files."""

# A loop is what raises here, and it runs at once.
# ruff: noqa: PT012, B023

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.study.processes import open_study, record, state

from dibs import Choice, Float, Int, Space, Study, Trial
from dibs.errors import AlreadyClosed, NotOwner, SpaceError, StoreError, Superseded, UsageError
from dibs.study._scoring import score_of
from dibs.view import Source, trial_detail


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return open_study(tmp_path)


def blob_of(study: Study, n: int, attempt: int = 0) -> dict[str, Any]:
    found = record(study, n, attempt)
    assert found is not None
    assert found.blob is not None
    body: dict[str, Any] = json.loads(study.store.get(found.blob))
    return body


class Zeroed:
    """What a 0-d tensor looks like."""

    ndim = 0

    def __float__(self) -> float:
        return 0.5


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), np.array(0.5), Zeroed()])
def test_a_number_is_a_score(value: Any) -> None:
    assert score_of(value) == 0.5
    assert type(score_of(value)) is float


@pytest.mark.parametrize(
    "value",
    [None, "0.5", b"1", True, np.bool_(True), {"loss": 1}, [1.0], (1.0,), np.array([1.0]), 1j, object(), 10**400,
     float("nan"), float("inf"), -np.inf, (x for x in ())],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_no_finite_number_fails_the_trial_with_the_reason(study: Study, value: Any) -> None:
    with pytest.raises(UsageError):
        score_of(value)
    for trial in study.trials(1):
        with trial:
            trial.done(value)
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.score) == ("failed", None)
    assert "a score must be" in (found.reason or "")


def test_the_last_score_reported_counts(study: Study) -> None:
    for trial in study.trials(1):
        with trial:
            for score in (0.9, 0.1, 0.5):
                assert trial.report(score) is False
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.score, found.step) == ("done", 0.5, 2)
    assert blob_of(study, 0)["curve"] == [[0, 0.9], [1, 0.1], [2, 0.5]]


def test_the_same_step_twice_is_one_step(study: Study) -> None:
    for trial in study.trials(1):
        with trial:
            trial.report(1.0, step=10)
            trial.report(2.0, step=np.int64(20))
            trial.report(3.0, step=10)
    assert blob_of(study, 0)["curve"] == [[10, 3.0], [20, 2.0]]
    assert study.best().score == 2.0


@pytest.mark.parametrize("step", [-1, 1.5, "1", True, None.__class__, 2**63])
def test_a_step_is_a_count(study: Study, step: Any) -> None:
    for trial in study.trials(1):
        with trial, pytest.raises(UsageError, match="step"):
            trial.report(1.0, step=step)


def test_nan_stays_in_the_curve_and_is_no_result(study: Study) -> None:
    for trial in study.trials(1):
        with trial:
            trial.report(1.0)
            trial.report(float("nan"))
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.reason) == ("failed", "a score must be finite, not nan")
    assert blob_of(study, 0)["curve"] == [[0, 1.0], [1, "nan"]]


def test_nothing_reported_is_a_failure(study: Study) -> None:
    for trial in study.trials(1):
        with trial:
            pass
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.reason) == ("failed", "nothing was reported and no score was given")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no such layer"), "ValueError: no such layer"),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError(), "ValueError"),
        (FileNotFoundError(2, "gone", "/tmp/\udcff"), "FileNotFoundError: [Errno 2] gone: '/tmp/\\udcff'"),
        (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
        (ValueError("x" * 100_000), "ValueError: " + "x" * 488),
    ],
    ids=["text", "key", "bare", "surrogate", "group", "long"],
)
def test_an_exception_is_a_failed_trial_and_the_loop_goes_on(study: Study, error: Exception, reason: str) -> None:
    seen = []
    for trial in study.trials(2):
        with trial:
            seen.append(trial.n)
            if trial.n == 0:
                raise error
            trial.done(1.0)
    assert seen == [0, 1]
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.reason, found.again) == ("failed", reason, False)
    assert "Traceback (most recent call last)" in blob_of(study, 0)["traceback"]


def test_an_exception_that_cannot_even_be_printed(study: Study) -> None:
    for trial in study.trials(1):
        with trial:
            raise Unprintable
    found = record(study, 0)
    assert found is not None
    assert found.state == "failed"
    assert "Unprintable" in (found.reason or "")


def test_endless_recursion_is_a_failed_trial(study: Study) -> None:
    def deeper(n: int) -> int:
        return deeper(n + 1) + 1

    for trial in study.trials(1):
        with trial:
            deeper(0)
    found = record(study, 0)
    assert found is not None
    assert "RecursionError" in (found.reason or "")


@pytest.mark.parametrize(
    ("error", "expected"),
    [(KeyboardInterrupt(), "interrupted"), (GeneratorExit(), "interrupted"), (SystemExit(0), "failed")],
)
def test_what_ends_a_process_is_recorded_and_raised_again(study: Study, error: BaseException, expected: str) -> None:
    with pytest.raises(type(error)):
        for trial in study.trials(2):
            with trial:
                raise error
    assert state(study, 0) == expected
    assert state(study, 1) is None


def test_an_error_of_the_store_is_not_the_objectives(study: Study) -> None:
    with pytest.raises(StoreError):
        for trial in study.trials(2):
            with trial:
                raise StoreError("the disk is full")
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.reason) == ("interrupted", "the store failed: the disk is full")


def test_closed_once_for_all(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    for trial in study.trials(1):
        with trial:
            trial.done(0.25)
            for again in (trial.done, lambda: trial.interrupt("no"), lambda: trial.fail("no")):
                with pytest.raises(AlreadyClosed):
                    again()
            with pytest.raises(AlreadyClosed):
                trial.report(0.5)
            raise ValueError("too late")
    assert state(study, 0) == "done"
    assert "had been closed as done when it raised ValueError('too late')" in caplog.text


def test_a_record_taken_away_and_claimed_by_others_is_theirs(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    for trial in study.trials(1):
        with trial:
            study.store.backend.delete(study.store.keys("s").attempt(0, 0))
            theirs = Study(study.store.url, "s", me="other").trials(1)
            other = next(theirs)
            other.done(0.75)
            trial.done(0.25)
    assert len(caplog.records) == 1
    assert "is not recorded" in caplog.text
    found = record(study, 0)
    assert found is not None
    assert (found.who.me, found.score) == ("other", 0.75)


def told(study: Study) -> Iterator[Trial]:
    """Trials whose session is asked to stop when they have begun, as SIGTERM does."""
    for trial in study.trials(3):
        trial._session.stop("SIGTERM")
        yield trial


@pytest.mark.parametrize("how", ["report", "stopping"])
def test_told_to_stop_and_stopped_is_interrupted(study: Study, how: str) -> None:
    with pytest.raises(SystemExit, match="143"):
        for trial in told(study):
            with trial:
                assert trial.report(1.0) if how == "report" else trial.stopping
                assert trial.reason == "SIGTERM"
    found = record(study, 0)
    assert found is not None
    assert (found.state, found.reason, found.score) == ("interrupted", "SIGTERM", None)


def test_complete_without_having_been_told_is_done(study: Study) -> None:
    with pytest.raises(SystemExit, match="143"):
        for trial in study.trials(3):
            with trial:
                trial.report(0.5)
                trial._session.stop("SIGTERM")
    assert state(study, 0) == "done"


def test_told_to_stop_and_done_all_the_same_is_done(study: Study) -> None:
    with pytest.raises(SystemExit, match="143"):
        for trial in told(study):
            with trial:
                assert trial.report(1.0)
                trial.done(0.5)
    assert (state(study, 0), study.best().score) == ("done", 0.5)


def test_sys_exit_after_a_signal_is_an_interruption(study: Study) -> None:
    with pytest.raises(SystemExit, match="7"):
        for trial in told(study):
            with trial:
                raise SystemExit(7)
    assert state(study, 0) == "interrupted"


def test_an_owner_learns_of_its_rescue_at_a_report(study: Study) -> None:
    loop = study.trials(1)
    trial = next(loop)
    assert trial.report(1.0) is False
    study.view.notes.release(0, 0, None)
    theirs = Study(study.store.url, "s", me="other").trials(1)
    other = next(theirs)
    assert (other.n, other.attempt, other.point) == (0, 1, trial.point)
    assert trial._attempt.rescued()
    trial._attempt._last_live -= 10  # as if the last look at the store were ten seconds ago
    assert trial.report(0.5) is True
    assert (trial.reason, trial.stopping) == ("rescued", True)
    other.done(0.1)
    assert study.best().score == 0.1


def test_a_forked_child_writes_nothing(study: Study, tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    for trial in study.trials(1):
        with trial:
            trial.report(0.5)
            pid = os.fork()
            if pid == 0:
                said = []
                try:
                    for act in (
                        lambda: trial.report(0.1), lambda: trial.done(0.1), lambda: trial.fail("x"),
                        lambda: trial.interrupt("x"), lambda: trial.save("x", answers),
                    ):  # fmt: skip
                        try:
                            act()
                            said.append("took it")
                        except NotOwner:
                            said.append("NotOwner")
                    try:
                        with trial:
                            raise ValueError("the child's")
                    except ValueError:
                        said.append("not swallowed")
                    answers.write_text(" ".join(said))
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
    assert answers.read_text().split(" ", 5) == ["NotOwner"] * 5 + ["not swallowed"]
    assert (state(study, 0), study.best().score) == ("done", 0.5)


def test_files_are_kept_and_found_by_the_next_attempt(study: Study, tmp_path: Path) -> None:
    checkpoint = tmp_path / "ck.pt"
    loop = study.trials(1)
    trial = next(loop)
    assert trial.load("ck") is None
    for text in ("one", "two"):
        checkpoint.write_text(text)
        trial.save("ck", checkpoint)
    found = record(study, 0)
    assert found is not None
    assert study.store.get(found.files["ck"]) == b"two"
    loaded = trial.load("ck")
    assert loaded is not None
    assert loaded.read_text() == "two"
    trial.interrupt("later")
    loop = study.trials(1)
    again = next(loop)
    assert again.attempt == 1
    loaded = again.load("ck")
    assert loaded is not None
    assert loaded.read_text() == "two"
    assert again.load("other") is None
    again.done(1.0)


def test_a_file_that_is_not_there_is_the_callers_error(study: Study, tmp_path: Path) -> None:
    for trial in study.trials(1):
        with trial:
            trial.save("ck", tmp_path / "missing")
    assert state(study, 0) == "failed"


def test_folders_are_the_attempts_own(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = study.trials(1)
    trial = next(loop)
    assert trial.folder == tmp_path / "store/study/s/work/00000000-0"
    assert trial.log.parent == trial.folder
    assert trial.folder.is_dir()
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "scratch"))
    assert trial.folder.parent == tmp_path / "scratch/s/work"
    assert trial.folder.name.startswith("00000000-0-")
    trial.folder.rmdir()
    (tmp_path / "scratch/s/work").rmdir()
    (tmp_path / "scratch/s/work").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be made"):
        _ = trial.folder
    trial.done(1.0)


def test_attempts_of_two_stores_never_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One scratch disk for all, and studies of one name: no log, and no file, is found in another one's."""
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "scratch"))
    studies = [open_study(tmp_path / name) for name in "ab" if not (tmp_path / name).mkdir()]
    for study in studies:
        study.run(lambda trial: print("of", study.store.url) or 1.0, 1, capture=True, progress=False)
    for study in studies:
        (attempt,) = trial_detail(Source.over(study), 0, work=tmp_path / "scratch").attempts
        assert attempt.log is not None
        assert Path(attempt.log).read_text() == f"of {study.store.url}\n"


def test_suggestions_are_looked_up_in_the_frozen_space(tmp_path: Path) -> None:
    space = Space(
        lr=Float(1e-5, 1e-1, log=True), layers=Int(1, 8), opt=Choice("adam", "sgd"),
        momentum=Float(0.0, 0.99, when={"opt": ["sgd"]}),
    )  # fmt: skip
    study = Study(tmp_path / "store", "s", space, goal="min", seed=3)
    study.enqueue({"lr": 1e-3, "layers": 2, "opt": "adam"})
    for trial in study.trials(1):
        with trial:
            assert trial.suggest_float("lr", 1e-5, 1e-1, log=True) == 1e-3
            assert trial.suggest_int("layers", 1, 8) == 2
            assert trial.suggest_categorical("opt", ["adam", "sgd"]) == "adam"
            for wrong in (
                lambda: trial.suggest_float("lr", 1e-5, 1.0, log=True),
                lambda: trial.suggest_int("lr", 1, 8),
                lambda: trial.suggest_categorical("opt", ["sgd"]),
                lambda: trial.suggest_float("depth", 0, 1),
            ):
                with pytest.raises(SpaceError):
                    wrong()
            with pytest.raises(UsageError, match="not active"):
                trial.suggest_float("momentum", 0.0, 0.99)
            trial.done(1.0)


def test_the_point_is_a_copy(study: Study) -> None:
    for trial in study.trials(1):
        with trial:
            before = dict(trial.point)
            trial.point["x"] = 99.0
            assert trial.point == before
            trial.done(0.5)
    assert study.best().point == before


def test_an_outage_while_reporting_is_not_the_objectives(
    study: Study, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for trial in study.trials(1):
        with trial, caplog.at_level(logging.WARNING):
            trial._attempt._last_live -= 10
            with monkeypatch.context() as patched:
                patched.setattr(
                    type(study.store.backend), "touch", lambda *_: (_ for _ in ()).throw(StoreError("away"))
                )
                assert trial.report(0.5) is False
    assert "could not be shown: away" in caplog.text
    assert state(study, 0) == "done"


def test_superseded_while_reporting_says_stop(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = study.trials(1)
    trial = next(loop)
    monkeypatch.setattr(trial._attempt, "show", lambda **_: (_ for _ in ()).throw(Superseded("theirs")))
    assert trial.report(0.5) is True
    assert trial.reason == "superseded"
    trial.done(1.0)
