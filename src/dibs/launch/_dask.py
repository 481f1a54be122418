"""Workers as tasks of a Dask cluster: one at an address, or one of this process's own, which ends with it.

A task whose Dask worker is lost is run again elsewhere, as often as the scheduler's ``allowed-failures`` says (3): the same
command again is all that a worker needs.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from dibs._clock import Clock
from dibs.errors import UsageError

from ._plan import INTERRUPTED, KILLED, Call, Ended, Here, Plan, Started
from ._profile import Profile
from ._request import Request
from ._script import argv_of, env_for, wants_of

__all__ = ["lacks", "plan", "start", "wait"]

_CONNECT_S = 10
_GRACE_S = 30
_LATE_S = 5.0  # after the grace: what does not end then is killed with its cluster
_LOOK_S = 0.2


def lacks(request: Request, profile: Profile, acting: bool) -> list[str]:
    """The client; variables that go by their names, where the cluster is this process's own."""
    if not acting:
        return []
    missing = [] if find_spec("distributed") else ["Dask is not installed here: pip install 'dibs[dask]'"]
    if "address" not in profile.options:
        missing += [f"{name} is not set here" for name in wants_of(request, profile) if name not in os.environ]
    return missing


def plan(request: Request, profile: Profile, store: str, here: Here) -> Plan:
    """One task for each worker."""
    calls = tuple(
        Call(
            argv_of(request, profile),
            {"DIBS_STORE": store, "DIBS_ME": f"dask-{request.name}-{at}", **env_for(request, profile)},
            request.place,
            str(request.kept / f"dask-{at}.log"),
            wants_of(request, profile),
        )
        for at in range(request.workers)
    )
    options = {"grace_s": _GRACE_S, **profile.options, "must": request.workdir is not None or profile.shares}
    return Plan(
        "dask", profile.name, request.name, store, request.workers, calls, options=options,
        look=(f"the logs {request.kept}/dask-*.log, where that folder is there",),
    )  # fmt: skip


def start(plan: Plan, wait: bool) -> Started:
    """Hand the tasks in. Raises UsageError if no scheduler answers at the address."""
    from distributed import Client, LocalCluster, fire_and_forget
    from distributed.comm import resolve_address

    from ._dask_task import work

    address = plan.options.get("address")
    cluster = None
    if address is None:
        cluster = LocalCluster(
            n_workers=plan.workers, threads_per_worker=1, memory_limit=0, dashboard_address=None, host="127.0.0.1"
        )  # fmt: skip
    try:
        if address is not None:
            resolve_address(address)  # what is malformed would leave a client that ends noisily
        client = Client(cluster or address, timeout=_CONNECT_S, set_as_default=False)
    except Exception as wrong:  # a malformed address is a ValueError, one without a scheduler an OSError, and so on
        raise UsageError(f"no Dask scheduler answers at {address}: {' '.join(str(wrong).split())[:200]}") from None
    token = os.urandom(4).hex()
    keys = [f"dibs-{plan.name}-{at}-{token}" for at in range(plan.workers)]
    resources = plan.options.get("resources")
    futures = [
        client.submit(work, {**call.to_json(), **_more(plan)}, key=key, pure=False, resources=resources)
        for key, call in zip(keys, plan.calls, strict=True)
    ]
    if not wait:
        fire_and_forget(futures)
        client.close()
    return Started(plan, tuple(keys), _stop(address, keys), (client, cluster, futures))


def wait(started: Started, clock: Clock, say: Callable[[str], None]) -> list[Ended]:
    """Until all tasks are over. Whoever waits owns them: Ctrl-C and SIGTERM ask the workers to end."""
    from distributed import as_completed

    client, cluster, futures = started.handle
    at = {future.key: number for number, future in enumerate(futures)}
    ended: dict[int, Ended] = {}
    with _terminated():
        try:
            for future in as_completed(futures, loop=client.loop):
                each = _ended(str(at[future.key]), future)
                ended[at[future.key]] = each
                say(f"worker {each.worker} ended with {each.code}{f', {each.why}' if each.why else ''}")
        except BaseException:
            say("the workers are asked to end")
            with suppress(Exception):
                client.cancel(futures)
                _drained(client, clock, started.plan.options["grace_s"] + _LATE_S)
            raise
        finally:
            with suppress(Exception):
                client.close()
                if cluster is not None:
                    cluster.close()
    return [ended[number] for number in sorted(ended)]


def _more(plan: Plan) -> dict[str, Any]:
    return {"grace_s": float(plan.options["grace_s"]), "must": plan.options["must"]}


def _ended(worker: str, future: Any) -> Ended:
    if future.cancelled():
        return Ended(worker, INTERRUPTED, "its task was cancelled, or the scheduler went away")
    wrong = future.exception()
    if wrong is None:
        told = future.result()
        return Ended(worker, told["code"], told["why"])
    if type(wrong).__name__ == "KilledWorker":
        return Ended(worker, KILLED, "it was lost with its Dask worker, again and again")
    return Ended(worker, 1, f"{type(wrong).__name__}: {' '.join(str(wrong).split())[:200]}")


def _drained(client: Any, clock: Clock, most_s: float) -> None:
    """Until no program of ours runs in the cluster."""
    from ._dask_task import busy

    late = clock.monotonic() + most_s
    while sum(client.run(busy).values()) and clock.monotonic() < late:
        clock.sleep(_LOOK_S)


def _stop(address: str | None, keys: list[str]) -> str:
    if address is None:
        return "Ctrl-C"
    lines = (
        f"from distributed import Client, Future; c = Client({address!r}); "
        f"c.cancel([Future(k, c) for k in {keys}], force=True)"
    )
    return shlex.join([sys.executable, "-c", lines])


@contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM ends this process the orderly way; put back afterwards."""

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(INTERRUPTED)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
