"""A study with a pruner: who is asked when, and how a trial ends by it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parts import body_at, plant, store_over
from tests.study.processes import SPACE as PLANE
from tests.study.processes import end, eventually, open_study, program, record, run, start
from tests.study.pruning import LAST, SPACE, Spy, Watching, blob_of, claimed, study_on

from dibs import Median, RefusedError, Store, Study, Trial, UsageError
from dibs.backend import MemoryBackend
from dibs.search import AnyOf, Curve, Verdict
from dibs.view import Source, study_status, trial_detail

# as created


def test_a_study_keeps_its_pruner_and_those_who_join_have_it() -> None:
    store = store_over()
    Study(store, "s", SPACE, goal="max", seed=3, pruner=["diverged", "hyperband"], max_step=81)
    body = body_at(store, store.keys("s").study)
    assert body["pruner"] == {
        "name": "any",
        "version": 1,
        "args": {"of": [
            {"name": "diverged", "version": 1, "args": {}},
            {"name": "hyperband", "version": 1, "args": {"min_step": 1, "eta": 3, "brackets": 4}},
        ]},
    }  # fmt: skip
    for spec in (None, "diverged,hyperband", ["diverged", "hyperband"], body["pruner"]):
        joined = Study(store, "s", pruner=spec).definition
        assert joined is not None
        assert isinstance(joined.pruner, AnyOf)
        assert (joined.pruner.goal, joined.pruner.max_step, joined.pruner.seed) == ("max", 81, 3)
        assert joined.pruner.of[1].seed == 3
    status = study_status(Source.of(store, "s"))
    assert status.pruner == body["pruner"]


@pytest.mark.parametrize(
    ("theirs", "ours", "says"),
    [
        ("median", "asha", "created with pruner = 'median', and you say 'asha'"),
        ("median", Median(7), "'startup': 7"),
        (None, "median", "created without pruner, and you say 'median'"),
        (["diverged", "median"], "median", "'diverged,median'"),
    ],
)
def test_another_pruner_is_refused(theirs: Any, ours: Any, says: str) -> None:
    store = store_over()
    Study(store, "s", SPACE, goal="min", pruner=theirs, max_step=9)
    with pytest.raises(RefusedError, match=says) as refused:
        Study(store, "s", pruner=ours)
    assert refused.value.field == "pruner"


def test_what_cannot_be_meant_is_told_before_there_is_a_study(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown pruner 'hedian'"):
        Study(tmp_path / "s", "s", SPACE, goal="min", pruner="hedian")
    assert not (tmp_path / "s").exists()
    store = store_over()
    with pytest.raises(UsageError, match="'asha' needs to know how long a trial is: say max_step="):
        Study(store, "s", SPACE, goal="min", pruner="asha")
    assert store.studies() == []


@pytest.mark.parametrize(
    "described", [{"name": "later", "args": {}}, {"name": "median", "version": 9}, {"name": "asha"}]
)
def test_a_pruner_nobody_knows_here_still_reads(described: dict[str, Any]) -> None:
    store = store_over()
    study = Study(store, "s", SPACE, goal="min", seed=0)
    for trial in study.trials(2):
        with trial:
            trial.report(1.0)
    key = store.keys("s").study
    plant(store, key, {**body_at(store, key), "pruner": described})
    joined = Study(store, "s")
    assert joined.best().score == 1.0
    assert study_status(Source.of(store, "s")).pruner == described
    with pytest.raises(UsageError, match=r"study 's': .*(unknown pruner|version 9|needs to know)"):
        next(joined.trials(3))


# when it is asked, and what comes of it


def test_it_is_asked_at_new_steps_and_never_at_the_last_one() -> None:
    spy = Spy()
    with claimed(study_on(MemoryBackend(), pruner=spy)) as trial:
        for step, value in [(0, 5.0), (0, 4.0), (2, 3.0), (1, 9.0), (3, 2.0), (9, 1.0), (12, 0.5)]:
            assert trial.report(value, step) is False
    assert [pairs for _, pairs, _ in spy.asked] == [
        [(0, 5.0)],
        [(0, 4.0), (2, 3.0)],
        [(0, 4.0), (1, 9.0), (2, 3.0), (3, 2.0)],
    ]


def test_a_verdict_ends_the_trial_as_pruned_and_is_in_its_blob() -> None:
    study = study_on(MemoryBackend(), pruner=Spy(at=1))
    with claimed(study) as trial:
        assert (trial.report(3.0), trial.reason) == (False, None)
        assert (trial.report(2.0), trial.reason, trial.stopping) == (True, "enough", True)
        assert trial.report(1.0), "and goes on saying so"
    result = study.results()[0]
    assert (result.state, result.score, result.reason) == ("pruned", 1.0, "enough")
    assert blob_of(study, 0)["verdict"] == {"pruner": "spy", "reason": "enough", "seen": {"step": 1}}
    assert len(study.finished()) == 0
    detail = trial_detail(Source.over(study), 0)
    assert detail.attempts[0].verdict == {"pruner": "spy", "reason": "enough", "seen": {"step": 1}}
    assert detail.to_json()["attempts"][0]["verdict"]["pruner"] == "spy"
    assert len(study.definition.pruner.asked) == 2  # type: ignore[union-attr]


def test_one_value_and_a_verdict_are_a_blob_and_nan_is_no_score() -> None:
    study = study_on(MemoryBackend(), pruner="diverged")
    with claimed(study) as trial:
        assert trial.report(math.nan)
    found = body_at(study.store, study.view.keys.attempt(0, 0))
    assert (found["state"], found["score"], found["step"]) == ("pruned", None, 0)
    assert blob_of(study, 0)["curve"] == [[0, "nan"]]
    assert blob_of(study, 0)["verdict"]["reason"] == "nan at step 0"


def test_who_says_done_all_the_same_is_done_and_the_verdict_is_kept() -> None:
    study = study_on(MemoryBackend(), pruner=Spy(at=0))
    with claimed(study) as trial:
        assert trial.report(3.0)
        trial.done(3.0)
    assert study.best().score == 3.0
    assert blob_of(study, 0)["verdict"]["reason"] == "enough"


def test_an_objective_that_returns_after_a_verdict_is_pruned() -> None:
    study = study_on(MemoryBackend(), pruner=Spy(at=1))

    def objective(trial: Trial) -> float | None:
        for value in (3.0, 2.0, 1.0):
            if trial.report(value):
                return 99.0
        return 0.0

    study.run(objective, trials=2, progress=False)
    assert [(result.state, result.score) for result in study.results()] == [("pruned", 2.0)] * 2


class Says(Spy):
    """One of somebody's own, who has not read what ``decide`` returns."""

    name = "tests-says"

    def __init__(self, said: Any) -> None:
        super().__init__()
        self.said = said

    def decide(self, own: Curve, others: Sequence[Curve]) -> Any:
        return self.said


