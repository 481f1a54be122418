"""What files ask for and offer: read strictly, with a remedy for every mistake; fitting is arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.launch.jobs import profile, request

from dibs.errors import UsageError
from dibs.launch import KINDS, Gpu, Profile, Request, Resources, fit, outlived
from dibs.launch._plan import Ended, worst


def test_a_job_is_read_with_its_constraints() -> None:
    job = request(
        candidates=["a", "local", "a"], workdir="sub", env={"A": "1", "KEY": True},
        resources={"cpus": "2+", "memory": "24GB+", "disk": "1.5GiB", "time": "1h30m", "gpu": {"name": "a100", "memory": "24GB"}},
    )  # fmt: skip
    gpu = Gpu("a100", 1, 24_000_000_000)
    assert job.resources == Resources(2, 24_000_000_000, 3 << 29, 5400.0, (gpu,))
    assert (job.name, job.workers, job.candidates) == ("job", 3, ("a", "local"))
    assert job.run == ("dibs", "run", "search.py")
    assert job.env == {"A": "1", "KEY": None}
    assert (job.place, str(job.kept)) == ("/jobs/sub", "/jobs/.dibs/launch/job")
    assert Resources.of({"gpu": 2}, "r").gpus == (Gpu(None, 2, None),)
    assert Resources.of({"gpu": 0}, "r").gpus == ()


@pytest.mark.parametrize(("store", "read"), [("s", "/jobs/s"), ("/s", "/s"), ("s3://b/p", "s3://b/p"), ("~/s", "~/s")])
def test_a_store_in_a_job_is_relative_to_it(store: str, read: str) -> None:
    assert request(store=store).store == read


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ({"worker": 3}, r"unknown key 'worker': did you mean workers\?"),
        ({"zzz": 3}, r"the keys are candidates, env"),
        ({"run": []}, r"run must be words"),
        ({"run": "  "}, r"run must be words"),
        ({"run": ["a", 1]}, r"run must be words"),
        ({"run": ["a\0"]}, r"run must be words"),
        ({"workers": 0}, r"workers must be a whole number of at least 1, not 0"),
        ({"workers": True}, r"workers must be a whole number"),
        ({"name": "a/b"}, r"name must be a name of letters"),
        ({"name": "-x"}, r"name must be a name of letters"),
        ({"candidates": "local"}, r"candidates must be a list of texts"),
        ({"resources": 3}, r"resources must be a table"),
        ({"resources": {"memroy": "1G"}}, r"resources: unknown key 'memroy': did you mean memory\?"),
        ({"resources": {"memory": "24 apples"}}, r"memory must be a size such as"),
        ({"resources": {"memory": 0}}, r"memory must be a size such as"),
        ({"resources": {"time": "soon"}}, r"time must be a duration such as"),
        ({"resources": {"time": 0}}, r"time must be a duration such as"),
        ({"resources": {"cpus": "two"}}, r"cpus must be a whole number"),
        ({"resources": {"gpu": {"cuont": 1}}}, r"gpu: unknown key 'cuont': did you mean count\?"),
        ({"resources": {"gpu": [{}, {}]}}, r"gpu must be one table"),
        ({"env": {"A B": "1"}}, r"'A B' cannot be the name of a variable"),
        ({"env": {"A": 1}}, r"A must be a text, or true"),
        ({"workdir": "a\nb"}, r"workdir must be a text on one line"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_job_is_named_with_its_remedy(said: dict[str, Any], remedy: str) -> None:
    with pytest.raises(UsageError, match=remedy):
        request(**said)


def test_a_job_has_something_to_run_and_a_name_that_any_platform_takes() -> None:
    with pytest.raises(UsageError, match="there is nothing to run"):
        Request.of({}, "job", Path("/jobs"), "job.toml")
    with pytest.raises(UsageError, match="must be a table"):
        Request.of([], "job", Path("/jobs"), "job.toml")
    assert Request.of({"run": "x"}, "my job (2)", Path("/jobs"), "f").name == "my-job--2-"
    assert Request.of({"run": "x"}, "...", Path("/jobs"), "f").name == "job"


@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        ({}, r"it has no kind: put kind = "),
        ({"kind": "slrum"}, r"there is no kind 'slrum': did you mean slurm\?"),
        ({"kind": "ssh"}, r"it must be one of local, slurm, dask, ray, kubernetes"),
        ({"kind": ["slurm"]}, r"there is no kind"),
        ({"kind": "slurm", "dask": {}}, r"unknown key 'dask'"),
        ({"kind": "slurm", "slurm": {"partiton": "x"}}, r"slurm: unknown key 'partiton': did you mean partition\?"),
        ({"kind": "slurm", "slurm": {"options": ["x"]}}, r"must be options such as --nice=10"),
        ({"kind": "slurm", "slurm": {"at_once": 0}}, r"at_once must be a whole number of at least 1"),
        ({"kind": "dask", "dask": {"resources": {"GPU": -1}}}, r"GPU must be a positive number"),
        ({"kind": "kubernetes", "kubernetes": {"secrets": {"A": {"name": "x"}}}}, r"secrets: A: key must be a text"),
        ({"kind": "kubernetes", "kubernetes": {"volumes": [{"claim": "x"}]}}, r"must say claim, .* and mount"),
        ({"kind": "kubernetes", "kubernetes": {"tolerations": {}}}, r"must be a list of tables"),
        ({"kind": "slurm", "survives": {"stops": []}}, r"survives: unknown key 'stops': did you mean stop\?"),
    ],
)
def test_a_mistake_in_a_profile_is_named_with_its_remedy(table: dict[str, Any], remedy: str) -> None:
    with pytest.raises(UsageError, match=remedy):
        Profile.of(table, "there", "there.toml")


def test_what_is_shared_and_what_stays() -> None:
    assert {name for name in KINDS if profile(name).shares} == {"local", "slurm", "dask"}
    assert {name for name in KINDS if not profile(name).stays} == {"dask"}
    assert not profile("dask", address="tcp://h:1").shares
    assert profile("dask", address="tcp://h:1").stays


OFFERS = {
    "cpus": 8, "memory": "64GiB", "disk": "100GiB", "time": "1d",
    "gpu": [{"name": "NVIDIA A100-SXM4-40GB", "count": 2, "memory": "40960MiB"}, {"name": "Tesla T4", "count": 4, "memory": "15360MiB"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("resources", "reasons"),
    [
        ({}, []),
        ({"cpus": 8, "memory": "64GiB", "disk": "100GiB", "time": "24h"}, []),
        ({"cpus": 9}, ["cpus: 9 wanted, 8 there"]),
        ({"memory": "65GiB+"}, ["memory: 65 GiB wanted, 64 GiB there"]),
        ({"disk": "1T"}, ["disk: 1 TiB wanted, 100 GiB there"]),
        ({"time": "25h"}, ["time: 1d1h wanted, 1d there"]),
        ({"gpu": {"name": "a100", "memory": "24GB+"}}, []),
        ({"gpu": {"name": "t4", "count": 4, "memory": "16GB"}}, []),
        ({"gpu": 4}, []),
        ({"gpu": {"name": "h100"}}, ["gpu: 1 x h100 wanted, 2 x NVIDIA A100-SXM4-40GB of 40 GiB, 4 x Tesla T4 of 15 GiB there"]),
        ({"gpu": {"name": "a100", "count": 3}}, ["gpu: 3 x a100 wanted, 2 x NVIDIA A100-SXM4-40GB of 40 GiB, 4 x Tesla T4 of 15 GiB there"]),
        ({"gpu": {"name": "T4", "memory": "24GB+"}}, ["gpu: 1 x T4 of 22.4 GiB wanted, 2 x NVIDIA A100-SXM4-40GB of 40 GiB, 4 x Tesla T4 of 15 GiB there"]),
        ({"cpus": 9, "disk": "1T"}, ["cpus: 9 wanted, 8 there", "disk: 1 TiB wanted, 100 GiB there"]),
    ],
)  # fmt: skip
def test_what_a_worker_wants_is_held_against_what_there_is(resources: dict[str, Any], reasons: list[str]) -> None:
    assert fit(request(resources=resources), profile("slurm", offers=OFFERS)) == reasons


def test_what_is_not_known_is_not_held_against_a_platform_but_devices_must_be_said() -> None:
    job = request(resources={"cpus": 99, "memory": "9T", "disk": "9T", "time": "99d"})
    assert fit(job, profile("slurm")) == []
    assert fit(request(resources={"gpu": 1}), profile("slurm")) == ["gpu: 1 x any wanted, none there"]


def test_workers_that_are_together_want_it_all_at_once() -> None:
    job = request(resources={"cpus": 3, "time": "20h", "gpu": {"name": "t4", "count": 2}})
    assert fit(job, profile("slurm", offers=OFFERS)) == []
    assert [reason.partition(" there")[0] for reason in fit(job, profile("local", offers=OFFERS))] == [
        "cpus: 3 x 3 wanted, 8",
        "gpu: 6 x t4 wanted, 2 x NVIDIA A100-SXM4-40GB of 40 GiB, 4 x Tesla T4 of 15 GiB",
    ]


@pytest.mark.parametrize(
    ("store", "stop", "lost"),
    [
        ("/mnt/shared/s", ["/mnt/shared"], ""),
        ("/mnt/shared", ["/mnt/shared/"], ""),
        ("/mnt/sharedother/s", ["/mnt/shared"], "/mnt/shared"),
        ("file:///mnt/shared/s", ["/mnt/shared"], ""),
        ("/scratch/s", ["/a", "/b"], "/a, /b"),
        ("/scratch/s", [], "nothing does"),
        ("s3://bucket/s", [], ""),
    ],
)
def test_a_store_that_a_stop_would_take_along_is_no_store(store: str, stop: list[str], lost: str) -> None:
    there = profile("slurm", survives={"stop": stop})
    assert outlived(request(store=store), there, "stop") == lost
    assert outlived(request(store=store), there, "destroy") == ""
    assert bool(fit(request(store=store), there)) is bool(lost)


@pytest.mark.parametrize(
    ("codes", "code"),
    [([0, 0], 0), ([0, 6], 0), ([6, 6], 6), ([6, 1], 6), ([0, 6, 1], 1), ([0, 143], 143), ([], 0)],
)
def test_the_worst_of_codes(codes: list[int], code: int) -> None:
    assert worst([Ended(str(at), each) for at, each in enumerate(codes)]) == code
