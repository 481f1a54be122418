"""Folders are tested on a disk. The conformance suite's own assertions are shown in full."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite(
    "dibs.testing._backend_suite", "dibs.testing._backend_races", "dibs.testing._backend_machine"
)


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    return disk_path
