"""A study with a pruner: who is asked when, what is read for it and how often, and how a trial ends by it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.parts import FakeMachine, body_at, plant, store_over
from tests.study.processes import SPACE as PLANE
from tests.study.processes import end, eventually, open_study, program, record, run, start

from dibs import Float, Median, Random, RefusedError, Space, Store, StoreError, Study, Trial, UsageError
from dibs.backend import Backend, MemoryBackend, WrapperBackend
from dibs.search import AnyOf, Curve, Pruner, Verdict
from dibs.study import report, take
from dibs.study._curves import Curves, curves_of
from dibs.view import Source, study_status, trial_detail

T = TypeVar("T")
SPACE = Space(x=Float(0, 1))
LAST = 9


class Watching(WrapperBackend):
    """Which keys were read, and how often; ``out``: what raises instead."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.asked: Counter[tuple[str, str]] = Counter()
        self.out: Callable[[str], bool] = lambda key: False

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        self.asked[verb, key] += 1
        if self.out(key) and verb in ("read", "stream", "list", "version"):
            raise StoreError("it is out", key=key)
        return call()

    def curves(self) -> Counter[str]:
        """Reads of what only a pruner has a use for."""
        found: Counter[str] = Counter()
        for (verb, key), count in self.asked.items():
            if verb in ("read", "stream", "version", "list") and (key.startswith("blobs/") or "/live/" in key):
                found[key] += count
        return found


class Spy(Pruner):
    """Says nothing and remembers what it was asked; ``say`` at a step."""

    name = "tests-spy"

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.asked: list[tuple[int, list[tuple[int, float]], dict[int, Curve]]] = []

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        self.asked.append((own.n, own.pairs, {peer.n: peer for peer in others}))
        return Verdict("spy", "enough", {"step": own.last}) if own.last == self.at else None


class Rungs(Spy):
    """One that compares at steps 1, 3 and 9 only."""

    name = "tests-spy"  # as study.json knows it

    def due(self, own: Curve) -> bool:
        return any(own.before < rung <= own.last for rung in (1, 3, 9))

    def at_rung(self, own: Curve) -> bool:
        return self.due(own)


def study_on(backend: Backend, pid: int = 1, pruner: Any = None, **terms: Any) -> Study:
    store = store_over(backend, FakeMachine(pid))
    return Study(store, "s", SPACE, goal="min", seed=0, sampler=Random(), pruner=pruner, **{"max_step": LAST, **terms})


def claimed(study: Study, trials: int = 100) -> Trial:
    loop = study.trials(trials)
    trial = next(loop)
    trial.__dict__["loop"] = loop  # as long as the trial is there
    return trial


def pass_s(study: Study, seconds: float) -> None:
    study.store.machine.clock.now += seconds  # type: ignore[attr-defined]


def blob_of(study: Study, n: int, attempt: int = 0) -> dict[str, Any]:
    digest = body_at(study.store, study.view.keys.attempt(n, attempt))["blob"]
    body: dict[str, Any] = json.loads(study.store.get(digest))
    return body


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


# what is read


def fill(backend: Backend, done: int = 6, running: int = 2) -> tuple[Study, list[Trial]]:
    """Somebody else's trials: closed ones with curves, and some that run."""
    theirs = study_on(backend, 99, Spy())
    for trial in theirs.trials(done):
        with trial:
            for step in range(4):
                trial.report(float(trial.n + step))
    left = []
    for _ in range(running):
        trial = claimed(theirs)
        trial.report(50.0)
        trial._attempt.show(force=True)
        left.append(trial)
    return theirs, left


@pytest.mark.parametrize("pruner", [None, "diverged", ["patience", "diverged"]])
@pytest.mark.parametrize("bucket", [False, True])
def test_nobody_reads_a_curve_unless_it_compares(pruner: Any, bucket: bool) -> None:
    backend = MemoryBackend(conditional_replace=bucket)
    theirs = study_on(backend, 99, pruner)
    for trial in theirs.trials(4):
        with trial:
            trial.report(1.0)
    watching = Watching(backend)
    ours = study_on(watching, 1, pruner)
    for trial in ours.trials(8):
        with trial:
            trial.report(1.0)
            pass_s(ours, 100.0)
            trial.done()
    read = {key for key in watching.curves() if "/live/" not in key or not bucket}
    assert not read, "a bucket's live curve is read for its version before it is rewritten, and that is all"
    assert all(count == 1 for count in watching.curves().values())


