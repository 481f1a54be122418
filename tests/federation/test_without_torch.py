"""Nothing of federation needs PyTorch but its face, which says so in one sentence."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from dibs import UsageError


def test_a_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "dibs.torch", raising=False)
    with pytest.raises(UsageError, match=r"pip install 'dibs\[torch\]'"):
        importlib.import_module("dibs.torch")


def test_federation_loads_none_of_the_large_ones() -> None:
    code = "import sys, dibs.federation; print(*sorted({'torch', 'scipy', 'rich', 'click', 'multiprocessing'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
