"""What ``make test`` leaves out, and when it does not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import quick


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (["--quick"], 1),
        (["--quick", "-n", "2"], 1),
        (["--quick", "tests/test_two.py"], 3),
        (["--quick", "-n", "2", "tests"], 3),
        ([], 3),
    ],
)
def test_the_slow_ones_are_left_out_unless_files_are_named(arguments: list[str], passed: int, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (tmp_path / "tests").mkdir()
    shutil.copy(quick.__file__, tmp_path / "tests")
    (tmp_path / "tests" / "slow.txt").write_text("tests/test_two.py::test_slow\n")
    (tmp_path / "tests" / "test_two.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('case', [1, 2])\ndef test_slow(case): pass\n"
        "def test_slower_than_its_name(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.quick", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"{passed} passed" in done.stdout
