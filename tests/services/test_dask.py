"""A real Dask cluster: a worker that is killed, retired or cancelled leaves nothing running, and study and sweep are complete."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.services import sweeps
from tests.services.dask import Dask
from tests.services.dask import dask as cluster_in
from tests.services.launches import TRIALS, Launch
from tests.services.mounts import until
from tests.services.sweeps import gone

from dibs import Study

pytestmark = [pytest.mark.services, pytest.mark.timeout(180)]

NONE_AGAIN = dict.fromkeys(range(TRIALS), 0)
FIRST_AGAIN = {**NONE_AGAIN, 0: 1}


@pytest.fixture
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    with cluster_in(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster


def at(cluster: Dask) -> str:
    return f'kind = "dask"\n[dask]\naddress = "{cluster.address}"\n'


def test_a_cluster_of_its_own_runs_a_study(tmp_path: Path) -> None:
    launch = Launch(tmp_path)
    launch.write('kind = "dask"\nbefore = "export HOOK=1"\n', workers=2, env={"TOGETHER": "2"})
    told = launch.told()
    assert told["exit_code"] == 0, told
    assert launch.attempts() == NONE_AGAIN
    assert launch.crew() == {"dask-job-0", "dask-job-1"}


def test_ctrl_c_lets_the_workers_of_a_cluster_of_its_own_end(tmp_path: Path) -> None:
    launch = Launch(tmp_path)
    launch.write('kind = "dask"\n', workers=1, env={"HOLD": "1"})
    started = launch.start()
    until((tmp_path / "held").exists, "a first trial")
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 130, err
    assert (tmp_path / "let-go").exists()
    assert gone(int((tmp_path / "held").read_text()))
    assert Study(launch.store, "launched").status().states["interrupted"] == 1


def test_a_dask_worker_is_killed_and_its_task_runs_again_elsewhere(dask: Dask, tmp_path: Path) -> None:
    launch = Launch(tmp_path)
    launch.write(at(dask), workers=2, env={"HOLD": "1"})
    started = launch.start()
    until((tmp_path / "held").exists, "a first trial")
    program = int((tmp_path / "held").read_text())
    holder = next(each for each in dask.workers.values() if program in below(each.pid))
    holder.kill()
    told = launch.answer(started)
    assert gone(program), "the program went with the Dask worker that ran it"
    assert told["exit_code"] == 0, told
    assert len(told["ended"]) == 2
    assert launch.attempts() == FIRST_AGAIN
    assert not (tmp_path / "let-go").exists(), "it was killed, not told"


@pytest.mark.parametrize("counted", ["by worker", "by host"])
def test_a_sweep_whose_dask_worker_is_killed_ends_with_every_cell_proven(
    counted: str, dask: Dask, tmp_path: Path
) -> None:
    """On one host: each worker has a place of its own by its name, or each says how many cells the host may run."""
    launch = Launch(tmp_path)
    sweeps.plan(launch)
    line = 'exec dibs sweep run --name A --wait --host "$(hostname)-$DIBS_ME"'
    run = line if counted == "by worker" else [*sweeps.SWEEPING, "--workers", "2"]
    launch.write(at(dask), workers=2, run=run, env={"TOGETHER": "2"})
    with launch.running() as started:
        until(lambda: sweeps.alone(launch), "two cells at once on one host, and one that stays")
        program, _ = sweeps.held(launch)
        next(each for each in dask.workers.values() if program in below(each.pid)).kill()
        told = launch.answer(started)
    assert gone(program), "the cell went with the Dask worker that ran it"
    assert [each["code"] for each in told["ended"]] == [0, 0], told
    assert sweeps.proven(launch) == "running", "it was killed, not told"


def test_a_task_is_not_run_again_for_ever(tmp_path: Path) -> None:
    launch, folder = Launch(tmp_path / "job"), tmp_path / "dask"
    folder.mkdir()
    with cluster_in(folder, ("one", "two"), DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as cluster:
        launch.write(at(cluster), workers=1, env={"HOLD": "1"})
        started = launch.start()
        until((launch.folder / "held").exists, "a first trial")
        program = int((launch.folder / "held").read_text())
        next(each for each in cluster.workers.values() if program in below(each.pid)).kill()
        told = launch.answer(started)
    assert [(each["code"], each["why"]) for each in told["ended"]] == [
        (137, "it was lost with its Dask worker, again and again")
    ]
    assert told["exit_code"] == 137


@pytest.mark.parametrize("how", ["stop", "retire"])
def test_a_task_that_has_to_go_lets_its_worker_end(how: str, dask: Dask, tmp_path: Path) -> None:
    launch = Launch(tmp_path)
    launch.write(at(dask), workers=1, env={"HOLD": "1"})
    told = launch.told(wait=False)
    until((tmp_path / "held").exists, "a first trial")
    program = int((tmp_path / "held").read_text())
    if how == "stop":
        subprocess.run(shlex.split(told["stop"]), check=True, capture_output=True, timeout=60)
    else:
        holder = next(name for name, each in dask.workers.items() if program in below(each.pid))
        dask.workers[holder].send_signal(signal.SIGTERM)
    until(lambda: gone(program), "the end of the program")
    assert (tmp_path / "let-go").exists()
    if how == "stop":
        assert Study(launch.store, "launched").status().states["interrupted"] == 1
    else:
        until(lambda: len(launch.attempts()) == TRIALS, "the same task, on the other Dask worker")
        assert launch.attempts() == FIRST_AGAIN


def test_a_scheduler_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    launch = Launch(tmp_path)
    launch.write('kind = "dask"\n[dask]\naddress = "nonsense://127.0.0.1:1"\n')
    out, err = launch.start().communicate(timeout=60)
    assert out == ""
    assert "no Dask scheduler answers at nonsense://127.0.0.1:1: " in err
    assert "Traceback" not in err


def below(pid: int) -> set[int]:
    """All that descends from a process."""
    found = [pid]
    for each in found:
        for task in Path("/proc").glob(f"{each}/task/*/children"):
            found += map(int, task.read_text().split())
    return set(found)
