"""Jobs of Ray as they are planned: lines that a shell reads back word for word; a real Ray is in tests/integrations/heavy."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.launch.jobs import HERE, HOSTILE, profile, request

from dibs.launch import _ray as ray

ADDRESS = "http://h:8265"


def test_one_job_for_each_worker_with_what_ray_finds_a_node_by() -> None:
    job = request(resources={"cpus": 2, "memory": "1GB", "disk": "9T", "gpu": {"name": "t4", "count": 2}})
    there = profile("ray", address=ADDRESS, resources={"special": 1})
    plan = ray.plan(job, there, "/s", HERE)
    assert plan == ray.plan(job, there, "/s", HERE)
    assert plan.options == {
        "address": ADDRESS,
        "asked": {
            "entrypoint_num_cpus": 2, "entrypoint_num_gpus": 2, "entrypoint_memory": 1_000_000_000,
            "entrypoint_resources": {"special": 1},
        },
    }  # fmt: skip
    assert [f"DIBS_ME=ray-job-{at}" in call.argv[2] for at, call in enumerate(plan.calls)] == [True] * 3
    assert ray.plan(request(), profile("ray", address=ADDRESS), "/s", HERE).options["asked"] == {}


def test_a_shell_reads_what_was_said(tmp_path: Path) -> None:
    folder = tmp_path / HOSTILE.replace("/", "")
    folder.mkdir()
    show = ["python3", "-c", "import os, sys; print([os.getcwd(), os.environ['ODD'], os.environ['DIBS_STORE'], *sys.argv[1:]])", HOSTILE]  # fmt: skip
    job = replace(request(run=show, env={"ODD": HOSTILE, "KEY": True}, workers=1), workdir=str(folder))
    (call,) = ray.plan(job, profile("ray", address=ADDRESS), HOSTILE, HERE).calls
    environ = {"PATH": "/usr/bin:/bin", "KEY": "k"}
    done = subprocess.run(call.argv, env=environ, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == f"{[str(folder), HOSTILE, HOSTILE, HOSTILE]}\n"
    del environ["KEY"]
    done = subprocess.run(call.argv, env=environ, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0
    assert "KEY: goes by its name, and is not set on this machine" in done.stderr


def test_what_is_missing_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ray.lacks(request(workdir="sub"), profile("ray"), False) == [
        'its profile has no address: put address = "http://HOST:8265" into [ray]',
        "workdir sub must be an absolute path there",
    ]
    assert ray.lacks(request(), profile("ray", address=ADDRESS), False) == []
    monkeypatch.setattr(ray, "find_spec", lambda name: None)
    assert ray.lacks(request(), profile("ray", address=ADDRESS), True) == [
        "Ray is not installed here: pip install 'dibs[ray]'"
    ]
