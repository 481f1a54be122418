"""Rows, the best, one trial in full, and a store's list."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.parts import body_at, plant
from tests.view.studies import SPACE, Lab

from dibs import Store, Study
from dibs.errors import NoResult, NotFound, UsageError
from dibs.view import Source, best_rows, duration, point_text, results_table, store_status, trial_detail


def searched() -> Lab:
    lab = Lab()
    for n, score in enumerate([0.3, 0.1, 0.2, 0.1]):
        lab.trial(n, "done", [1.0, score])
    lab.trial(4, "failed", reason="RuntimeError: boo")
    lab.begin(5)
    return lab


def test_rows_by_index_by_score_by_state_and_at_most_so_many() -> None:
    source = searched().source()
    assert [row.n for row in results_table(source)] == [0, 1, 2, 3, 4, 5]
    assert [row.n for row in results_table(source, sort="score")] == [1, 3, 2, 0, 4, 5]
    assert [row.n for row in results_table(source, state="failed")] == [4]
    assert [row.n for row in results_table(source, limit=2)] == [0, 1]
    assert results_table(source, limit=0) == ()
    assert results_table(source)[4].reason == "RuntimeError: boo"
    with pytest.raises(UsageError, match="none of running, done"):
        results_table(source, state="gone")


def test_best_by_the_goal_ties_by_the_lower_index() -> None:
    source = searched().source()
    assert [(row.n, row.score) for row in best_rows(source, 3)] == [(1, 0.1), (3, 0.1), (2, 0.2)]


def test_the_best_of_a_goal_max() -> None:
    lab = Lab(defined=False)
    study = Study(lab.store, "up", SPACE, goal="max")
    lab.name = "up"
    for trial in study.trials(3):
        with trial:
            trial.done(float(trial.n))
    assert [row.n for row in best_rows(lab.source(), 2)] == [2, 1]


def test_no_result_carries_the_counts() -> None:
    lab = Lab()
    lab.begin(0)
    lab.trial(1, "failed")
    with pytest.raises(NoResult, match="1 running, 1 failed"):
        best_rows(lab.source())
    with pytest.raises(NoResult, match="no trials"):
        best_rows(Lab().source())


def test_where_records_agree_on_no_goal_nothing_is_sorted_by_score() -> None:
    lab = Lab(defined=False)
    lab.two_goals()
    with pytest.raises(UsageError, match="agree on no goal"):
        best_rows(lab.source())
    assert len(results_table(lab.source())) == 2


def test_a_trial_in_full_from_the_blob() -> None:
    lab = Lab()
    lab.trial(0, "done", [math.nan, 0.5, (7, 0.25)])
    detail = trial_detail(lab.source(), 0)
    (attempt,) = detail.attempts
    assert [step for step, _ in attempt.curve] == [0, 1, 7]
    assert math.isnan(attempt.curve[0][1])
    assert (attempt.score, attempt.step, attempt.problem) == (0.25, 7, None)
    told = json.loads(json.dumps(detail.to_json(), allow_nan=False))
    assert told["attempts"][0]["curve"] == [[0, "nan"], [1, 0.5], [7, 0.25]]
    assert told["row"]["point"] == {"lr": 0.001, "opt": {"tuple": [1, 2]}}


def test_one_value_needs_no_blob() -> None:
    lab = Lab()
    lab.trial(0, "done", [0.5])
    assert trial_detail(lab.source(), 0).attempts[0].curve == ((0, 0.5),)


def test_a_running_trial_shows_the_curve_its_owner_showed() -> None:
    lab = Lab()
    lab.begin(0)
    lab.pass_s(2)
    lab.report(0, [0.5, 0.4])
    assert trial_detail(lab.source(), 0).attempts[0].curve == ((0, 0.5), (1, 0.4))
    plant(lab.store, lab.store.keys("spam").live(0, 0), "{")
    assert trial_detail(lab.source(), 0).attempts[0].curve == ()
    plant(lab.store, lab.store.keys("spam").live(0, 0), {"v": 1, "curve": [[0, 9.0]], "nonce": "another's"})
    assert trial_detail(lab.source(), 0).attempts[0].curve == ()


def test_every_attempt_is_there_and_the_done_one_speaks() -> None:
    lab = Lab()
    lab.trial(0, "interrupted", reason="SIGTERM")
    lab.trial(0, "done", [0.5])
    detail = trial_detail(lab.source(), 0)
    assert [(a.attempt, a.state, a.reason) for a in detail.attempts] == [
        (0, "interrupted", "SIGTERM"),
        (1, "done", None),
    ]
    assert (detail.row.state, detail.row.attempt) == ("done", 1)


@pytest.mark.parametrize("junk", [None, b"junk"], ids=["missing", "damaged"])
def test_a_blob_out_of_reach_leaves_the_score(junk: bytes | None) -> None:
    lab = Lab()
    lab.trial(0, "done", [1.0, 0.5])
    digest = body_at(lab.store, lab.store.keys("spam").attempt(0, 0))["blob"]
    key = f"blobs/{digest[:2]}/{digest}"
    if junk is None:
        lab.backend.delete(key)
    else:
        plant(lab.store, key, junk)
    (attempt,) = trial_detail(lab.source(), 0).attempts
    assert attempt.score == 0.5
    assert attempt.problem is not None
    assert "record with its score is whole" in attempt.problem.cure


def test_a_damaged_attempt_is_told_in_full() -> None:
    lab = Lab()
    lab.begin(0)
    plant(lab.store, lab.store.keys("spam").attempt(0, 0), "{")
    (attempt,) = trial_detail(lab.source(), 0).attempts
    assert attempt.problem is not None
    assert attempt.problem.key == attempt.key


def test_a_trial_nobody_claimed_is_not_found() -> None:
    lab = Lab()
    lab.begin(0)
    with pytest.raises(NotFound, match="nobody has claimed it"):
        trial_detail(lab.source(), 9)
    with pytest.raises(NotFound, match="its trials are 0 to 9"):
        trial_detail(lab.source(), 10)


def test_where_the_folder_and_the_log_are(tmp_path: Path) -> None:
    study = Study(tmp_path / "s", "spam", SPACE, goal="min")
    for trial in study.trials(2):
        with trial:
            if trial.n == 0:
                trial.log.write_text("hello")
            trial.done(1.0)
    source = Source.over(study)
    here = trial_detail(source, 0).attempts[0]
    assert here.log is not None
    assert Path(here.log).read_text() == "hello"
    assert here.folder == str(Path(here.log).parent)
    assert trial_detail(source, 1).attempts[0].folder is None
    (seen,) = source.view.whole(1)
    assert seen.record is not None
    away = tmp_path / "work" / "spam" / "work" / f"00000001-0-{seen.record.nonce[:12]}"
    (away.parent / "00000001-0-another").mkdir(parents=True)
    assert trial_detail(source, 1, work=tmp_path / "work").attempts[0].folder is None
    away.mkdir()
    assert trial_detail(source, 1, work=tmp_path / "work").attempts[0].folder == str(away)


def test_a_store_lists_its_studies_whatever_they_are_called() -> None:
    lab = Lab()
    lab.trial(0, "done", [0.5])
    names = ["spam", "Spam", "../x", "\N{PARROT} \x1b[31m", "x" * 300]
    for name in names[1:]:
        Study(lab.store, name, SPACE, goal="max")
    status = store_status(lab.reader())
    assert sorted(line.study for line in status.studies) == sorted(names)
    spam = next(line for line in status.studies if line.study == "spam")
    assert (spam.goal, spam.of, spam.best, spam.counts["done"], spam.problems) == ("min", 10, 0.5, 1, 0)
    json.dumps(status.to_json(), allow_nan=False)


def test_a_damaged_study_does_not_hide_its_store() -> None:
    lab = Lab()
    plant(lab.store, lab.store.keys("spam").study, "{")
    (line,) = store_status(lab.reader()).studies
    assert (line.study, line.problems, line.goal) == ("spam", 1, None)


def test_a_folder_is_read_without_a_trace(tmp_path: Path) -> None:
    study = Study(tmp_path / "s", "spam", SPACE, goal="min")
    for trial in study.trials(2):
        with trial:
            trial.report(2.0)
            trial.report(1.0)

    def traces() -> dict[str, tuple[int, int]]:
        return {str(p): (p.stat().st_mtime_ns, p.stat().st_ino) for p in [tmp_path, *tmp_path.rglob("*")]}

    before = traces()
    store = Store(tmp_path / "s", create=False)
    store_status(store)
    trial_detail(Source.of(store, "spam"), 1)
    assert traces() == before


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"), (0.0, "<1ms"), (0.0421, "42ms"), (3.14159, "3.1s"), (12, "12s"), (59.7, "1m"), (61, "1m 1s"),
        (3600, "1h"), (3725, "1h 2m"), (90_000, "1d 1h"), (864_000, "10d"),
    ],
)  # fmt: skip
def test_durations_as_people_read_them(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_points_as_people_read_them() -> None:
    assert point_text({"lr": 0.1, "opt": "a b", "t": (1, True)}) == "lr=0.1 opt='a b' t=(1, True)"