@pytest.mark.parametrize("said", [True, False, "stop", ("a", "b", {}), 0])
def test_a_pruner_that_answers_something_else_fails_its_trial_and_stops_nobody(said: Any) -> None:
    study = study_on(MemoryBackend(), pruner=Says(said))
    for trial in study.trials(2):
        with trial:
            trial.report(1.0)
    assert [result.state for result in study.results()] == ["failed", "failed"]
    assert all("returns a Verdict or None" in str(result.reason) for result in study.results())


def test_whatever_a_pruner_has_seen_can_be_written() -> None:
    seen = {
        "a": np.float64(1.5),
        "b": math.nan,
        3: (1, np.int64(2)),
        "d": object,
        "e": np.arange(2),
        "f": 10**30,
        "g": {"h": -math.inf},
    }
    study = study_on(MemoryBackend(), pruner=Says(Verdict("own", "half \ud800", seen)))
    for trial in study.trials(1):
        with trial:
            assert trial.report(1.0)
    assert [result.state for result in study.results()] == ["pruned"]
    assert blob_of(study, 0)["verdict"]["seen"] == {
        "a": 1.5, "b": "nan", "3": [1, 2], "d": "<class 'object'>", "e": "array([0, 1])", "f": str(10**30), "g": {"h": "-inf"},
    }  # fmt: skip


