"""What most tests of sweeps begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from dibs import Store
from dibs.study import _names


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A new store in a folder."""
    return Store(tmp_path / "s")


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    """Where results are pulled to; not there yet."""
    return tmp_path / "d"


@pytest.fixture(autouse=True)
def seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second change in a tick leaves a folder's stamp as it was, and a view may find it a tenth of a second late."""
    monkeypatch.setattr(_names, "UNSETTLED_S", 0.0)
