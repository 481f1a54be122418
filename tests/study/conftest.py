"""Studies are tested on a disk (see tests/conftest.py), and every test leaves this process as it found it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.study.pruning import LOOPS

from dibs.errors import DibsError


@pytest.fixture(autouse=True)
def loops_end() -> Iterator[None]:
    """A loop that stays open keeps the process's signal handlers, and the next test would find them."""
    yield
    for loop in LOOPS:
        with suppress(DibsError):
            loop.close()
    LOOPS.clear()


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    return disk_path
