"""Rolls are cache: whatever happens to them, a reader sees the same study, only sooner or later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine, at_once, body_at, plant, store_over

from dibs import Float, Int, Space, Study
from dibs.backend import Backend, CountingBackend, CrashingBackend, FolderBackend, Killed, MemoryBackend, WrapperBackend
from dibs.errors import StoreError
from dibs.study import _rolls
from dibs.study._attempt import Attempt
from dibs.study._view import View

SPACE = Space(lr=Float(1e-5, 0.1, log=True), layers=Int(1, 8))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rolls of 4 to 8 records, joined by threes."""
    monkeypatch.setattr(_rolls, "T", 4)
    monkeypatch.setattr(_rolls, "MOST", 8)
    monkeypatch.setattr(_rolls, "JOIN", 3)


def study_over(backend: Backend, pid: int = 1) -> Study:
    store = store_over(backend, FakeMachine(pid))
    store.machine.clock.now += pid  # type: ignore[attr-defined]
    return Study(store, "s", SPACE, goal="min", seed=0, sampler="sobol")


def finish(study: Study, n: int, of: int | None = None) -> None:
    for trial in study.trials(of or n):
        with trial:
            trial.done(trial.point["lr"])
        if trial.n + 1 >= n:
            break


def claim(study: Study, of: int) -> Attempt:
    """One attempt in the hands of its owner, without a loop around it."""
    got = study.claimer(of).step()
    assert isinstance(got, Attempt)
    return got


def seen_by(backend: Backend, pid: int = 99) -> Any:
    """What a fresh process makes of the study."""
    study = study_over(backend, pid)
    return [(r.n, r.attempt, r.state, r.point, r.score) for r in study.results()]


def rolls_of(backend: Backend) -> list[str]:
    return [entry.key for entry in backend.list("study/s/roll/")]


def forget(backend: Backend, keys: list[str]) -> None:
    for key in keys:
        assert backend.delete(key)


def test_rolls_are_published_and_joined() -> None:
    backend = MemoryBackend()
    finish(study_over(backend), 60)
    levels = {key.split("/")[3] for key in rolls_of(backend)}
    assert levels == {"0", "1"}
    held = [
        name for key in rolls_of(backend) if "/roll/0/" in key for name in body_at(store_over(backend), key)["records"]
    ]
    assert len(held) == len(set(held)) >= 50


def test_a_roll_holds_the_record_verbatim() -> None:
    backend = MemoryBackend()
    study = study_over(backend)
    finish(study, 20)
    roll = body_at(study.store, rolls_of(backend)[0])
    for name, record in roll["records"].items():
        n, attempt = map(int, name.split("-"))
        assert record == body_at(study.store, study.view.keys.attempt(n, attempt))


def test_without_rolls_everything_is_the_same() -> None:
    backend = MemoryBackend()
    held = study_over(backend)
    finish(held, 60)
    before = seen_by(backend)
    forget(backend, rolls_of(backend))
    assert seen_by(backend) == before == [(r.n, r.attempt, r.state, r.point, r.score) for r in held.results()]
    finish(held, 80)  # and the holder of a view goes on
    assert [row[0] for row in seen_by(backend)] == list(range(80))


@pytest.mark.parametrize(
    "bad", [b"", b"\xff\x00", b'{"v":1', b'{"v":2,"kind":"roll"}', b'{"v":1,"kind":"roll","study":"x","records":{}}']
)
def test_a_roll_that_does_not_read_is_skipped_and_told(bad: bytes) -> None:
    backend = MemoryBackend()
    study = study_over(backend)
    finish(study, 60)
    before = seen_by(backend)
    for key in rolls_of(backend)[::2]:
        plant(study.store, key, bad)
    reader = study_over(backend, 7)
    assert [(r.n, r.attempt, r.state, r.point, r.score) for r in reader.results()] == before
    assert any("/roll/" in key for key in reader.view.problems)


