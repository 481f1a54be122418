"""What every test of studies leaves as it found it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

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
