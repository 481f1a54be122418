"""Devices of this host, each to one worker process at a time, whichever study of the store it works for.

A device is a slot whose generations are free names (``gpu/<host>/<boot>/<device>/<generation>``). The parent takes
them before it starts a worker, because the process must see them from its first instruction; the worker takes them
over by the next generation, so that they stay taken while it lives, were its parent killed at any instruction.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dibs.errors import UsageError
from dibs.store import HostKeys, Store

from ._slots import Hold, Slots, Standing

__all__ = ["VISIBLE", "Devices", "Lease", "pool_of"]

VISIBLE = "CUDA_VISIBLE_DEVICES"
_NOBODY = ("", "-1", "NoDevFiles", "void", "none")  # what CUDA and Slurm write for none
_HOW = f"name a pool: {VISIBLE}=0,1 dibs run ..."
_WAIT_S = 30.0


def pool_of(environ: Mapping[str, str], count: int) -> list[str]:
    """The devices to choose from, as CUDA would name them. Raises UsageError if they are fewer than one worker needs.

    What ``CUDA_VISIBLE_DEVICES`` says, indexes or UUIDs; else all that ``nvidia-smi`` counts.
    """
    preset = environ.get(VISIBLE)
    if preset is not None:
        found = [name.strip() for name in preset.split(",")]
        found = [] if found[0] in _NOBODY else found
        if len(set(found)) < len(found) or "" in found:
            raise UsageError(f"{VISIBLE}={preset} names a device twice, or none at one place: name each once")
        source = f"{VISIBLE}={preset}"
    else:
        found = [str(at) for at in range(_counted())]
        source = "nvidia-smi"
    if not found:
        raise UsageError(f"there is no device for gpus={count} ({source}): {_HOW}")
    if len(found) < count:
        raise UsageError(f"a worker should have {count} devices and there are {len(found)} ({source}): {_HOW}")
    return found


def _counted() -> int:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=_WAIT_S, check=True).stdout
        return len(re.findall(r"^GPU \d+:", said, re.M))
    return 0


class HostRack:
    """``name/gpu%2f<host>...``: the slots of some devices, as all runs of this host and pid namespace see them.

    Inside a Slurm job the names count within that job, as its devices do.
    """

    def __init__(self, store: Store, devices: Sequence[str], environ: Mapping[str, str], me: str | None) -> None:
        who = store.machine.who("")
        place = f"{who['host']}/{who['boot'][:8] or 'boot'}-{who['token'].rpartition('-')[0] or '0'}"
        job = environ.get("SLURM_JOB_ID")
        self.store, self.devices, self.me, self.count = store, list(devices), me, len(devices)
        self._keys = HostKeys("gpu", f"{place}/slurm-{job}" if job else place)

    def key(self, slot: int, generation: int) -> str:
        return self._keys.key(self.devices[slot], generation)

    def newest(self, slot: int) -> int:
        names = self.store.backend.names("name/")
        found = (self._keys.generation(self.devices[slot], name) for name in names)
        return max((generation for generation in found if generation is not None), default=-1)

    def body(self, slot: int, generation: int) -> dict[str, Any]:
        name = self._keys.name(self.devices[slot], generation)
        return {**self.store.head("name", self.me), "name": name, "digest": None, "meta": {"gpu": self.devices[slot]}}


@dataclass(frozen=True, eq=False)
class Lease:
    """Devices that a parent process has taken for one worker, on their way to it."""

    slots: Slots
    taken: tuple[tuple[int, int], ...]  # (slot, generation)
    environ: dict[str, str]

    def take_over(self) -> list[Hold] | None:
        """The worker's own holds, by the next generations; None if somebody else has one (the parent is dead).

        They end with the process, not before: until then it may still have memory on the device.
        """
        holds: list[Hold] = []
        for slot, generation in self.taken:
            hold = self.slots.claim(slot, generation + 1)
            if hold is None:
                for other in holds:
                    other.release()
                return None
            holds.append(hold)
        return holds


@dataclass
class Devices:
    """The parent's side: ``lease`` takes the devices of one worker, ``back`` lets go of what it took."""

    store: Store
    pool: Sequence[str]
    count: int  # devices a worker
    environ: Mapping[str, str]
    me: str | None
    beat_s: float
    stale_s: float
    _holds: dict[Lease, list[Hold]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rack = HostRack(self.store, self.pool, self.environ, self.me)
        what = f"the pool of {len(self.pool)} device{'s' * (len(self.pool) != 1)} on this host"
        self.slots = Slots(self.store, rack, what, self.beat_s, self.stale_s)

    def lease(self) -> Lease | None:
        """All the devices one worker needs, or None: they are held by others. Raises StoreError, UnsureError."""
        stands = self.slots.look()
        if sum(standing is not Standing.HELD for standing in stands.values()) < self.count:
            return None
        holds = list(self._some())
        if len(holds) < self.count:  # another run was faster: all or nothing, so that two do not wait for each other
            _release(holds)
            return None
        names = [self.pool[hold.n] for hold in sorted(holds, key=lambda hold: hold.n)]
        taken = tuple((hold.n, hold.generation) for hold in holds)
        lease = Lease(self.slots, taken, {VISIBLE: ",".join(names)})
        self._holds[lease] = holds
        return lease

    def back(self, lease: Lease) -> None:
        """The worker has ended, or was never started: what it did not take over is free again."""
        _release(self._holds.pop(lease, []))

    def holders(self) -> str:
        """Who holds devices of the pool, for people."""
        held = [slot for slot, standing in self.slots.look().items() if standing is Standing.HELD]
        return ", ".join(f"{self.pool[slot]} by {self.slots.holder(slot)}" for slot in held)

    def _some(self) -> Iterator[Hold]:
        for _ in range(self.count):
            hold = self.slots.take()
            if hold is None:
                return
            yield hold


def _release(holds: Sequence[Hold]) -> None:
    for hold in holds:
        hold.release()
