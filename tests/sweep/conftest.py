"""Tests of sweeps change and look in one tick of the file system's clock, and more than once."""

from __future__ import annotations

import pytest

from dibs.study import _names


@pytest.fixture(autouse=True)
def seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second change in a tick leaves a folder's stamp as it was, and a view may find it a tenth of a second late."""
    monkeypatch.setattr(_names, "UNSETTLED_S", 0.0)
