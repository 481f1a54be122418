"""Tasks of Dask as they are planned, and what one refuses before it runs; a real cluster is in tests/services."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.launch.jobs import HERE, profile, request

from dibs.launch import Request
from dibs.launch import _dask as dask
from dibs.launch._dask_task import work


def test_one_task_for_each_worker() -> None:
    job = request(env={"A": "1", "KEY": True}, workdir="/data")
    plan = dask.plan(job, profile("dask", address="tcp://h:1", resources={"GPU": 1}), "/s", HERE)
    assert plan == dask.plan(job, profile("dask", address="tcp://h:1", resources={"GPU": 1}), "/s", HERE)
    assert [call.environ["DIBS_ME"] for call in plan.calls] == [f"dask-job-{at}" for at in range(3)]
    assert {(call.argv, call.cwd, call.wants) for call in plan.calls} == {
        (("dibs", "run", "search.py"), "/data", ("KEY",))
    }
    assert plan.options == {"address": "tcp://h:1", "resources": {"GPU": 1}, "grace_s": 30, "must": True}


@pytest.mark.parametrize(
    ("job", "address", "must"),
    [(request(), "tcp://h:1", False), (request(workdir="sub"), "tcp://h:1", True), (request(), None, True)],
)
def test_a_folder_must_be_there_where_it_was_asked_for_or_is_ours(
    job: Request, address: str | None, must: bool
) -> None:
    there = profile("dask", **({"address": address} if address else {}))
    assert dask.plan(job, there, "/s", HERE).options["must"] is must


def test_a_task_refuses_where_what_it_needs_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY", raising=False)
    job = replace(request(env={"KEY": True}), folder=tmp_path / "gone")
    (call, *_) = dask.plan(job, profile("dask"), "/s", HERE).calls
    words = {**call.to_json(), "grace_s": 1.0, "must": True}
    assert work(words) == {"code": 2, "why": "KEY goes by its name, and is not set where Dask's workers run"}
    monkeypatch.setenv("KEY", "k")
    assert work(words) == {"code": 2, "why": f"there is no folder {tmp_path}/gone where Dask's workers run"}


def test_what_goes_by_its_name_must_be_set_where_the_cluster_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY", raising=False)
    job = request(env={"KEY": True})
    assert "KEY is not set here" in dask.lacks(job, profile("dask"), True)
    assert "KEY is not set here" not in dask.lacks(job, profile("dask", address="tcp://h:1"), True)
    assert dask.lacks(job, profile("dask"), False) == []
