"""A program searched in a bucket: its log and its checkpoint reach whoever comes next, on whatever machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.cell.programs import landlocked, number_in, until

from dibs import Store, Study

pytestmark = pytest.mark.usefixtures("credentials")

PROGRAM = """#!/bin/sh
echo "has $(cat "$DIBS_PREVIOUS/weights" 2>/dev/null)"
if [ "$DIBS_ATTEMPT" = 0 ]; then
  trap 'echo half > weights; exit 0' TERM
  echo $$ > "$DIBS_HERE/pid"
  while :; do sleep 0.02; done
fi
echo '{"score": 1}'
"""


def test_a_checkpoint_goes_through_the_bucket(server: Server, place: str, tmp_path: Path) -> None:
    url = Store.on_bucket(server.endpoint, server.bucket, place).url
    (tmp_path / "space.toml").write_text("lr = {float = [0, 1]}\n")
    script = tmp_path / "train.sh"
    script.write_text(PROGRAM)
    script.chmod(0o755)

    def start(disk: str) -> subprocess.Popen[str]:
        words = ["exec", "--space", "space.toml", "--store", url, "--study", "s", "--goal", "min", "--trials", "1"]
        return subprocess.Popen(
            [sys.executable, "-m", "dibs", *words, "--keep", "weights", "--", "./train.sh"],
            cwd=tmp_path, env={**os.environ, "DIBS_WORK": str(tmp_path / disk)}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    first = start("disk1")
    until(lambda: number_in(tmp_path / "pid"))
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)
    assert first.returncode == 143
    second = start("disk2")
    _, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    result = Study(url, "s").best()
    assert (result.attempt, result.score) == (1, 1.0)
    assert "has half" in next((tmp_path / "disk2").rglob("log.txt")).read_text()
    files = {}
    for key in ("trial/000000/00000000-0.json", "again/000000/00000000-1.json"):
        there = Store(url).backend.read(f"study/s/{key}")
        assert there is not None
        files[key[:5]] = set(json.loads(there.data)["files"])
    assert files == {"trial": {"weights", "program/train.sh", "log.txt"}, "again": {"program/train.sh", "log.txt"}}
    checked = subprocess.run(
        [sys.executable, "-m", "dibs", "check", "--store", url], capture_output=True, text=True, check=True
    ).stdout
    assert "foreign" not in checked


@landlocked
def test_isolated_attempts_are_not_each_others(server: Server, place: str, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "space.toml").write_text("lr = {float = [0, 1]}\n")
    url = Store.on_bucket(server.endpoint, server.bucket, place).url
    words = ["exec", "--space", "space.toml", "--store", url, "--study", "s", "--goal", "min", "--trials", "1"]
    line = '(: > ../../outside); : > "$TMPDIR/inside"; echo 1 > "$DIBS_RESULT"'
    done = subprocess.run(
        [sys.executable, "-m", "dibs", *words, "--isolate", "--shell", "--", line],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(temporary.rglob("inside"))
    assert not list(temporary.rglob("outside"))
