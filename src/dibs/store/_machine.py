"""Who is asking: the host, its boot, this process, its entropy and clock; all that is not the store.

A simulator brings machines of its own. ``gone`` is the one certain statement about another process:
same host, same boot, same pid namespace, and that process (pid and start time) does not exist any more.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from dibs._clock import Clock, SystemClock
from dibs.backend import this_process
from dibs.record import Who

__all__ = ["Here", "Machine", "default_me"]

ALIVE_S = 0.1  # many workers on one machine would otherwise read each other's /proc at every step


class Machine(Protocol):
    """What the protocol needs of the machine it runs on."""

    clock: Clock

    def entropy(self, size: int) -> bytes:
        """Unpredictable bytes, anew after a fork; never from a generator that users seed."""
        ...

    def pid(self) -> int:
        """The process's number now (another one after a fork)."""
        ...

    def who(self, me: str) -> dict[str, Any]:
        """The ``who`` of a record."""
        ...

    def gone(self, who: Who) -> bool:
        """Whether that process is certainly dead, as far as this machine can tell."""
        ...


class Here:
    """This machine, this process."""

    def __init__(self) -> None:
        self.clock: Clock = SystemClock()
        self._who: tuple[int, dict[str, Any]] | None = None
        self._alive: dict[tuple[int, str], float] = {}  # (pid, start) of processes -> when they were last seen to live

    def entropy(self, size: int) -> bytes:
        return os.urandom(size)

    pid = staticmethod(this_process)

    def who(self, me: str) -> dict[str, Any]:
        pid = this_process()
        if self._who is None or self._who[0] != pid:
            start = _start(pid)
            token = f"{_namespace()}-{start[0]}" if start else ""
            self._who = (pid, {"host": platform.node(), "boot": _boot(), "pid": pid, "token": token})
        return {"me": me, **self._who[1]}

    def gone(self, who: Who) -> bool:
        """As the protocol says; that a process lives is believed for a tenth of a second."""
        ours = self.who("")
        if not (who.boot and who.token and who.boot == ours["boot"] and who.host == ours["host"]):
            return False
        namespace, _, started = who.token.rpartition("-")
        if not namespace or namespace != ours["token"].rpartition("-")[0]:
            return False
        if (who.pid, who.token) == (ours["pid"], ours["token"]):
            return False
        looked = self.clock.monotonic()
        if looked - self._alive.get((who.pid, started), float("-inf")) < ALIVE_S:
            return False
        now = _start(who.pid)
        # a zombie has ended; only its parent has not looked yet
        if now is None or now[0] != started or now[1] in "ZX":
            self._alive.pop((who.pid, started), None)
            return True
        self._alive[who.pid, started] = looked
        return False


def default_me(environ: Mapping[str, str]) -> str:
    """The readable name: ``DIBS_ME``, else ``slurm-<job>_<task>``, else the host."""
    if environ.get("DIBS_ME"):
        return environ["DIBS_ME"]
    job = environ.get("SLURM_ARRAY_JOB_ID") or environ.get("SLURM_JOB_ID")
    if job:
        task = environ.get("SLURM_ARRAY_TASK_ID", environ.get("SLURM_PROCID", "0"))
        return f"slurm-{job}_{task}"
    return platform.node() or "unnamed"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""  # no /proc: nobody will call this process certainly dead


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def _start(pid: int) -> tuple[str, str] | None:
    """(start time in clock ticks since boot, state letter) of a process (proc(5), stat), None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")  # a command may be called by any bytes
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return fields[19], fields[0]
