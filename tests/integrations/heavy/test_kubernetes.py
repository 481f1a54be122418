"""Every field of a manifest is one that the official client knows, and has its type."""

from __future__ import annotations

import json
from inspect import signature
from types import SimpleNamespace
from typing import Any

import pytest
from tests.launch.jobs import HERE, HOSTILE, profile, request

from dibs.launch import _kubernetes as launched

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]  # the library's own
FULL: dict[str, Any] = {
    "image": "i", "namespace": "n", "service_account": "s", "pull_policy": "Always", "grace_s": 45, "retries": 3, "at_once": 2,
    "node_selector": {"a": "b"}, "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "volumes": [{"claim": "c", "mount": "/data"}], "secrets": {"KEY": {"name": "wandb", "key": "token"}},
}  # fmt: skip
WANTED = {"cpus": 2, "memory": "1GB", "disk": "2GB", "time": "90s", "gpu": {"count": 2}}


def read(text: str) -> Any:
    """The text as the client reads a Job, written again: what it does not know it has dropped."""
    from kubernetes import client

    api = client.ApiClient()
    # later versions take the text, earlier ones an answer that has it
    later = "content_type" in signature(api.deserialize).parameters
    job = (
        api.deserialize(text, "V1Job", "application/json")
        if later
        else api.deserialize(SimpleNamespace(data=text), "V1Job")
    )
    return api.sanitize_for_serialization(job)


@pytest.mark.parametrize("full", [False, True], ids=["least", "full"])
def test_the_official_client_knows_every_field(full: bool) -> None:
    job = request(resources=WANTED, env={"ODD": HOSTILE, "KEY": True}, workdir="/app") if full else request()
    there = profile("kubernetes", **(FULL if full else {"image": "i"}))
    (text,) = launched.plan(job, there, "/data/s", HERE).files.values()
    written = json.loads(text)
    assert read(text) == written
    wrong = text.replace("completionMode", "completionMoed")
    assert read(wrong) != json.loads(wrong), "a field that is none would be seen"
