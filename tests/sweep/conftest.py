"""What most tests of sweeps begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from dibs import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A new store in a folder."""
    return Store(tmp_path / "s")


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    """Where results are pulled to; not there yet."""
    return tmp_path / "d"
