"""This machine, measured; workers that are started, waited for, asked to end, or not there."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.launch.jobs import HERE, HOSTILE, profile, request

from dibs._clock import SystemClock
from dibs.errors import UsageError
from dibs.launch import Gpu, here, local_profile
from dibs.launch import _local as local
from dibs.launch._script import argv_of

SMI = """#!/bin/sh
[ "$1" = --query-gpu=name,memory.total ] || exit 9
printf 'NVIDIA A100, 40960\\nTesla T4, 15360\\nNVIDIA A100, 40960\\nodd, [N/A]\\n'
"""


def test_what_is_there_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    offers = local_profile(tmp_path).offers
    assert offers.cpus == len(os.sched_getaffinity(0))
    assert offers.disk_bytes is not None
    assert 0 < offers.disk_bytes <= shutil.disk_usage(tmp_path).total
    assert offers.memory_bytes is not None
    assert 0 < offers.memory_bytes <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert offers.gpus == ()
    smi = tmp_path / "nvidia-smi"
    smi.write_text(SMI)
    smi.chmod(smi.stat().st_mode | stat.S_IXUSR)
    assert local_profile(tmp_path).offers.gpus == (
        Gpu("NVIDIA A100", 2, 40960 << 20), Gpu("Tesla T4", 1, 15360 << 20), Gpu("odd", 1, None),
    )  # fmt: skip


def test_a_file_says_more_than_what_is_measured(tmp_path: Path) -> None:
    given = profile("local", offers={"cpus": 7}, before=["export A=1"])
    found = local_profile(tmp_path, given)
    assert found.offers.cpus == 7
    assert found.offers.memory_bytes == local_profile(tmp_path).offers.memory_bytes
    assert found.before == ("export A=1",)


def test_the_plan_is_the_same_for_the_same_words_and_workers_differ_by_name() -> None:
    job = request(env={"A": "1", "KEY": True})
    plan = local.plan(job, profile("local"), "/s", HERE)
    assert plan == local.plan(job, profile("local"), "/s", HERE)
    assert [call.environ for call in plan.calls] == [
        {"DIBS_STORE": "/s", "DIBS_ME": f"node-{at}", "A": "1"} for at in range(3)
    ]
    assert {call.argv for call in plan.calls} == {("dibs", "run", "search.py")}
    assert len({call.log for call in plan.calls}) == 3


def test_words_reach_the_program_as_they_are_through_the_lines_before_it(tmp_path: Path) -> None:
    words = ["python3", "-c", "import sys, os; print(sys.argv[1:], os.environ['HOOK'])", HOSTILE, ""]
    job = replace(request(run=words), folder=tmp_path, workers=1)
    there = profile("local", before=["HOOK=set", "export HOOK"])
    started = local.start(local.plan(job, there, "/s", here()), True)
    assert [each.code for each in local.wait(started, SystemClock(), print)] == [0]
    assert (tmp_path / ".dibs/launch/job/local-0.log").read_text() == f"{[HOSTILE, '']} set\n"


def test_a_line_is_the_shells_and_a_line_before_it_that_fails_ends_the_worker(tmp_path: Path) -> None:
    job = replace(request(run="echo one; exit 3"), folder=tmp_path, workers=2)
    started = local.start(local.plan(job, profile("local"), "/s", here()), True)
    assert [each.code for each in local.wait(started, SystemClock(), print)] == [3, 3]
    started = local.start(local.plan(job, profile("local", before="false"), "/s", here()), True)
    assert [each.code for each in local.wait(started, SystemClock(), print)] == [1, 1]
    assert (tmp_path / ".dibs/launch/job/local-0.log").read_text() == "one\n"


@pytest.mark.parametrize(("run", "code"), [(["sh", "-c", "kill -KILL $$"], 137), (["sh", "-c", "kill $$"], 143)])
def test_a_signal_that_ends_a_worker_is_its_code(run: list[str], code: int, tmp_path: Path) -> None:
    job = replace(request(run=run), folder=tmp_path, workers=1)
    started = local.start(local.plan(job, profile("local"), "/s", here()), True)
    assert [each.code for each in local.wait(started, SystemClock(), print)] == [code]


LEAVES = """
import sys
from dataclasses import replace
from pathlib import Path
from tests.launch.jobs import profile, request
from dibs.launch import _local as local, here

job = replace(request(run=["sleep", "1000"]), folder=Path(sys.argv[1]), workers=1)
print(*local.start(local.plan(job, profile("local"), "/s", here()), False).ids)
"""


def test_who_leaves_workers_running_is_not_warned_of_them(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "always", "-c", LEAVES, str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    os.kill(int(done.stdout), signal.SIGKILL)  # it runs on
    assert done.stderr == ""


def test_what_is_not_there_is_said_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY", raising=False)
    job = replace(request(run=["no-such-program"], env={"KEY": True}), folder=tmp_path)
    assert local.lacks(job, profile("local"), True) == ["KEY is not set here"]
    gone = replace(job, workdir="gone")
    assert local.lacks(gone, profile("local"), True) == [
        f"there is no folder {tmp_path}/gone here",
        "KEY is not set here",
    ]
    assert local.lacks(gone, profile("local"), False) == []
    with pytest.raises(UsageError, match="there is no program 'no-such-program' to run"):
        local.start(local.plan(job, profile("local"), "/s", here()), True)
    blocked = replace(request(run=["true"]), folder=tmp_path)
    (tmp_path / ".dibs").write_text("a file")
    with pytest.raises(UsageError, match="no worker could be started"):
        local.start(local.plan(blocked, profile("local"), "/s", here()), True)


def test_a_variable_that_goes_by_its_name_is_asked_for_and_its_value_written_nowhere() -> None:
    job, there = request(env={"KEY": True}), profile("local")
    script = argv_of(job, there, ("KEY",))[2]
    assert '"${KEY:?' in script
    assert argv_of(job, there) == ("dibs", "run", "search.py")
