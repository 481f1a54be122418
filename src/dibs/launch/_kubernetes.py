"""Workers as the pods of an Indexed Job: a manifest, printed, or handed to ``kubectl``, which knows how to reach the cluster."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from dibs._clock import Clock
from dibs.errors import UsageError

from ._manifest import manifest
from ._plan import INTERRUPTED, Call, Ended, Here, Plan, Started
from ._profile import Profile
from ._request import Request
from ._script import wants_of

__all__ = ["ended_in", "lacks", "plan", "start", "wait"]

_POLL_S, _SLOWEST_S, _WAIT_S = 2.0, 20.0, 120.0
_INDEX = "batch.kubernetes.io/job-completion-index"


def lacks(request: Request, profile: Profile, acting: bool) -> list[str]:
    """What a manifest needs, and ``kubectl`` if it is to be used."""
    secrets = profile.options.get("secrets", {})
    missing = [] if "image" in profile.options else ['its profile has no image: put image = "..." into [kubernetes]']
    missing += [
        f"{name} goes by its name, and [kubernetes.secrets] does not say which secret has it: {name} = {{name, key}}"
        for name in wants_of(request, profile)
        if name not in secrets
    ]
    if request.workdir is not None and not request.workdir.startswith("/"):
        missing.append(f"workdir {request.workdir} must be an absolute path of the image there")
    return missing + (["there is no kubectl here"] if acting and shutil.which("kubectl") is None else [])


def plan(request: Request, profile: Profile, store: str, here: Here) -> Plan:
    """One manifest; its Job gets a name of its own each time it is created."""
    text = json.dumps(manifest(request, profile, store), indent=2)
    path = str(request.kept / "kubernetes.json")
    call = Call((*_kubectl(profile), "create", "-o", "name", "-f", "-"))
    return Plan(
        "kubernetes", profile.name, request.name, store, request.workers, (call,), {path: text},
        options={"kubectl": _kubectl(profile)},
    )  # fmt: skip


def start(plan: Plan, wait: bool) -> Started:
    """Create the Job. Raises UsageError with the words of kubectl."""
    (call,), (path,) = plan.calls, plan.files
    done = _ask(call.argv, Path(path).read_text(encoding="utf-8"))
    name = done.stdout.strip()
    if done.returncode or not name:
        raise UsageError(f"kubectl refused: {_words(done.stderr or done.stdout) or f'exit status {done.returncode}'}")
    kubectl = shlex.join(plan.options["kubectl"])
    short = name.rpartition("/")[2]
    look = (f"{kubectl} get {name}", f"{kubectl} logs -f -l batch.kubernetes.io/job-name={short} --prefix")
    return Started(plan, (short,), f"{kubectl} delete {name}", name, look)


def wait(started: Started, clock: Clock, say: Callable[[str], None]) -> list[Ended]:
    """Asks until the Job is complete or failed. Whatever interrupts it leaves the Job as it is."""
    kubectl, workers = started.plan.options["kubectl"], started.plan.workers
    (name,) = started.ids
    pause, failing = _POLL_S, False
    try:
        while True:
            done = _ask([*kubectl, "get", "job", name, "-o", "json"])
            if done.returncode and "NotFound" in done.stderr:
                return [Ended(str(at), INTERRUPTED, "the Job was deleted") for at in range(workers)]
            if done.returncode and not failing:
                say(f"the cluster does not answer, and is asked again: {_words(done.stderr)}")
            failing = bool(done.returncode)
            if not failing:
                job = json.loads(done.stdout)
                if _over(job):
                    pods = _ask([*kubectl, "get", "pods", "-l", f"batch.kubernetes.io/job-name={name}", "-o", "json"])
                    return ended_in(job, json.loads(pods.stdout)["items"] if pods.returncode == 0 else [], workers)
            clock.sleep(pause)
            pause = min(_SLOWEST_S, pause * 1.3)
    except BaseException:
        say(f"the Job {name} runs on: {started.stop} ends it")
        raise


def ended_in(job: dict[str, Any], pods: Iterable[dict[str, Any]], workers: int) -> list[Ended]:
    """How each index ended: 0 if the Job says that it succeeded, else the last exit code that its pods tell, else 1."""
    status = job.get("status", {})
    good = _indexes(status.get("completedIndexes", ""))
    why = next((each.get("reason", "") for each in status.get("conditions", ()) if each["type"] == "Failed"), "")
    codes: dict[int, tuple[str, int]] = {}
    for pod in pods:
        at = pod["metadata"].get("labels", {}).get(_INDEX) or pod["metadata"].get("annotations", {}).get(_INDEX, "")
        for each in pod.get("status", {}).get("containerStatuses", ()):
            seen = each.get("state", {}).get("terminated")
            if at.isdigit() and seen:
                found = (seen.get("finishedAt") or "", int(seen.get("exitCode", 1)))
                codes[int(at)] = max(codes.get(int(at), found), found)
    return [
        Ended(str(at), 0) if at in good else Ended(str(at), codes.get(at, ("", 1))[1] or 1, why)
        for at in range(workers)
    ]


def _over(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions", ())
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def _indexes(text: str) -> set[int]:
    """``0-2,5`` as numbers."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _kubectl(profile: Profile) -> tuple[str, ...]:
    said = profile.options
    return (
        "kubectl",
        *((f"--context={said['context']}",) if "context" in said else ()),
        *((f"--namespace={said['namespace']}",) if "namespace" in said else ()),
    )


def _ask(words: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, input=text, capture_output=True, text=True, timeout=_WAIT_S, check=False)
    except FileNotFoundError:
        raise UsageError("there is no kubectl here: install it, or pipe the manifest to where it is") from None
    except (OSError, subprocess.TimeoutExpired) as wrong:
        return subprocess.CompletedProcess(list(words), 1, "", str(wrong))


def _words(text: str) -> str:
    return " ".join(text.split())[:300]
