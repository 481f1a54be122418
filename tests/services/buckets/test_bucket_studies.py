"""The tests of studies, again: every store that they make lies in a bucket of SeaweedFS."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.services.buckets import moved_stores
from tests.services.buckets.in_a_bucket import NOT

ROOT = Path(__file__).parents[3]
STUDY = ROOT / "tests" / "study"
#: what each part runs, so that a part that hangs is known, and how many tests of it pass at least
PARTS = {
    "trials": (
        ["trial", "functions", "report", "abandoned", "files", "goals", "pruning", "session", "run", "run_progress"], 150,
    ),
    "views": (["view", "rolls", "definition", "frame", "from_outside", "fork_processes", "run_many", "goals_processes"], 35),
    "workers": (["run_workers"], 18),
    "signals": (["signals"], 33),
    "limits": (["limits", "slots", "devices"], 18),
}  # fmt: skip

pytestmark = [pytest.mark.services, pytest.mark.timeout(420)]


@pytest.mark.parametrize("part", PARTS)
def test_studies(part: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(moved_stores.SITE)
    (tmp_path / "tmp").mkdir()
    names, least = PARTS[part]
    path = os.pathsep.join(str(each) for each in (tmp_path, ROOT, os.environ.get("PYTHONPATH")) if each)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "tests.services.buckets.in_a_bucket", "-p", "no:cacheprovider",
         *(str(STUDY / f"test_{name}.py") for name in names)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400, check=False,
        env={**os.environ, "PYTHONPATH": path, moved_stores.ENDPOINT: server.endpoint, "TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    print(done.stdout[-6000:])
    assert done.returncode == 0
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= least, "most of them make a store"


def test_what_is_left_out_is_there() -> None:
    """A test that was renamed must not be left out under its old name."""
    there = set(re.findall(r"^def (test_\w+)", "\n".join(path.read_text() for path in STUDY.glob("test_*.py")), re.M))
    assert set(NOT) <= there
