"""Files of a trial where the disk does not take them: the store's trouble is retried, and never the objective's."""

# A loop is what raises here.
# ruff: noqa: PT012

from __future__ import annotations

from pathlib import Path

import pytest
from tests.parts import FakeClock, FakeMachine

from dibs import Float, RecordError, Space, Store, StoreError, Study
from dibs.study import take

SPACE = Space(x=Float(0, 1))


class Patient(FakeClock):
    """Somebody makes room after a few seconds."""

    def __init__(self, blocked: Path, after: float) -> None:
        super().__init__()
        self.blocked, self.until = blocked, self.now + after

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.now >= self.until and self.blocked.is_file():
            self.blocked.unlink()


def interrupted(folder: Path) -> Study:
    """A study whose trial 0 has kept a file and waits for its next attempt."""
    study = Study(folder / "store", "spam", SPACE, goal="min")
    (folder / "file").write_text("half a model")
    for trial in study.trials(1):
        trial.save("state", folder / "file")
        trial.interrupt("enough")
        break
    return study


def waiting(folder: Path, after: float) -> Study:
    """The study by a process whose attempts' folder cannot be made for so long: a file is in the way."""
    blocked = folder / "work"
    blocked.touch()
    machine = FakeMachine()
    machine.clock = Patient(blocked, after)
    return Study(Store.over(Store(folder / "store").backend, machine, patience_s=5.0), "spam")


@pytest.fixture(autouse=True)
def _work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "work"))


def test_a_file_is_brought_as_soon_as_there_is_room(tmp_path: Path) -> None:
    interrupted(tmp_path)
    study = waiting(tmp_path, after=2.0)
    for trial in study.trials(1):
        with trial:
            found = trial.load("state")
            assert found is not None
            assert found.read_text() == "half a model"
            trial.done(0.5)
    assert study.best().attempt == 1


def test_room_that_never_comes_is_the_stores_failure_and_interrupts(tmp_path: Path) -> None:
    interrupted(tmp_path)
    study = waiting(tmp_path, after=1e9)
    with pytest.raises(StoreError, match="cannot be made"):
        for trial in study.trials(1):
            with trial:
                trial.load("state")
    assert [(r.attempt, r.state) for r in study.results()] == [(1, "interrupted")]


def test_a_damaged_file_is_told_at_once(tmp_path: Path) -> None:
    study = interrupted(tmp_path)
    blob = next((tmp_path / "store/blobs").rglob("?" * 64))
    blob.write_text("half a mo")
    study = waiting(tmp_path, after=0.0)
    (tmp_path / "work").unlink()
    with pytest.raises(RecordError, match="is damaged"):
        for trial in study.trials(1):
            with trial:
                trial.load("state")
    assert isinstance(study.store.machine, FakeMachine)
    assert study.store.machine.clock.slept == []
    assert take(study.store, {"x": 0.5}, study="spam", trial=0, goal="min") is not None, "anybody may try again"
