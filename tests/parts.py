"""What tests have in common: a machine whose clock and luck are the test's own, records by hand, programs."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dibs.backend import Backend, MemoryBackend
from dibs.record import Who
from dibs.store import Store

_SERIAL = itertools.count(1)  # over all machines: a nonce is nobody else's


@contextmanager
def memory_kills(*, ours: bool) -> Iterator[None]:
    """Whoever has the kernel kill for memory (``ours``) is alone with it: one counter tells everybody on the machine.

    A program that is killed by hand meanwhile would pass for one that memory had run out for.
    """
    with Path(tempfile.gettempdir(), f"dibs-tests-memory-kills-{os.getuid()}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if ours else fcntl.LOCK_SH)
        yield


class FakeClock:
    """Time that passes only when somebody sleeps or the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def wall(self) -> float:
        return 1_800_000_000.0 + self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class FakeMachine:
    """One machine and process; ``dead`` holds the pids it knows to be gone."""

    def __init__(self, pid: int = 1, host: str = "fake") -> None:
        self.clock = FakeClock()
        self._pid, self._host = pid, host
        self.dead: set[int] = set()

    def entropy(self, size: int) -> bytes:
        return next(_SERIAL).to_bytes(max(size, 16), "big")[-size:]

    def pid(self) -> int:
        return self._pid

    def become(self, pid: int) -> None:
        """What a fork does to the child's copy."""
        self._pid = pid

    def who(self, me: str) -> dict[str, Any]:
        return {"me": me, "host": self._host, "boot": "b", "pid": self._pid, "token": f"t-{self._pid}"}

    def gone(self, who: Who) -> bool:
        return who.pid in self.dead


def store_over(backend: Backend | None = None, machine: FakeMachine | None = None, patience_s: float = 5.0) -> Store:
    """A store on a fake machine, in memory unless a backend is given."""
    return Store.over(
        backend if backend is not None else MemoryBackend(), machine or FakeMachine(), patience_s=patience_s
    )


def plant(store: Store, key: str, data: bytes | str | dict[str, Any]) -> None:
    """Put bytes under a key as a whole, whoever owns it: what a person or a broken disk does."""
    if isinstance(data, dict):
        data = json.dumps(data)
    raw = data if isinstance(data, bytes) else data.encode()
    there = store.backend.read(key)
    draft = store.backend.stage(raw)
    try:
        if there is not None and store.backend.traits.conditional_replace:
            store.backend.replace(key, draft, there.version)
        elif there is None:
            store.backend.create(key, draft)
        else:
            store.backend.replace(key, draft, None)
    finally:
        store.backend.discard(draft)


def body_at(store: Store, key: str) -> dict[str, Any]:
    """The JSON object under a key."""
    there = store.backend.read(key)
    assert there is not None, f"there is no {key}"
    body: dict[str, Any] = json.loads(there.data)
    return body


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """What the calls return, all started at the same moment in threads of their own."""
    gate = threading.Barrier(len(calls))
    answers: list[Any] = [None] * len(calls)

    def go(at: int) -> None:
        gate.wait()
        answers[at] = calls[at]()

    threads = [threading.Thread(target=go, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def dibs(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, started in that folder."""
    return subprocess.run([sys.executable, "-m", "dibs", *words], cwd=cwd, capture_output=True, text=True, timeout=120)


def script(path: Path, text: str) -> Path:
    """A file that can be executed."""
    path.write_text(text)
    path.chmod(0o755)
    return path
