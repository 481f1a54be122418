"""What this machine has: the profile of ``local``, which needs no file."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ._plan import Here
from ._profile import Profile
from ._resources import Gpu, Resources

__all__ = ["here", "local_profile"]

_WAIT_S = 30.0
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def here() -> Here:
    """This machine."""
    return Here(platform.node() or "unnamed", str(Path(sys.executable).parent))


def local_profile(folder: Path, given: Profile | None = None) -> Profile:
    """The profile of this machine, for workers that write in ``folder``; what ``given`` (a file) offers wins."""
    measured = Resources(_cores(), _memory(), _room(folder), None, _devices())
    if given is None:
        return Profile("local", "local", measured)
    offers = given.offers
    return replace(
        given,
        offers=Resources(
            offers.cpus or measured.cpus, offers.memory_bytes or measured.memory_bytes,
            offers.disk_bytes or measured.disk_bytes, offers.time_s, offers.gpus or measured.gpus,
        ),
    )  # fmt: skip


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> int | None:
    """All there is, or what the cgroup lets us have of it; what others use of it now may be gone in a minute."""
    found = []
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in _LIMITS:
        with suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return min(found, default=None)


def _room(folder: Path) -> int | None:
    with suppress(OSError):
        return shutil.disk_usage(folder).free
    return None


def _devices() -> tuple[Gpu, ...]:
    """What nvidia-smi lists, one entry for each kind."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    words = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=_WAIT_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    found: Counter[tuple[str, int | None]] = Counter()
    for line in said.splitlines():
        name, _, mib = line.rpartition(",")
        if name.strip():
            found[name.strip(), int(mib) << 20 if mib.strip().isdigit() else None] += 1
    return tuple(Gpu(name, count, memory) for (name, memory), count in found.items())
