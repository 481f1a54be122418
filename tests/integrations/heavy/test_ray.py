"""A real Ray, started on the loopback: its job server runs a study, and what it is told to stop is interrupted."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.services.launches import TRIALS, Launch
from tests.services.mounts import free_port, process, until

from dibs import Study

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]

BIN = Path(sys.executable).parent
HARMLESS = {"RAY_USAGE_STATS_ENABLED": "0", "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where its job server listens. Its sockets need a short path."""
    folder, log = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp")), tmp_path_factory.mktemp("ray") / "ray.out"
    port = free_port()
    words = [
        str(BIN / "ray"), "start", "--head", "--block", "--node-ip-address", "127.0.0.1", "--port", str(free_port()),
        "--include-dashboard", "true", "--dashboard-host", "127.0.0.1", "--dashboard-port", str(port), "--num-cpus", "4",
        "--object-store-memory", "80000000", "--temp-dir", str(folder), "--disable-usage-stats",
    ]  # fmt: skip
    with process(words, log, **HARMLESS) as head:
        try:
            until(lambda: _answers(port), f"Ray's job server (see {log})", head)
            yield f"http://127.0.0.1:{port}"
        finally:
            below = _below(head.pid)
            head.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                head.wait(30)
            for pid in below:  # what its own end has left
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/version", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _below(pid: int) -> list[int]:
    """All that descends from a process."""
    found = [pid]
    for each in found:
        for task in Path("/proc").glob(f"{each}/task/*/children"):
            found += map(int, task.read_text().split())
    return found[1:]


def test_its_jobs_run_a_study_and_words_stay_words(address: str, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "job" $HOME'
    odd = "a'b\"c $(touch x) ${HOME}"
    launch = Launch(folder, HARMLESS)
    launch.write(
        f'kind = "ray"\nbefore = "test \\"$ODD\\" = \\"$SAME\\""\n[ray]\naddress = "{address}"\n', workers=2,
        env={"TOGETHER": "2", "ODD": odd, "SAME": odd}, workdir=str(folder), resources={"cpus": 1},
    )  # fmt: skip
    told = launch.told()
    assert told["exit_code"] == 0, told
    assert launch.attempts() == dict.fromkeys(range(TRIALS), 0)
    assert launch.crew() == {"ray-job-0", "ray-job-1"}
    assert not (folder / "x").exists()


def test_a_job_that_is_stopped_is_interrupted(address: str, tmp_path: Path) -> None:
    launch = Launch(tmp_path, HARMLESS)
    launch.write(f'kind = "ray"\n[ray]\naddress = "{address}"\n', workers=1, env={"HOLD": "1"}, workdir=str(tmp_path))
    told = launch.told(wait=False)
    until((tmp_path / "held").exists, "a first trial")
    subprocess.run(
        shlex.split(told["stop"]), check=True, capture_output=True, timeout=100, env={**os.environ, **HARMLESS}
    )
    until((tmp_path / "let-go").exists, "the end of the trial")
    until(lambda: Study(launch.store, "launched").status().states.get("interrupted") == 1, "its record")


def test_the_codes_of_workers_are_told(address: str, tmp_path: Path) -> None:
    launch = Launch(tmp_path, HARMLESS)
    launch.write(f'kind = "ray"\n[ray]\naddress = "{address}"\n', run="exit 3", workers=1)
    assert [each["code"] for each in launch.told()["ended"]] == [3]
    launch.write(f'kind = "ray"\n[ray]\naddress = "{address}"\n', workers=1, env={"NOT_SET_ANYWHERE": True})
    told = launch.told()
    assert told["exit_code"] != 0
    launch.write('kind = "ray"\n[ray]\naddress = "http://127.0.0.1:1"\n', workers=1)
    out, err = launch.start().communicate(timeout=100)
    assert out == ""
    assert "Ray's job server at http://127.0.0.1:1 refused, or is not there" in err
    assert "Traceback" not in err