def test_each_closed_curve_is_fetched_once_and_each_running_one_once_per_change() -> None:
    inner = MemoryBackend()
    _, left = fill(inner)
    backend, spy = Watching(inner), Spy()
    ours = study_on(backend, 1, spy)
    for _ in range(3):
        with claimed(ours) as trial:
            for step in range(LAST):
                trial.report(1.0, step)
                pass_s(ours, 0.5)
            trial.done()
    blobs = {key: count for key, count in backend.asked.items() if key[0] == "stream"}
    assert len(blobs) == 6
    assert set(blobs.values()) == {1}
    lives = {key: count for (verb, key), count in backend.asked.items() if verb == "read" and "/live/" in key}
    assert lives == {ours.view.keys.live(trial.n, 0): 1 for trial in left}
    assert set(spy.asked[0][2]) == {*range(6), 6, 7}
    assert spy.asked[0][2][0].pairs == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]
    assert (spy.asked[0][2][6].pairs, spy.asked[0][2][6].state) == ([(0, 50.0)], "running")
    left[0].report(49.0)
    left[0]._attempt.show(force=True)
    left[1].done()
    with claimed(ours) as trial:
        pass_s(ours, 2.0)
        trial.report(1.0)
        pass_s(ours, 2.0)
        trial.report(1.0)
    last = spy.asked[-1][2]
    assert last[6].pairs == [(0, 50.0), (1, 49.0)]
    assert (last[7].pairs, last[7].state) == ([(0, 50.0)], "done"), "one value, which the record has"
    lives = {key: count for (verb, key), count in backend.asked.items() if verb == "read" and "/live/" in key}
    assert lives == {ours.view.keys.live(6, 0): 2, ours.view.keys.live(7, 0): 1}
    assert {peer.state for n, peer in last.items() if n not in (6,)} == {"done"}


def test_a_folder_is_looked_at_once_a_second_and_a_bucket_in_half_a_minute_or_at_a_rung() -> None:
    def looks(bucket: bool, pruner: Spy, pause_s: float) -> int:
        inner = MemoryBackend(conditional_replace=bucket)
        fill(inner, done=1)
        backend = Watching(inner)
        ours = study_on(backend, 1, pruner)
        trial = claimed(ours)
        backend.asked.clear()
        for step in range(LAST):
            trial.report(1.0, step)
            pass_s(ours, pause_s)
        verb, key = ("list", ours.view.keys.lives()) if bucket else ("version", ours.view.keys.live(1, 0))
        return backend.asked[verb, key]

    assert looks(False, Spy(), 0.3) == 3  # at 0, 1.2 and 2.4 s
    assert looks(False, Rungs(), 0.3) == 1  # rungs at 0.3 and 0.9 s
    assert looks(True, Spy(), 10.0) == 3
    assert looks(True, Rungs(), 0.3) == 2


def test_a_curve_is_shown_at_every_rung_that_is_passed() -> None:
    study = study_on(MemoryBackend(conditional_replace=True), pruner=Rungs(at=3))
    key = study.view.keys.live(0, 0)
    shown = []
    with claimed(study) as trial:
        for _ in range(4):
            trial.report(1.0)
            there = study.store.backend.read(key)
            shown.append(len(json.loads(there.data)["curve"]) if there else 0)
    assert shown == [0, 2, 2, 2], "at rung 1; not where it is stopped, since the blob has it"


def test_curves_come_from_rolls_too() -> None:
    """What a roll says of a closed record is enough to find its curve."""
    inner = MemoryBackend()
    theirs, _ = fill(inner, done=20, running=0)
    theirs.view.refresh()
    theirs.view.rolls.threshold = 5
    theirs.view.publish("me")
    backend, spy = Watching(inner), Spy()
    ours = study_on(backend, 1, spy)
    with claimed(ours) as trial:
        trial.report(1.0)
    assert {n: len(peer) for n, peer in spy.asked[0][2].items()} == dict.fromkeys(range(20), 4)
    records = [key for (verb, key), _ in backend.asked.items() if verb == "read" and "/trial/" in key]
    assert len(records) < 20


# several attempts at one trial


def test_attempts_are_one_curve() -> None:
    inner = MemoryBackend()
    first = study_on(inner, 1, Spy())
    trial = claimed(first, 1)
    for step in range(6):
        trial.report(10.0 - step)
    trial.interrupt("a signal")
    spy = Rungs()
    second = study_on(inner, 2, spy)
    with claimed(second, 1) as trial:
        assert trial.attempt == 1
        for step in (4, 5, 9, 10):
            trial.report(3.0, step)
    assert spy.asked == [], "it had crossed rung 3 before, and 9 is the last step"
    watching = Spy()
    third = study_on(inner, 3, watching)
    with claimed(third, 2) as trial:
        trial.report(1.0)
    (peer,) = watching.asked[0][2].values()
    assert peer.pairs == [(0, 10.0), (1, 9.0), (2, 8.0), (3, 7.0), (4, 3.0), (5, 3.0), (9, 3.0), (10, 3.0)]
    assert peer.state == "done"


