"""A sweep in a bucket: its copies are blobs that the records name, its log is there, and others go on after a kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.cell.programs import number_in, until
from tests.sweep.sweeping import NAME, sha, stood, sweep

from dibs import Store
from dibs.sweep import newest_plan, plan_sweep, pull, reconcile, run_sweep
from dibs.upkeep import check, find_garbage

pytestmark = pytest.mark.usefixtures("credentials")

SCRIPT = """#!/bin/sh
echo "cell $DIBS_NAME"
if [ "$DIBS_NAME" = c1 ] && [ "$DIBS_ATTEMPT" = 0 ] && [ -n "$GATED" ]; then
  echo $$ > "$DIBS_HERE/pid"
  sleep 60
fi
cat "$1" > best.pth
echo '{"score": 0.5}'
"""


def bucket(server: Server, place: str) -> Store:
    return Store.on_bucket(server.endpoint, server.bucket, place)


def test_three_cells_leave_blobs(server: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "disk"))
    store, plan = sweep(tmp_path, 3, SCRIPT, artifacts=("best.pth", "log.txt"), store=bucket(server, place))
    end = run_sweep(store, NAME)
    assert (end.exit_code, end.states) == (0, {"done": 3})
    for cell in plan.cells:
        run = stood(bucket(server, place))[cell.name].counts
        assert run is not None
        assert run.artifacts is not None
        config = (tmp_path / f"{cell.name}.toml").read_bytes()
        assert (run.final, run.files["final/best.pth"], run.artifacts["best.pth"].digest) == (
            "blobs", sha(config), sha(config),
        )  # fmt: skip
        assert store.get(run.files["final/best.pth"]) == config
        assert store.get(run.files["log.txt"]) == f"cell {cell.name}\n".encode() + b'{"score": 0.5}\n'
    assert reconcile(store, newest_plan(store, NAME)).clean
    assert [finding for finding in check(store, deep=True).findings if finding.fault] == []
    assert find_garbage(store, blob_age_s=-1e9).removals == ()


def test_copies_of_a_bucket_may_go_to_a_folder(
    server: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "disk"))
    store, _ = sweep(
        tmp_path, 1, SCRIPT, artifacts=("best.pth",), store=bucket(server, place), final=str(tmp_path / "kept")
    )
    assert run_sweep(store, NAME).exit_code == 0
    assert (tmp_path / "kept" / "c0" / "best.pth").read_bytes() == (tmp_path / "c0.toml").read_bytes()


def test_a_bucket_s_sweep_may_get_a_folder_while_cells_are_done(
    server: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "disk"))
    store, _ = sweep(tmp_path, 2, SCRIPT, artifacts=("best.pth",), store=bucket(server, place))
    assert run_sweep(store, NAME).exit_code == 0
    config = tmp_path / "later.toml"
    config.write_text("later\n")
    (tmp_path / "more.queue").write_text("later.toml t 3\n")
    kept = tmp_path / "kept"
    plan_sweep(store, NAME, ["more.queue"], here=tmp_path, new_version=True, final=str(kept))
    end = run_sweep(store, NAME)
    assert (end.exit_code, end.states) == (0, {"done": 3})
    assert sorted(path.name for path in kept.iterdir()) == [".dibs-final", "later"]
    plan = newest_plan(store, NAME)
    assert reconcile(store, plan).clean
    assert pull(store, plan, tmp_path / "d").exit_code == 0
    assert [(tmp_path / "d" / name / "best.pth").read_bytes() for name in ("c0", "later")] == [
        (tmp_path / f"{name}.toml").read_bytes() for name in ("c0", "later")
    ]


def test_blobs_need_no_folder(server: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "disk"))
    store, _ = sweep(tmp_path, 1, SCRIPT, artifacts=("best.pth",), store=bucket(server, place))
    assert run_sweep(store, NAME).exit_code == 0
    plan_sweep(store, NAME, [], here=tmp_path, new_version=True, final=str(tmp_path / "kept"))
    (tmp_path / "kept").rename(tmp_path / "unmounted")
    assert reconcile(store, newest_plan(store, NAME)).clean


def test_another_machine_goes_on_after_a_kill(server: Server, place: str, tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 2, SCRIPT, artifacts=("best.pth",), store=bucket(server, place), costs={"c1": 9.0})
    words = [sys.executable, "-m", "dibs", "sweep", "run", "--store", store.url, "--name", NAME]

    def start(disk: str, **more: str) -> subprocess.Popen[str]:
        env = {**os.environ, "DIBS_WORK": str(tmp_path / disk), **more}
        return subprocess.Popen(words, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    first = start("disk1", GATED="1")
    until(lambda: number_in(tmp_path / "pid"))
    first.kill()
    first.communicate(timeout=60)
    second = start("disk2")
    _, err = second.communicate(timeout=100)
    assert second.returncode == 0, err
    assert [run.state for run in stood(bucket(server, place))["c1"].runs] == ["running", "done"]
