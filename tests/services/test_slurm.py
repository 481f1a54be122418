"""A real Slurm: an array runs a study, and a sweep; what is requeued, signalled or at its time limit is interrupted, never lost."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.services import sweeps
from tests.services.launches import TRIALS, Launch
from tests.services.slurm import Slurm

from dibs import Study

pytestmark = [pytest.mark.services, pytest.mark.timeout(180)]

NONE_AGAIN = dict.fromkeys(range(TRIALS), 0)
FIRST_AGAIN = {**NONE_AGAIN, 0: 1}
PROFILE = 'kind = "slurm"\n[slurm]\npartition = "main"\n'


@pytest.fixture(scope="module", autouse=True)
def limited(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Launch, subprocess.Popen[str]]]:
    """A worker that goes on to its time limit, which Slurm looks at twice a minute: it runs beside the other tests."""
    launch = Launch(tmp_path_factory.mktemp("limited"), slurm.environ)
    launch.write(PROFILE.replace("main", "steady"), workers=1, env={"HOLD": "1"}, resources={"time": "1m"})
    started = launch.start()
    yield launch, started
    started.kill()
    started.communicate()


def test_an_array_runs_a_study_and_no_name_or_value_becomes_shell(slurm: Slurm, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "job" $HOME `touch id`; 50%j'
    launch = Launch(folder, slurm.environ)
    secret, odd = "hunter2", "a'b\"c $(touch x) `touch y`"
    launch.write(
        'kind = "slurm"\nbefore = "test \\"$ODD\\" = \\"$SAME\\""\n', workers=3,
        env={"TOGETHER": "3", "ODD": odd, "SAME": odd, "KEY": True}, resources={"cpus": 2, "memory": "100M", "time": "10m"},
    )  # fmt: skip
    launch.environ = {**slurm.environ, "KEY": secret}
    told = launch.told()
    assert told["exit_code"] == 0, told
    (job,) = told["ids"]
    assert launch.attempts() == NONE_AGAIN, told
    assert launch.crew() == {f"slurm-{job}_{at}" for at in range(3)}
    assert {path.name for path in folder.iterdir()} == {".dibs", "crew", "job.json", "profiles", "search.py", "store"}
    assert secret not in (folder / ".dibs/launch/job/slurm.sh").read_text() + told["logs"] + told["stderr"]
    assert [each["code"] for each in told["ended"]] == [0, 0, 0]


@pytest.mark.parametrize("how", ["requeue", "pre-emption", "signal"])
def test_a_task_that_has_to_go_is_interrupted_and_its_trial_done_by_the_next(
    how: str, slurm: Slurm, tmp_path: Path
) -> None:
    launch = Launch(tmp_path, slurm.environ)
    launch.write(PROFILE, workers=1, env={"HOLD": "1"})
    (job,) = launch.told(wait=False)["ids"]
    slurm.until((tmp_path / "held").exists, "the task is in its first trial")
    if how != "signal":
        if how == "requeue":
            slurm.ask("scontrol", "requeue", f"{job}_0")
        else:
            slurm.ask("sbatch", "--partition=urgent", "--cpus-per-task=7", "--output=/dev/null", "--wrap=true")
        slurm.again(job)
        assert launch.attempts() == {}
        slurm.until(lambda: slurm.tasks(job) == {"0": "COMPLETED"}, "the task has run again")
    else:
        slurm.ask("scancel", "--signal=TERM", "--batch", f"{job}_0")
        slurm.until(lambda: slurm.tasks(job) == {"0": "FAILED"}, "the task has ended")
        assert "ExitCode=143:0" in slurm.ask("scontrol", "show", "job", f"{job}_0")
        assert Study(launch.store, "launched").status().states["interrupted"] == 1
        assert launch.told()["exit_code"] == 0
    assert (tmp_path / "let-go").exists(), "it was told, not found dead"
    assert launch.attempts() == FIRST_AGAIN, launch.logs()


def test_an_array_runs_a_sweep_and_a_requeued_cell_is_done_by_a_later_attempt(slurm: Slurm, tmp_path: Path) -> None:
    launch = Launch(tmp_path, slurm.environ)
    sweeps.plan(launch)
    launch.write(PROFILE, workers=3, run=sweeps.SWEEPING, env={"TOGETHER": "3"})
    with launch.running() as started:
        slurm.until(lambda: sweeps.alone(launch), "three cells at once on one node, and one that stays")
        program, worker = sweeps.held(launch)
        job, _, task = worker.removeprefix("slurm-").partition("_")
        slurm.ask("scontrol", "requeue", f"{job}_{task}")
        slurm.again(job, task)
        assert sweeps.gone(program)
        told = launch.answer(started)
    assert [each["code"] for each in told["ended"]] == [0, 0, 0], told
    assert sweeps.proven(launch) == "interrupted"


def test_what_slurm_refuses_is_one_line(slurm: Slurm, tmp_path: Path) -> None:
    launch = Launch(tmp_path, slurm.environ)
    launch.write(PROFILE.replace("main", "no-such"), workers=1)
    started = launch.start()
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (2, "")
    assert "sbatch refused: " in err
    assert "invalid partition" in err
    assert "Traceback" not in err


def test_a_time_limit_is_told_ahead_and_the_next_worker_finishes(limited: tuple[Launch, subprocess.Popen[str]]) -> None:
    launch, started = limited
    told = launch.answer(started)
    assert [each["code"] for each in told["ended"]] == [143], told
    assert (launch.folder / "let-go").exists()
    launch.write(PROFILE, workers=1)
    assert launch.told()["exit_code"] == 0
    assert launch.attempts() == FIRST_AGAIN