@pytest.mark.parametrize(
    "changes",
    [
        {"study": "t"},
        {"v": 2},
        {"kind": "note"},
        {"state": "running"},
        {"n": -1},
        {"n": 2**63},
        {"point": None},
        {"score": "x"},
    ],
)
def test_a_roll_that_holds_what_is_no_closed_record_of_the_study_is_skipped_and_told(changes: dict[str, Any]) -> None:
    backend = MemoryBackend()
    writer = study_over(backend)
    finish(writer, 3)
    record = body_at(writer.store, writer.view.keys.attempt(1, 0))
    roll = writer.view.keys.roll(0, 5)

    def read_with(late: dict[str, Any]) -> Any:
        body = {"v": 1, "kind": "roll", "study": "s", "nonce": "x", "records": {"1-0": record, "8-0": late}}
        plant(writer.store, roll, body)
        reader = study_over(backend, 2)
        return [result.n for result in reader.results()], list(reader.view.problems)

    assert read_with({**record, "n": 8}) == ([0, 1, 2, 8], [])
    assert read_with({**record, "n": 8, **changes}) == ([0, 1, 2], [roll])


def test_a_roll_on_its_way_is_no_problem_for_ever(tmp_path: Path) -> None:
    backend = FolderBackend(tmp_path, claim="mkdir")
    writer = study_over(backend)
    finish(writer, 12)
    roll = max(rolls_of(backend))
    whole = backend.read(roll)
    assert whole is not None
    (tmp_path / roll).unlink()  # as between the claim, a folder, and its record
    held = study_over(backend, 2)
    held.view.refresh()
    assert roll in held.view.problems
    plant(writer.store, roll, whole.data)
    finish(writer, 13)
    held.view.refresh()
    assert not held.view.problems
    assert len(held.view.rolls.unrolled) < 8, "and what it holds is in a roll"


def test_a_torn_roll_that_was_removed_is_no_problem_any_more() -> None:
    backend = MemoryBackend()
    writer = study_over(backend)
    finish(writer, 12)
    roll = max(rolls_of(backend))
    plant(writer.store, roll, b"torn")
    held = study_over(backend, 2)
    held.view.refresh()
    assert list(held.view.problems) == [roll]
    finish(writer, 13)
    held.view.refresh()
    assert held.view.problems
    backend.delete(roll)
    finish(writer, 14)
    held.view.refresh()
    assert not held.view.problems


def test_what_is_no_file_is_a_roll_that_does_not_read(tmp_path: Path) -> None:
    backend = FolderBackend(tmp_path)
    finish(study_over(backend), 40)
    keys = study_over(backend, 2).view.keys
    for key in (keys.roll(0, 0), keys.roll(0, 1), keys.roll(1, 1)):
        (tmp_path / key).unlink(missing_ok=True)
        (tmp_path / key).mkdir()
    reader = study_over(backend, 3)
    assert [result.state for result in reader.results()] == ["done"] * 40
    assert keys.roll(1, 1) in reader.view.problems
    finish(reader, 60)  # a publisher comes by it, too


def test_a_gap_hides_nothing() -> None:
    backend = MemoryBackend()
    finish(study_over(backend), 60)
    before = seen_by(backend)
    forget(backend, [key for key in rolls_of(backend) if "/roll/1/" in key or key.endswith("00000001.json")])
    assert seen_by(backend) == before
    late = study_over(backend, 5)
    finish(late, 75)  # a publisher that joined behind the gap goes on above it, and takes no number twice
    assert [row[0] for row in seen_by(backend)] == list(range(75))


