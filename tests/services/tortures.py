"""The torture as a person starts it, for the tests of what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

__all__ = ["count", "tortured"]


def tortured(*arguments: str, path: Path | None = None) -> tuple[int, str]:
    """(exit code, what it said), which is shown with the test's output. ``path``: a folder that is imported from first."""
    before = {} if path is None else {"PYTHONPATH": f"{path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-m", "dibs.testing.torture", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400, check=False, env={**os.environ, **before},
    )  # fmt: skip
    print(done.stdout[-4000:])
    return done.returncode, done.stdout


def count(what: str, text: str) -> int:
    """The number before some words of the summary."""
    found = re.search(rf"(\d+) {re.escape(what)}", text.rpartition("torture: seed")[2])
    assert found is not None, text
    return int(found[1])
