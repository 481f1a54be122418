"""The server that the tests of buckets use, for those here that need a bucket; folders lie on a disk: see tests/conftest.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.buckets.conftest import credentials, place, server

__all__ = ["credentials", "place", "server"]


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    return disk_path