class Failing(WrapperBackend):
    """One of the calls about rolls fails, the others go through."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.left: int | None = None

    def _around(self, verb: str, key: str, call: Any) -> Any:
        if self.left is not None and "/roll/" in key:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise StoreError("the share went away", key=key)
        return call()


@pytest.mark.parametrize("when", range(6))
def test_a_gap_hides_nothing_after_a_first_look_that_failed(when: int) -> None:
    backend = MemoryBackend()
    writer = study_over(backend)
    finish(writer, 60)
    forget(backend, [key for key in rolls_of(backend) if "/roll/1/" in key or key.endswith("00000001.json")])
    roll = body_at(writer.store, max(rolls_of(backend)))  # behind the gap
    for name in roll["records"]:
        backend.delete(writer.view.keys.attempt(int(name.split("-")[0]), 0))
    before = seen_by(backend)
    failing = Failing(backend)
    held = study_over(failing, 5)
    failing.left = when
    with pytest.raises(StoreError):
        held.view.refresh()
    assert [(r.n, r.attempt, r.state, r.point, r.score) for r in held.results()] == before


def parts_gone(backend: Backend, above: int) -> None:
    """Somebody removed rolls by hand, but for what they were joined into."""
    assert any("/roll/1/" in key for key in rolls_of(backend))
    parts = [key for key in rolls_of(backend) if "/roll/0/" in key and int(key[-13:-5]) >= above]
    assert parts
    forget(backend, parts)


@pytest.mark.parametrize("above", [0, 1])
def test_a_roll_is_published_above_what_is_joined(above: int) -> None:
    backend = MemoryBackend()
    finish(study_over(backend), 90)
    parts_gone(backend, above)
    late = study_over(backend, 2)
    finish(late, 110)
    for n in range(90, 98):
        backend.delete(late.view.keys.attempt(n, 0))
    assert [row[0] for row in seen_by(backend)] == list(range(110)), "a copy in a roll is the record"


def test_a_held_reader_goes_on_above_what_is_joined() -> None:
    backend = MemoryBackend()
    finish(study_over(backend), 30)
    held = study_over(backend, 2)
    held.view.refresh()
    finish(study_over(backend, 3), 90)
    parts_gone(backend, held.view.rolls._next)
    held.view.refresh()
    assert len(held.view.rolls.unrolled) > 30
    held.view.publish("x")
    assert len(held.view.rolls.unrolled) < 30, "what is joined is in a roll"
    assert [(r.n, r.state) for r in held.results()] == [(n, "done") for n in range(90)]


def test_a_copy_in_a_roll_is_the_record() -> None:
    backend = MemoryBackend()
    study = study_over(backend)
    finish(study, 40)
    roll = body_at(study.store, rolls_of(backend)[0])
    n = int(next(iter(roll["records"])).split("-")[0])
    backend.delete(study.view.keys.attempt(n, 0))
    fresh = study_over(backend, 3)
    assert [r.n for r in fresh.results()] == list(range(40))
    assert [trial.n for trial in fresh.trials(40)] == [], "the index is taken"


def test_a_straggler_blocks_nothing() -> None:
    backend = MemoryBackend()
    slow = claim(study_over(backend, 2), 60)
    finish(study_over(backend), 60)
    assert len(rolls_of(backend)) > 5
    assert [row[0] for row in seen_by(backend) if row[2] == "running"] == [slow.n]


def test_two_publishers_at_once_lose_nothing() -> None:
    backend = MemoryBackend()
    views = []
    finish(study_over(backend), 3)
    for pid in (2, 3):
        study = study_over(backend, pid)
        study.view.refresh()
        views.append(study.view)
    writer = study_over(backend, 4)
    writer.view.rolls.threshold = 10**9
    finish(writer, 12)
    for view in views:
        view.refresh()
        view.rolls.threshold = 1
    at_once([lambda view=view: view.publish("x") for view in views])  # type: ignore[misc]
    assert [row[0] for row in seen_by(backend)] == list(range(12))
    for view in views:
        view.refresh()
        assert sorted(view.attempts) == list(range(12))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_publisher_killed_anywhere_stops_nobody(when: Any) -> None:
    crash_at = 1
    while True:
        backend = MemoryBackend()
        finish(study_over(backend), 3)
        writer = study_over(backend, 2)
        writer.view.rolls.threshold = 10**9
        finish(writer, 30)
        dying = CrashingBackend(backend)
        view = View(store_over(dying, FakeMachine(3)), "s")
        view.refresh()
        view.rolls.threshold = 1
        dying.crash_at, dying.when = dying.calls + crash_at, when
        try:
            for _ in range(4):  # the fourth joins the first three
                view.publish("x")
        except Killed:
            pass
        else:
            assert crash_at > 20
            return
        assert [row[0] for row in seen_by(backend)] == list(range(30))
        finish(study_over(backend, 4), 40)
        assert [row[0] for row in seen_by(backend)] == list(range(40))
        crash_at += 1


def test_a_held_reader_sees_the_second_attempt_of_a_trial_that_is_rolled() -> None:
    backend = MemoryBackend()
    study = study_over(backend)
    for trial in study.trials(40):
        with trial:
            if trial.n == 2:
                raise ValueError("no luck")
            trial.done(1.0)
    held = study_over(backend, 2)
    assert held.results("failed")[0].n == 2
    assert any("2-0" in body_at(study.store, key)["records"] for key in rolls_of(backend))
    assert study_over(backend, 3).retry() == [2]
    finish(study_over(backend, 4), 40)
    again = held.results()[2]
    assert (again.n, again.attempt, again.state) == (2, 1, "done")
    assert again == study_over(backend, 5).results()[2]


def test_a_late_end_of_a_rescued_owner_counts_by_rank_for_held_and_fresh() -> None:
    backend = MemoryBackend()
    owner = study_over(backend)
    slow = claim(owner, 40)
    rescuer = study_over(backend, 2)
    rescuer.store.machine.dead.add(1)  # type: ignore[attr-defined]
    held = study_over(backend, 3)
    for trial in rescuer.trials(40):
        with trial:
            if trial.n == slow.n:
                raise ValueError("the second attempt fails for good")
            trial.done(1.0)
    assert held.results()[slow.n].state == "failed"
    slow.close("done", score=0.25)  # the first owner was alive after all
    for reader in (held, study_over(backend, 4)):
        found = reader.results()[slow.n]
        assert (found.attempt, found.state, found.score) == (0, "done", 0.25)


def test_a_closed_record_is_never_read_twice() -> None:
    backend = CountingBackend(MemoryBackend())
    finish(study_over(backend), 50)
    reader = study_over(backend, 2)
    reader.view.refresh()
    backend.reset()
    for _ in range(10):
        reader.finished()
        reader.best()
    assert backend.counts["read"] == backend.counts["list"] == 0


def test_the_cost_of_news_does_not_grow_with_the_study() -> None:
    costs = []
    for size in (600, 3_000):
        backend = CountingBackend(MemoryBackend())
        writer = study_over(backend)
        finish(writer, size, of=10**6)
        reader = study_over(backend, 2)
        reader.view.refresh()
        finish(writer, size + 3, of=10**6)
        backend.reset()
        reader.view.refresh()
        assert len(reader.view) == size + 3
        costs.append(sum(backend.counts.values()))
    assert costs[1] <= costs[0] + 2, costs


def test_a_reader_that_never_publishes_keeps_no_more_than_what_others_may_still_publish() -> None:
    backend = MemoryBackend()
    writer, reader = study_over(backend), study_over(backend, 2)
    for size in range(5, 200, 5):
        finish(writer, size, of=10**6)
        reader.view.refresh()
        assert len(reader.view.rolls.unrolled) <= _rolls.MOST + 2 * _rolls.T + 5
    assert len(reader.finished()) == 195


def test_what_is_too_much_to_keep_is_read_again_when_it_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = MemoryBackend()
    finish(study_over(backend), 60)
    before = seen_by(backend)
    forget(backend, rolls_of(backend))
    monkeypatch.setattr(_rolls, "KEPT_BYTES", 3_000)
    late = study_over(backend, 2)
    late.view.refresh()
    assert 0 < sum(map(len, late.view.rolls.unrolled.values())) <= 3_000
    assert len(late.view.rolls.unrolled) == 60
    backend.delete(late.view.keys.attempt(57, 0))  # and what is gone by then is in no roll
    for _ in range(60):
        late.view.publish("x")
    assert sum(map(len, late.view.rolls.unrolled.values())) == late.view.rolls._kept
    held = {name for key in rolls_of(backend) for name in body_at(late.store, key)["records"]}
    assert {f"{n}-0" for n in range(52)} <= held
    assert "57-0" not in held
    assert seen_by(backend) == [row for row in before if row[0] != 57]


def test_a_roll_or_a_join_that_no_reader_could_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rolls, "BIG_BYTES", 700)
    monkeypatch.setattr(_rolls, "JOINED_BYTES", 4_000)
    backend = MemoryBackend()
    writer = study_over(backend)
    for trial in writer.trials(60):
        with trial:
            trial._attempt.close("failed", reason="x" * (500 if trial.n % 5 == 0 else 1))
    records = [body_at(writer.store, key)["records"] for key in rolls_of(backend)]
    assert records
    assert not any(int(name.split("-")[0]) % 5 == 0 for held in records for name in held)
    assert not any("/roll/1/" in key for key in rolls_of(backend))
    assert [row[2] for row in seen_by(backend)] == ["failed"] * 60
