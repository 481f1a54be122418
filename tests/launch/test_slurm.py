"""The script and the words of ``sbatch``, without a Slurm: bash reads what it would; states become codes."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.launch.jobs import HERE, HOSTILE, profile, request

from dibs.launch import Plan
from dibs.launch import _slurm as slurm
from dibs.launch._plan import Ended


def planned(job=None, **said) -> Plan:
    return slurm.plan(job or request(), profile("slurm", **said), "/mnt/shared/s", HERE)


def test_resources_and_options_become_words_of_sbatch() -> None:
    job = request(resources={"cpus": 2, "memory": "1GB+", "time": "90s", "gpu": {"name": "a100", "count": 2}})
    options = {
        "partition": "a b;c",
        "qos": "high",
        "gres": "gpu:a100",
        "at_once": 2,
        "signal_s": 30,
        "options": ["--nice=10"],
    }
    words = list(planned(job, **options).calls[0].argv)
    assert words == [
        "sbatch", "--parsable", "--job-name=job", "--array=0-2%2", "--nodes=1", "--ntasks=1", "--requeue",
        "--open-mode=append", "--signal=B:TERM@30", "--export=ALL", "--output=/jobs/.dibs/launch/job/slurm-%A_%a.log",
        "--cpus-per-task=2", "--mem=954M", "--time=2", "--gres=gpu:a100:2", "--partition=a b;c", "--qos=high", "--nice=10",
        "/jobs/.dibs/launch/job/slurm.sh",
    ]  # fmt: skip


def test_the_plan_is_pure_and_names_its_script() -> None:
    assert planned() == planned()
    assert list(planned().files) == ["/jobs/.dibs/launch/job/slurm.sh"]
    percent = replace(request(), folder=Path("/a%j/%%"))
    assert "--output=/a%%j/%%%%/.dibs/launch/job/slurm-%A_%a.log" in planned(percent).calls[0].argv


@pytest.mark.parametrize("shell", [False, True], ids=["words", "a line"])
def test_bash_reads_what_was_said_and_nothing_of_it_as_shell(shell: bool, tmp_path: Path) -> None:
    folder = tmp_path / HOSTILE.replace("/", "")
    folder.mkdir()
    show = ["python3", "-c", "import os, sys; print([os.getcwd(), os.environ['ODD'], os.environ['DIBS_STORE'], os.environ['DIBS_ME'], *sys.argv[1:]])", HOSTILE]  # fmt: skip
    job = replace(request(run=shlex.join(show) if shell else show, env={"ODD": HOSTILE, "KEY": True}), folder=folder)
    plan = slurm.plan(job, profile("slurm", before=["true"]), HOSTILE, replace(HERE, bin=HOSTILE))
    (script,) = plan.files.values()
    environ = {"PATH": "/usr/bin:/bin", "KEY": "k", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2"}
    done = subprocess.run(["bash"], input=script, env=environ, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == f"{[str(folder), HOSTILE, HOSTILE, 'slurm-7_2', HOSTILE]}\n"
    del environ["KEY"]
    done = subprocess.run(
        ["bash"], input=script, env=environ, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode != 0
    assert "KEY: goes by its name, and is not set on this machine" in done.stderr


SHOWN = """\
JobId=5 ArrayJobId=5 ArrayTaskId=3-4%2 JobName=job JobState=PENDING Reason=JobArrayTaskLimit ExitCode=0:0
JobId=6 ArrayJobId=5 ArrayTaskId=0 JobName=JobState=FAILED JobState=COMPLETED Reason=None ExitCode=0:0
JobId=7 ArrayJobId=5 ArrayTaskId=1 JobName=job JobState=FAILED Reason=NonZeroExitCode ExitCode=143:0
JobId=8 ArrayJobId=5 ArrayTaskId=2 JobName=job JobState=TIMEOUT Reason=TimeLimit ExitCode=0:15
JobId=9 ArrayJobId=5 ArrayTaskId=5 JobName=job JobState=FAILED Reason=None ExitCode=0:9
JobId=10 ArrayJobId=5 ArrayTaskId=6 JobName=job JobState=OUT_OF_MEMORY Reason=OutOfMemory ExitCode=0:125
JobId=11 ArrayJobId=5 ArrayTaskId=7-8,10 JobName=job JobState=CANCELLED Reason=None ExitCode=0:0
JobId=12 ArrayJobId=5 ArrayTaskId=11 JobName=job JobState=COMPLETING Reason=None ExitCode=0:0
"""


def test_what_the_controller_shows_is_read_as_codes() -> None:
    running, ended = slurm.ended_in(SHOWN)
    assert running == 2
    assert ended == [
        Ended("0", 0), Ended("1", 143), Ended("2", 143, "timeout"), Ended("5", 137), Ended("6", 137, "out of memory"),
        Ended("7", 143, "cancelled"), Ended("8", 143, "cancelled"), Ended("10", 143, "cancelled"),
    ]  # fmt: skip
    assert slurm.ended_in("") == (0, [])


def test_what_is_missing_here_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KEY", raising=False)
    job = request(env={"KEY": True})
    assert slurm.lacks(job, profile("slurm"), True) == ["there is no sbatch here", "KEY is not set here"]
    assert slurm.lacks(job, profile("slurm"), False) == []
