"""Workers as jobs of a Ray cluster, one each, through its job server: they outlive this client, whose Python and Ray may differ
from the cluster's, and Ray's own tools list and stop them.

What a worker needs is in its lines, quoted, not in Ray's runtime environment, which reads ``${NAME}`` in values.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from dibs._clock import Clock
from dibs.errors import UsageError

from ._plan import INTERRUPTED, Call, Ended, Here, Plan, Started
from ._profile import Profile
from ._request import Request
from ._script import env_for, script_of, wants_of

__all__ = ["lacks", "plan", "start", "wait"]

_POLL_S, _SLOWEST_S = 1.0, 20.0
_OVER = {"SUCCEEDED": 0, "STOPPED": INTERRUPTED, "FAILED": 1}


def lacks(request: Request, profile: Profile, acting: bool) -> list[str]:
    """An address, and the client; a folder to start in must be one of there."""
    missing = [] if "address" in profile.options else ['its profile has no address: put address = "http://HOST:8265" into [ray]']  # fmt: skip
    if request.workdir is not None and not request.workdir.startswith("/"):
        missing.append(f"workdir {request.workdir} must be an absolute path there")
    return missing + (["Ray is not installed here: pip install 'dibs[ray]'"] if acting and not find_spec("ray") else [])


def plan(request: Request, profile: Profile, store: str, here: Here) -> Plan:
    """One call for each worker, and the resources that Ray finds a node by."""
    want, said = request.resources, profile.options
    wants = wants_of(request, profile)
    place = f"cd -- {shlex.quote(request.workdir)} || exit 2\n" if request.workdir else ""
    calls = []
    for at in range(request.workers):
        values = {"DIBS_STORE": store, "DIBS_ME": f"ray-{request.name}-{at}", **env_for(request, profile)}
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
        calls.append(Call(("sh", "-c", place + exports + script_of(request, profile, wants)), wants=wants))
    asked = {
        "entrypoint_num_cpus": want.cpus, "entrypoint_num_gpus": want.gpus[0].count if want.gpus else None,
        "entrypoint_memory": want.memory_bytes, "entrypoint_resources": said.get("resources"),
    }  # fmt: skip
    asked = {name: value for name, value in asked.items() if value is not None}
    return Plan(
        "ray", profile.name, request.name, store, request.workers, tuple(calls),
        options={"address": said.get("address"), "asked": asked},
    )  # fmt: skip


def start(plan: Plan, wait: bool) -> Started:
    """Submit them. Raises UsageError with Ray's words; those that were submitted before are stopped."""
    from ray.job_submission import JobSubmissionClient

    address, token = plan.options["address"], os.urandom(4).hex()
    ids: list[str] = []
    try:
        client = JobSubmissionClient(address)
        for at, call in enumerate(plan.calls):
            name = f"dibs-{plan.name}-{at}-{token}"
            ids.append(client.submit_job(entrypoint=call.argv[2], submission_id=name, **plan.options["asked"]))
    except Exception as wrong:  # ConnectionError, RuntimeError, and what its libraries raise
        for name in ids:
            with suppress(Exception):
                client.stop_job(name)
        raise UsageError(f"Ray's job server at {address} refused, or is not there: {_words(wrong)}") from None
    ray = f"ray job %s --address {shlex.quote(address)}"
    return Started(
        plan, tuple(ids), "; ".join(f"{ray % 'stop'} {name}" for name in ids), client,
        (ray % "list", f"{ray % 'logs'} --follow {ids[0]}"),
    )  # fmt: skip


def wait(started: Started, clock: Clock, say: Callable[[str], None]) -> list[Ended]:
    """Asks until all jobs are over. Whatever interrupts it leaves them as they are."""
    ended: dict[str, Ended] = {}
    pause, failing = _POLL_S, False
    try:
        while len(ended) < len(started.ids):
            for at, name in enumerate(started.ids):
                if name in ended:
                    continue
                try:
                    seen = started.handle.get_job_info(name)
                    failing = False
                except Exception as wrong:
                    if not failing:
                        say(f"Ray does not answer, and is asked again: {_words(wrong)}")
                    failing = True
                    break
                if seen.status.value in _OVER:
                    ended[name] = _ended(str(at), seen)
                    say(f"worker {at} ended with {ended[name].code}")
            if len(ended) < len(started.ids):
                clock.sleep(pause)
                pause = min(_SLOWEST_S, pause * 1.3)
    except BaseException:
        say(f"the jobs run on: {started.stop} ends them")
        raise
    return [ended[name] for name in started.ids]


def _ended(worker: str, seen: Any) -> Ended:
    code = _OVER[seen.status.value]
    own = getattr(seen, "driver_exit_code", None)
    if code == 1 and own:
        code = own if own > 0 else 128 - own
    return Ended(worker, code, "" if code in (0, 6) else " ".join(str(seen.message or "").split())[:200])


def _words(wrong: Exception) -> str:
    return " ".join(str(wrong).split())[:300]
