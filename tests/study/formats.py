"""Stores as an earlier writer left them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dibs import Store
from dibs.store import _opening


def copy_of(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A copy, so that whatever a test does the fixture stays as it is."""
    monkeypatch.setattr(_opening, "mount_type", lambda path: "ext4")
    shutil.copytree(data, tmp_path / "store")
    return Store(tmp_path / "store", create=False)
