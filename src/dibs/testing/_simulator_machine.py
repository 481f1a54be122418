"""Simulated machines: clocks that are wrong and drift, hosts that reboot, seeded entropy, process tables.

``gone`` is answered from the truth, within what a real machine could know: same host, boot and namespace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from dibs._clock import Clock
from dibs.record import Who

from ._simulator_world import Process, World

__all__ = ["EPOCH", "Host", "SimClock", "SimMachine"]

EPOCH = 1_800_000_000.0


@dataclass
class Host:
    """A machine: what its clock shows is ``EPOCH + skew_s + (1 + drift) * simulated time``."""

    name: str
    skew_s: float = 0.0
    drift: float = 0.0
    boot: int = 0
    next_pid: int = 100
    processes: dict[str, Process] = field(default_factory=dict)  # token -> process
    seen: dict[str, float] = field(default_factory=dict)  # key -> as of when its clients saw it last


class SimClock:
    """A machine's clock; ``sleep`` gives way to everybody else."""

    def __init__(self, world: World, host: Host) -> None:
        self._world, self._host = world, host

    def wall(self) -> float:
        return EPOCH + self._host.skew_s + self.monotonic()

    def monotonic(self) -> float:
        return self._world.now * (1.0 + self._host.drift)

    def sleep(self, seconds: float) -> None:
        self._world.pause(seconds / (1.0 + self._host.drift))


class SimMachine:
    """The machine as one process sees it. ``last_nonce``: the newest nonce drawn here, for the oracle."""

    def __init__(self, world: World, host: Host, process: Process, rng: Random) -> None:
        self.clock: Clock = SimClock(world, host)
        self.last_nonce = ""
        self._host, self._process, self._rng = host, process, rng
        self._pid = host.next_pid
        host.next_pid += 1
        self._boot = f"boot-{host.name}-{host.boot}"
        self._token = f"ns-{self._pid}"
        host.processes[self._token] = process

    def entropy(self, size: int) -> bytes:
        drawn = self._rng.randbytes(size)
        if size == 16:
            self.last_nonce = drawn.hex()
        return drawn

    def pid(self) -> int:
        return self._pid

    def who(self, me: str) -> dict[str, Any]:
        return {"me": me, "host": self._host.name, "boot": self._boot, "pid": self._pid, "token": self._token}

    def gone(self, who: Who) -> bool:
        if who.host != self._host.name or who.boot != self._boot:
            return False
        process = self._host.processes.get(who.token)
        return process is not None and not process.alive