def test_an_attempt_that_begins_anew_is_compared_again() -> None:
    inner = MemoryBackend()
    trial = claimed(study_on(inner, 1, Rungs()), 1)
    for step in range(6):
        trial.report(10.0 - step)
    trial.interrupt("a signal")
    spy = Rungs()
    with claimed(study_on(inner, 2, spy), 1) as trial:
        for step in range(4):
            trial.report(3.0, step)
    assert [pairs[-1] for _, pairs, _ in spy.asked] == [(1, 3.0), (3, 3.0)]
    assert all(value == 3.0 for _, pairs, _ in spy.asked for _, value in pairs)


def test_who_was_killed_votes_with_what_it_had_shown() -> None:
    inner = MemoryBackend()
    fill(inner, done=0, running=1)
    spy = Spy()
    ours = study_on(inner, 1, spy)
    with claimed(ours) as trial:
        trial.report(1.0)
    assert spy.asked[-1][2][0].pairs == [(0, 50.0)]
    ours.view.notes.release(0, 0, None)
    rescuer = claimed(study_on(inner, 2, Spy()))
    assert (rescuer.n, rescuer.attempt) == (0, 1)
    with claimed(ours) as trial:
        pass_s(ours, 2.0)
        trial.report(1.0)
    assert spy.asked[-1][2][0].pairs == [(0, 50.0)], "somebody has taken it up and reported nothing yet"


# damage


def test_what_does_not_read_is_counted_and_left_out() -> None:
    inner = MemoryBackend()
    theirs, left = fill(inner, done=8)
    blobs = sorted(entry.key for entry in inner.list("blobs/"))
    inner.delete(blobs[0])
    plant(theirs.store, blobs[1], b"{")
    plant(theirs.store, theirs.view.keys.live(left[0].n, 0), b"torn")
    ours = study_on(inner, 1, Spy(at=0))
    with claimed(ours) as trial:
        assert trial.report(1.0)
    assert blob_of(ours, trial.n)["verdict"]["seen"] == {"step": 0, "unreadable": 3}
    seen = ours.definition.pruner.asked[0][2]  # type: ignore[union-attr]
    assert sorted(len(peer) for peer in seen.values()) == [0, 0, 1, *[4] * 6]


def test_a_live_curve_that_reads_again_counts_again_and_another_owners_does_not() -> None:
    inner = MemoryBackend()
    theirs, left = fill(inner, done=0, running=2)
    key, other = (theirs.view.keys.live(trial.n, 0) for trial in left)
    plant(theirs.store, key, b"torn")
    plant(theirs.store, other, {**body_at(theirs.store, other), "nonce": "somebody else's"})
    ours = study_on(inner, 1, Spy())
    curves = curves_of(ours.view)
    curves.look((9, 0))
    assert (list(curves.unreadable), curves.others(9)) == ([key], [])
    left[0]._attempt.show(force=True)
    pass_s(ours, 2.0)
    curves.look((9, 0))
    assert (curves.unreadable, [peer.n for peer in curves.others(9)]) == ({}, [0])


@pytest.mark.parametrize("part", ["blobs/", "/live/", "/trial/"])
def test_an_outage_stops_no_trial_and_is_caught_up_with(part: str, caplog: pytest.LogCaptureFixture) -> None:
    inner = MemoryBackend()
    fill(inner)
    backend, spy = Watching(inner), Spy()
    ours = study_on(backend, 1, spy)
    trial = claimed(ours)
    ours.view.names.look_again()
    backend.out = lambda key: part in key
    assert trial.report(1.0) is False
    assert len(spy.asked[-1][2]) < 8
    backend.out = lambda key: False
    pass_s(ours, 2.0)
    trial.report(1.0)
    assert set(spy.asked[-1][2]) == set(range(8))
    assert {len(peer) for peer in spy.asked[-1][2].values()} == {4, 1}
    if part != "/trial/":
        assert "the pruner judges by those it knows" in caplog.text


def test_a_study_of_functions_has_curves_too() -> None:
    store = store_over()
    study = Study(store, "s", SPACE, goal="min", seed=0, pruner=Spy(), max_step=LAST)
    for n, state in enumerate(("done", "pruned", "failed")):
        assert take(store, {"x": 0.5}, study="s", trial=n, goal="min")
        report(store, {"x": 0.5}, [2.0, 1.0], study="s", trial=n, state=state)
    with claimed(study) as trial:
        trial.report(1.0)
    seen = study.definition.pruner.asked[0][2]  # type: ignore[union-attr]
    assert {n: (peer.state, len(peer)) for n, peer in seen.items()} == {
        0: ("done", 2), 1: ("pruned", 2), 2: ("failed", 2),
    }  # fmt: skip


def test_the_cache_is_one_for_all_who_use_a_store() -> None:
    study = study_on(MemoryBackend(), pruner="median")
    assert curves_of(study.view) is curves_of(Study(study.store, "s").view)
    assert isinstance(curves_of(study.view), Curves)


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
