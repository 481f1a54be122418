"""The manifest, field by field, and what a Job's end means; the official client looks at it in tests/integrations/heavy."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.launch.jobs import HERE, HOSTILE, profile, request

from dibs.launch import Plan, Request
from dibs.launch import _kubernetes as kubernetes
from dibs.launch._manifest import manifest
from dibs.launch._plan import Ended

SECRET = {"KEY": {"name": "wandb", "key": "token"}}


def made(job: Request | None = None, **said: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(spec of the Job, of its pods, their container)."""
    found = manifest(job or request(), profile("kubernetes", image="i", **said), "/data/s")
    pod = found["spec"]["template"]["spec"]
    return found["spec"], pod, pod["containers"][0]


def test_one_index_for_each_worker_and_a_disruption_counts_for_nothing() -> None:
    job, pod, container = made(at_once=2, retries=3, grace_s=45)
    assert (job["completionMode"], job["completions"], job["parallelism"]) == ("Indexed", 3, 2)
    assert (job["backoffLimitPerIndex"], pod["restartPolicy"], pod["terminationGracePeriodSeconds"]) == (3, "Never", 45)
    first, second = job["podFailurePolicy"]["rules"]
    assert first == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert (second["action"], second["onExitCodes"]["containerName"]) == ("FailIndex", container["name"])


def test_resources_are_asked_for_and_memory_and_devices_are_limits() -> None:
    job = request(
        resources={"cpus": 2, "memory": "1GB", "disk": "2GB", "time": "90s", "gpu": {"name": "t4", "count": 2}}
    )
    _, pod, container = made(job)
    asked = {"cpu": "2", "memory": "1000000000", "ephemeral-storage": "2000000000", "nvidia.com/gpu": "2"}
    assert container["resources"] == {
        "requests": asked, "limits": {"memory": "1000000000", "nvidia.com/gpu": "2"},
    }  # fmt: skip
    assert pod["activeDeadlineSeconds"] == 90
    assert made(job, gpu_resource="amd.com/gpu")[2]["resources"]["limits"]["amd.com/gpu"] == "2"
    assert made()[2]["resources"] == {}
    assert "activeDeadlineSeconds" not in made()[1]


def expanded(text: str, known: dict[str, str]) -> str:
    """What Kubernetes makes of a word: ``$$`` is a dollar, ``$(NAME)`` a known variable's value, all else as it is."""
    return re.sub(
        r"\$(\$|\(([^)]*)\))", lambda m: "$" if m[1] == "$" else known.get(m[2], m[0]), text
    )  # fmt: skip


@pytest.mark.parametrize("odd", [HOSTILE, "$(DIBS_STORE)", "$$(DIBS_STORE)", "a$", "$$", "$$$(X)$"])
def test_words_and_values_arrive_as_they_were_said(odd: str) -> None:
    _, _, container = made(request(run=["echo", odd], env={"ODD": odd}))
    assert [expanded(word, {"DIBS_STORE": "/data/s"}) for word in container["command"]] == ["echo", odd]
    assert (
        expanded(next(each["value"] for each in container["env"] if each["name"] == "ODD"), {"DIBS_STORE": "s"}) == odd
    )


def test_a_secret_is_named_and_a_worker_is_called_as_its_pod() -> None:
    _, _, container = made(request(env={"KEY": True}), secrets=SECRET)
    env = {each["name"]: each for each in container["env"]}
    assert env["KEY"] == {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "token"}}}
    assert env["DIBS_ME"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert env["DIBS_STORE"]["value"] == "/data/s"


def test_what_a_profile_says_is_where_it_belongs() -> None:
    toleration = {"key": "gpu", "operator": "Exists"}
    _, pod, container = made(
        request(workdir="/app"), pull_policy="Always", service_account="sa", node_selector={"a": "b"},
        tolerations=[toleration], volumes=[{"claim": "c", "mount": "/data"}], before="true",
    )  # fmt: skip
    assert (container["workingDir"], container["imagePullPolicy"], pod["serviceAccountName"]) == (
        "/app",
        "Always",
        "sa",
    )
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"a": "b"}, [toleration])
    assert pod["volumes"] == [{"name": "volume-0", "persistentVolumeClaim": {"claimName": "c"}}]
    assert container["volumeMounts"] == [{"name": "volume-0", "mountPath": "/data"}]
    assert container["command"] == ["sh", "-c", "set -e\ntrue\nset +e\nexec dibs run search.py"]


@pytest.mark.parametrize(
    ("name", "label"), [("job", "job-"), ("My_Job.2", "my-job-2-"), ("A" * 50, "a" * 45 + "-"), ("0.", "0-")]
)
def test_a_name_becomes_a_label(name: str, label: str) -> None:
    assert manifest(request(name=name), profile("kubernetes", image="i"), "s")["metadata"]["generateName"] == label


def plan(**said: Any) -> Plan:
    return kubernetes.plan(request(), profile("kubernetes", image="i", **said), "/data/s", HERE)


def test_the_plan_is_pure_and_hands_it_to_kubectl() -> None:
    assert plan() == plan()
    words = plan(context="c", namespace="n").calls[0].argv
    assert words == ("kubectl", "--context=c", "--namespace=n", "create", "-o", "name", "-f", "-")


def test_what_is_missing_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    job = request(env={"KEY": True}, workdir="sub")
    lacking = kubernetes.lacks(job, profile("kubernetes"), False)
    assert [reason[:20] for reason in lacking] == [
        "its profile has no i",
        "KEY goes by its name",
        "workdir sub must be ",
    ]
    whole = profile("kubernetes", image="i", secrets=SECRET)
    assert kubernetes.lacks(request(env={"KEY": True}), whole, False) == []
    assert kubernetes.lacks(request(env={"KEY": True}), whole, True) == ["there is no kubectl here"]


def pod(index: str, code: int, at: str, **where: Any) -> dict[str, Any]:
    seen = {"containerStatuses": [{"state": {"terminated": {"exitCode": code, "finishedAt": at}}}]}
    return {
        "metadata": {where.get("where", "labels"): {"batch.kubernetes.io/job-completion-index": index}},
        "status": seen,
    }


def test_the_end_of_a_job_is_read_index_by_index() -> None:
    status = {
        "completedIndexes": "0-1,4", "failedIndexes": "2,3,5",
        "conditions": [{"type": "FailureTarget", "status": "True", "reason": "x"}, {"type": "Failed", "status": "True", "reason": "FailedIndexes"}],
    }  # fmt: skip
    pods = [
        pod("2", 137, "2026-01-02T00:00:00Z"),
        pod("2", 1, "2026-01-01T00:00:00Z"),
        pod("3", 6, "", where="annotations"),
        pod("0", 9, "z"),
    ]
    assert kubernetes.ended_in({"status": status}, pods, 6) == [
        Ended("0", 0), Ended("1", 0), Ended("2", 137, "FailedIndexes"), Ended("3", 6, "FailedIndexes"), Ended("4", 0),
        Ended("5", 1, "FailedIndexes"),
    ]  # fmt: skip
