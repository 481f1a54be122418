"""What the tormentor does: each torment is one act, chosen and aimed by a seed, and noted before it is done.

Records that it truncates or removes are outside ``once`` and ``kept`` (the design's "by hand"), and only those:
the list it keeps is how the checker knows.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from ._torture_crew import CLOCK, Crew, Worker
from ._torture_disk import Disk

__all__ = ["NOT_ON_A_BUCKET", "TORMENTS", "Tormentor"]

#: name -> how often, compared with the others
TORMENTS = {
    "kill": 5.0, "stop": 2.0, "term": 1.5, "fill": 1.0, "temps": 2.0, "truncate": 1.5, "remove": 1.0, "steer": 1.0,
}  # fmt: skip
NOT_ON_A_BUCKET = ("fill", "temps")  # it has neither a disk that fills nor temporaries that a claim needs
_STEPS = (("wish",), ("wish", "wish"), ("stop", "resume"), ("rescue",), ("retry",), ("attach",))
_DAMAGED = ("trial/", "trial/", "again/", "live/", "roll/", "note/wish/", "given/")


class Tormentor:
    """One seed's worth of trouble for a crew. ``people``: starts a process that steers."""

    def __init__(
        self,
        chance: Random,
        crew: Crew,
        disk: Disk,
        study: str,
        stop_s: tuple[float, float],
        people: Callable[[tuple[str, ...]], None],
    ) -> None:
        self.chance, self.crew, self.disk, self.study = chance, crew, disk, study
        self._stop_s, self._people = stop_s, people
        self.counts = dict.fromkeys((*TORMENTS, "kills of a running trial", "stops of a running trial", "inodes"), 0)
        self.stopped: list[tuple[int, int]] = []  # attempts whose owner was stopped

    def act(self, name: str) -> None:
        """Do it; counted only if there was anything to do it to."""
        self.counts[name] += int(getattr(self, f"_{name}")())

    # processes

    def _kill(self) -> bool:
        aimed = self._aim()
        if aimed is None:
            return False
        worker, pid = aimed
        self.crew.send(worker, pid, signal.SIGKILL, "killed")
        if pid == worker.pid:
            worker.process.wait()
        claim = self.crew.claim(worker, pid)
        if claim is not None:
            body = self.disk.raw(self.study).attempts.get((claim["n"], claim["a"]))
            running = body is not None and body["state"] == "running" and body["nonce"] == claim["nonce"]
            self.counts["kills of a running trial"] += running
        return True

    def _stop(self) -> bool:
        aimed = self._aim(awake=True)
        if aimed is None:
            return False
        worker, pid = aimed
        self.crew.send(worker, pid, signal.SIGSTOP, "stopped")
        worker.stopped[pid] = CLOCK.monotonic() + self.chance.uniform(*self._stop_s)
        claim = self.crew.claim(worker, pid)
        if claim is not None:
            self.counts["stops of a running trial"] += 1
            self.stopped.append((claim["n"], claim["a"]))
        return True

    def _term(self) -> bool:
        awake = [w for w in self.crew.workers if not w.stopped and "termed" not in w.done_to]
        if not awake:
            return False
        worker = self.chance.choice(awake)
        self.crew.send(worker, worker.pid, signal.SIGTERM, "termed")
        worker.deadline = CLOCK.monotonic() + 60.0
        return True

    def _steer(self) -> bool:
        self._people(self.chance.choice(_STEPS))
        return True

    def _aim(self, *, awake: bool = False) -> tuple[Worker, int] | None:
        """A process, most likely one with a trial in its hands; never the last one that is awake."""
        workers = [w for w in self.crew.workers if w.process.poll() is None and not (awake and w.stopped)]
        if len(workers) < 2:
            return None
        aimed = [(worker, pid) for worker in workers for pid in worker.pids() if pid not in self.crew.dead]
        busy = [at for at in aimed if self.crew.claim(*at) is not None]
        return self.chance.choice(busy if busy and self.chance.random() < 0.8 else aimed)

    # the store

    def _fill(self) -> bool:
        if not self.disk.small or self.disk.full:
            return False
        inodes = self.chance.random() < 0.3
        self.counts["inodes"] += inodes
        until = CLOCK.monotonic() + self.chance.uniform(0.3, 2.0)
        self.crew.full.append((CLOCK.monotonic(), float("inf")))
        self.crew.note("full", inodes=inodes)
        self.disk.fill(until, inodes=inodes)
        return True

    def _temps(self) -> bool:
        """Somebody cleans up too eagerly: whatever lies in tmp/ just now."""
        folder, gone = self.disk.store / "tmp", 0
        until = CLOCK.monotonic() + self.chance.uniform(0.1, 0.4)
        while CLOCK.monotonic() < until:
            with suppress(FileNotFoundError), os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        Path(entry.path).unlink()
                        gone += 1
        self.crew.note("temps", gone=gone)
        return gone > 0

    def _truncate(self) -> bool:
        key = self._record()
        if key is None:
            return False
        self.crew.note("damage", how="truncate", key=key)
        self.disk.truncate(key, self.chance.random() if self.chance.random() < 0.7 else 0.0)
        return True

    def _remove(self) -> bool:
        key = self._record()
        if key is None:
            return False
        self.crew.note("damage", how="remove", key=key)
        self.disk.remove(key)
        return True

    def _record(self) -> str | None:
        found = self.disk.keys(f"study/{self.study}/{self.chance.choice(_DAMAGED)}")
        return self.chance.choice(found) if found else None