def test_a_beat_and_a_view_ask_nobody() -> None:
    spy = Spy()
    study = study_on(MemoryBackend(), pruner=spy)
    with claimed(study) as trial:
        trial.report(1.0)
        trial.beat()
        study.status()
        assert len(spy.asked) == 1


def test_trials_of_one_process_see_each_other_without_reading() -> None:
    backend = Watching(MemoryBackend())
    study = study_on(backend, pruner="median")
    for trial in study.trials(12):
        with trial:
            for step in range(LAST):
                if trial.report(trial.n + 1.0 / (step + 1)):
                    break
    assert [result.state for result in study.results()] == ["done"] * 5 + ["pruned"] * 7
    assert backend.curves().keys() - {key for key in backend.curves() if "/live/" in key} == {
        key for (verb, key), _ in backend.asked.items() if verb == "version" and key.startswith("blobs/")
    }, "no blob but to write it"
    seen = blob_of(study, 11)["verdict"]["seen"]
    assert (seen["peers"], seen["step"], seen["value"]) == (11, 0, 12.0)
    assert seen["threshold"] == 6.0


# real processes

WORKER = """
if __name__ == "__main__":
    me = sys.argv[1]
    for trial in study(pruner="asha", max_step=81, me=me).trials(80, wait=True):
        with trial:
            level = trial.point["x"] + trial.point["y"]
            for step in range(82):
                stop = trial.report(level + 1.0 / (step + 1), step)
                if me == "victim" and step == 30:
                    (HERE / "there").touch()
                    time.sleep(600)
                if stop:
                    break
"""


def test_workers_of_whom_one_is_killed(tmp_path: Path) -> None:
    """All share what anybody has reached, the dead one included, and every verdict says what it was based on."""
    path = program(tmp_path, WORKER)
    study = open_study(tmp_path, pruner="asha", max_step=81)
    victim = start(path, "victim")
    eventually((tmp_path / "there").exists, victim)
    victim.kill()
    victim.wait()
    others = [start(program(tmp_path, WORKER, f"{name}.py"), name) for name in ("a", "b", "c")]
    assert [end(process)[0] for process in others] == [0, 0, 0]
    results = study.results()
    states = Counter(result.state for result in results)
    assert len(results) == 80
    assert set(states) == {"done", "pruned"}
    assert states["pruned"] > 40
    assert study.results()[0].attempt == 1, "rescued"
    for result in study.results("pruned"):
        found = record(study, result.n, result.attempt)
        assert found is not None
        assert found.blob is not None
        verdict = json.loads(study.store.get(found.blob))["verdict"]
        assert verdict["pruner"] == "asha"
        assert verdict["reason"] == result.reason
        assert {"step", "rung", "value", "threshold", "peers", "digest"} <= verdict["seen"].keys()
        assert verdict["seen"]["value"] > verdict["seen"]["threshold"]
    best = min(PLANE.check(result.point)["x"] + result.point["y"] for result in results)
    assert study.best().point["x"] + study.best().point["y"] == best, "the best is best at every step: never stopped"


def test_run_with_worker_processes(tmp_path: Path) -> None:
    path = program(
        tmp_path,
        """
        def objective(trial):
            for step in range(30):
                if trial.report(trial.point["x"] + 1.0 / (step + 1)):
                    return None

        if __name__ == "__main__":
            summary = study(pruner=["diverged", "median"], max_step=29).run(objective, 40, workers=2, progress=False)
            print(summary.states["pruned"] > 0, summary.states["done"] + summary.states["pruned"])
        """,
    )
    code, out, err = run(path)
    assert (code, out) == (0, "True 40\n"), err
    assert Store(tmp_path / "store").studies() == ["s"]
