"""Torture with all there is: a small file system that is filled and emptied, and clocks two hours wrong either way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.services.tortures import count, tortured

from dibs.testing._torture_crew import faketime

pytestmark = [pytest.mark.services, pytest.mark.timeout(420)]

HOURS_S = 7200.0
# as if whoever is looked at for the first time had stood still for ever
HASTY = """
import sys
if "dibs.testing._torture_worker" in " ".join(sys.orig_argv):
    from dibs.study._quiet import Watch
    Watch.still_s = lambda self, seen, monotonic: 1e9
"""
LONG = (
    "--only", "nothing", "--workers", "3", "--trials", "3", "--trial-s", "12", "14", "--rescue-after-s", "6", "--seconds", "1",
)  # fmt: skip


def walls(folder: Path) -> list[float]:
    """By how much each worker's clock was ahead of the first one's, as they themselves saw it."""
    lines = [json.loads(line) for path in (folder / "journal").iterdir() for line in path.read_text().splitlines()]
    began = [line["wall"] - line["at"] for line in lines if line["what"] == "began"]
    return [wall - began[0] for wall in began]


def test_two_minutes_of_everything(tmp_path: Path) -> None:
    assert faketime() is not None, "PyPI's libfaketime belongs to what `make test-services` installs"
    code, text = tortured("--store", str(tmp_path / "new"), "--seconds", "120", "--seed", "1", "--tmpfs")
    assert code == 0
    assert count("in a running trial", text) >= 20
    assert count("rescued meanwhile", text) >= 3
    assert count("full disks", text) >= 3
    assert count("files truncated", text) >= 1
    assert max(walls(tmp_path / "new")) - min(walls(tmp_path / "new")) == pytest.approx(2 * HOURS_S, abs=60)


def test_a_minute_of_kills_while_half_second_trials_run(tmp_path: Path) -> None:
    code, text = tortured(
        "--store", str(tmp_path / "new"), "--seconds", "60", "--seed", "2", "--only", "kill", "--trial-s", "0.5", "0.5", "--clocks", "right"
    )  # fmt: skip
    assert code == 0
    assert count("in a running trial", text) >= 20


@pytest.mark.parametrize("clocks", ["wrong", "stamps"])
def test_nobody_alive_is_rescued_whatever_the_clocks_say(clocks: str, tmp_path: Path) -> None:
    code, text = tortured("--store", str(tmp_path / "new"), *LONG, "--clocks", clocks)
    assert code == 0
    assert "3 trials (3 done), 3 attempts" in text


def test_without_watching_somebody_alive_would_be_rescued(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HASTY)
    code, text = tortured("--store", str(tmp_path / "new"), *LONG, "--clocks", "stamps", path=tmp_path)
    assert code == 1
    assert "alive and well" in text
