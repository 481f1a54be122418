"""The manifest of an Indexed Job, field by field (Kubernetes API, batch/v1). Pure.

A dollar sign is doubled wherever Kubernetes would read ``$(NAME)``, so that words and values arrive as they were said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil
from typing import Any

from ._profile import Profile
from ._request import Request
from ._script import argv_of, env_for, wants_of

__all__ = ["GRACE_S", "RETRIES", "manifest"]

GRACE_S, RETRIES = 60, 6
_LONGEST = 45  # of a Job's name, to which a suffix and an index are added: a pod's host name has 63
_NEVER_AGAIN = [2, 4]  # usage, and a definition that differs: the same command would say the same
_LABELS = {"app.kubernetes.io/name": "dibs", "app.kubernetes.io/managed-by": "dibs"}


def manifest(request: Request, profile: Profile, store: str) -> dict[str, Any]:
    """One index for each worker. A pod that is evicted, drained or pre-empted is replaced and counts for nothing; one that
    fails is tried again, for each index by itself."""
    said = profile.options
    container = {
        "name": "worker",
        "image": said["image"],
        "command": [_plain(word) for word in argv_of(request, profile)],
        "env": _env(request, profile, store),
        "resources": _resources(request, said.get("gpu_resource", "nvidia.com/gpu")),
        **({"workingDir": request.workdir} if request.workdir else {}),
        **({"imagePullPolicy": said["pull_policy"]} if "pull_policy" in said else {}),
    }
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": said.get("grace_s", GRACE_S),
        "containers": [container],
    }
    if request.resources.time_s is not None:
        pod["activeDeadlineSeconds"] = ceil(request.resources.time_s)
    for key, field in (("service_account", "serviceAccountName"), ("node_selector", "nodeSelector"), ("tolerations", "tolerations")):  # fmt: skip
        if said.get(key):
            pod[field] = list(said[key]) if key == "tolerations" else said[key]
    if said.get("volumes"):
        names = [f"volume-{at}" for at in range(len(said["volumes"]))]
        pod["volumes"] = [
            {"name": name, "persistentVolumeClaim": {"claimName": each["claim"]}}
            for name, each in zip(names, said["volumes"], strict=True)
        ]
        container["volumeMounts"] = [
            {"name": name, "mountPath": each["mount"]} for name, each in zip(names, said["volumes"], strict=True)
        ]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "generateName": f"{_label(request.name)}-",
            **({"namespace": said["namespace"]} if "namespace" in said else {}),
            "labels": _LABELS,
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": request.workers,
            "parallelism": min(request.workers, said.get("at_once", request.workers)),
            "backoffLimitPerIndex": said.get("retries", RETRIES),
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {
                        "action": "FailIndex",
                        "onExitCodes": {"containerName": "worker", "operator": "In", "values": _NEVER_AGAIN},
                    },
                ]
            },
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    }


def _env(request: Request, profile: Profile, store: str) -> list[dict[str, Any]]:
    values = {"DIBS_STORE": store, **env_for(request, profile)}
    found: list[dict[str, Any]] = [{"name": name, "value": _plain(value)} for name, value in values.items()]
    found.append({"name": "DIBS_ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    secrets: Mapping[str, Any] = profile.options.get("secrets", {})
    for name in wants_of(request, profile):
        found.append({"name": name, "valueFrom": {"secretKeyRef": dict(secrets[name])}})
    return found


def _resources(request: Request, device: str) -> dict[str, dict[str, str]]:
    """Requests; memory and devices are limits, too: a pod over its memory is ended, and devices are not shared."""
    want = request.resources
    asked = {
        "cpu": want.cpus, "memory": want.memory_bytes, "ephemeral-storage": want.disk_bytes,
        device: want.gpus[0].count if want.gpus else None,
    }  # fmt: skip
    requests = {name: str(count) for name, count in asked.items() if count is not None}
    limits = {name: count for name, count in requests.items() if name in ("memory", device)}
    return {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}


def _plain(text: str) -> str:
    return text.replace("$", "$$")


def _label(name: str) -> str:
    """A label of DNS (RFC 1123) that is like the name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST].strip("-") or "dibs"
