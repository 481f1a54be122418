"""A store of each kind, empty."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.parts import store_over

from dibs.backend import MemoryBackend
from dibs.store import Store


@pytest.fixture(params=["memory", "bucket", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return Store(tmp_path / "store")
    return store_over(MemoryBackend(conditional_replace=request.param == "bucket"))
