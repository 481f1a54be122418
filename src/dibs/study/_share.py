"""A worker's share of its machine, fixed before the process loads anything: threads, cores, devices.

What the user has set in the environment stays. Numeric libraries read it once, when they are imported, so it is
in place when the process starts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path

__all__ = ["cores_of", "quiet_start"]

_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


def cores_of(seat: int, cpus: int, cores: Sequence[int]) -> list[int]:
    """Which cores the worker in a seat is bound to: sets that do not meet as far as the cores reach, then again."""
    return sorted({cores[(seat * cpus + at) % len(cores)] for at in range(cpus)})


@contextmanager
def quiet_start(workers: int, seat: int, cpus: int | None, environ: Mapping[str, str]) -> Iterator[None]:
    """Start a child in here: Ctrl-C is held off until it has a process group of its own, and it gets its share.

    ``cpus``: cores for it alone, None = as many threads as its part of all cores. ``environ``: set for it besides.
    """
    resource_tracker.ensure_running()  # it would undo the mask, and is nobody's share
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threads = str(cpus or max(1, _cores() // workers))
    changed = {**{name: threads for name in _THREADS if name not in os.environ}, **environ}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)  # before the child imports numpy: BLAS looks once
    try:
        with _bound(seat, cpus):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


@contextmanager
def _bound(seat: int, cpus: int | None) -> Iterator[None]:
    """This thread on the seat's cores, which what it starts inherits; nothing where the platform has no affinity."""
    if cpus is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores_of(seat, cpus, sorted(mine)))
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def _cores() -> int:
    """The processors this process may use: its affinity, and what a container's quota leaves of it (cgroup v2)."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or "max"
        return cores
