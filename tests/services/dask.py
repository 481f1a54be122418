"""A Dask cluster of the tests' own: a scheduler and workers on the loopback, each a process with a pid that is ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.services.mounts import free_port, process, until


@dataclass(frozen=True)
class Dask:
    """``workers``: name -> process."""

    address: str
    workers: dict[str, subprocess.Popen[bytes]]


@contextmanager
def dask(folder: Path, names: tuple[str, ...] = ("one", "two"), **environ: str) -> Iterator[Dask]:
    """Start it, and end it. ``environ``: of its scheduler. The workers have one thread each and no nanny: who is killed stays away."""
    if find_spec("distributed") is None:
        pytest.skip("distributed is not installed: make test-services installs it")
    address = f"tcp://127.0.0.1:{free_port()}"
    common = [sys.executable, "-m", "distributed.cli"]
    head = [
        f"{common[2]}.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        address.rpartition(":")[2],
        "--no-dashboard",
    ]
    with ExitStack() as stack:
        scheduler = stack.enter_context(process([*common[:2], *head], folder / "scheduler.out", **environ))
        until(
            lambda: "Scheduler at" in (folder / "scheduler.out").read_text(), f"a scheduler (see {folder})", scheduler
        )
        words = [
            *common[:2], f"{common[2]}.dask_worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny",
            "--no-dashboard", "--local-directory", str(folder), "--memory-limit", "0",
        ]  # fmt: skip
        workers = {
            name: stack.enter_context(process([*words, "--name", name], folder / f"{name}.out")) for name in names
        }
        for name in names:
            until(
                lambda name=name: "Registered to" in (folder / f"{name}.out").read_text(),
                f"worker {name} (see {folder})",
            )
        yield Dask(address, workers)
