"""What is synced, by the knob: counted at the system call, since only a power cut could show it."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from stat import S_ISDIR

import pytest

from dibs import Float, Space, Store, Study, UsageError
from dibs.backend import FolderBackend

SPACE = Space(x=Float(0, 1))


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What os.fsync was called on, as "file" and "folder"."""
    seen: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        seen.append("folder" if S_ISDIR(os.fstat(fd).st_mode) else "file")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


@pytest.mark.parametrize(
    ("fsync", "claim", "result"),
    [("result", [], ["file", "folder"]), ("all", ["file", "folder"], ["file", "folder"]), ("none", [], [])],
)
def test_claims_and_results_are_synced_by_the_knob(
    tmp_path: Path, synced: list[str], fsync: str, claim: list[str], result: list[str]
) -> None:
    study = Study(Store(tmp_path / "s", fsync=fsync), "s", SPACE, goal="min", seed=0)
    claimer = study.claimer(10)
    claimer.step().close("done", score=0.0)  # type: ignore[union-attr]  # folders it makes are synced once, too
    synced.clear()
    attempt = claimer.step()
    assert synced == claim
    synced.clear()
    attempt.close("done", score=1.0)  # type: ignore[union-attr]
    assert synced == result


def test_the_knob_travels_with_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", fsync="none")
    assert "fsync='none'" in repr(pickle.loads(pickle.dumps(store)).backend)


def test_another_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'result'"):
        FolderBackend(tmp_path, fsync="sometimes")
