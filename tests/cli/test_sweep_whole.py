"""A sweep as it goes wrong: a cell that fails, one that is killed, one whose copy is damaged afterwards; found, mended, released."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.parts import memory_kills

Call = Callable[..., Result]
PROGRAM = """#!/bin/sh
case $1 in
*fails.toml) test -e "$DIBS_HERE/mended" || { echo "ValueError: not yet" >&2; exit 3; } ;;
*killed.toml) test -e "$DIBS_HERE/was-killed" || { touch "$DIBS_HERE/was-killed"; kill -9 $$; } ;;
esac
echo '{"loss": 0.5}' > metrics.json
"""
CELLS = ("fine", "fails", "killed", "damaged")


@pytest.fixture
def sweep(dibs: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("DIBS_STORE", "s")
    monkeypatch.setenv("DIBS_SWEEP", "A")
    Path("run.sh").write_text(PROGRAM)
    Path("run.sh").chmod(0o755)
    for name in CELLS:
        Path(f"{name}.toml").write_text(f"name = '{name}'\n")
    Path("cells.queue").write_text("".join(f"{name}.toml t 1\n" for name in CELLS))
    dibs("sweep", "plan", "cells.queue", "--artifact", "metrics.json", "--", "./run.sh", "{cfg}", "{task}", "{epochs}")
    return lambda *words, code=0: dibs("sweep", *words, code=code)


def found(sweep: Call, code: int) -> list[tuple[str, str]]:
    body = json.loads(sweep("reconcile", "--json", code=code).stdout)
    return [(each["kind"], each["cell"]) for each in body["findings"]]


@memory_kills(ours=False)
def test_found_mended_and_released(sweep: Call, dibs: Call) -> None:
    sweep("run", "--quiet", code=1)
    copy = Path("s/sweep/%41/final/damaged/metrics.json")
    copy.write_bytes(copy.read_bytes()[:-2])
    assert found(sweep, 1) == [("failed", "fails"), ("truncated", "damaged")]
    assert sweep("release", "--approve", "Jo", code=1).stdout.count("\n") == 4
    body = json.loads(sweep("retry", "--json", code=1).stdout)
    assert [(each["cell"], each["how"]) for each in body["cells"]] == [("fails", None), ("damaged", "renew")]
    Path("mended").touch()
    sweep("retry", "--force", "fails")
    sweep("run", "--quiet")
    assert found(sweep, 0) == [("ran twice", "damaged")]
    assert [path.name for path in Path("s/sweep/%41/final/.quarantine").iterdir()] == ["damaged-3-0"]
    assert "4 of 4 cells" in sweep("pull", "d").stdout
    sweep("verify", "d", "--expect", "4")
    sweep("release", "--approve", "Jo", "--verified", "d")
    assert json.loads(dibs("check", "--store", "s", "--json").stdout)["findings"] == []
    status = json.loads(sweep("status", "--json").stdout)
    assert [(use["file"], use["planned"], use["count"]) for use in status["scripts"]] == [("run.sh", True, 4)]
    assert (status["complete"], status["released"], status["counts"]["done"]) == (True, "Jo", 4)
