"""Racing for names, one after the other, as close together as machines without a common clock can come.

Nobody says "now" for each name: all go through the same names in the same order, and *whoever wins waits a bit* while
whoever loses goes on at once. So the one behind catches up, however different the machines are, and they meet again
and again. How often they really met is counted afterwards (``contested``), and a race without that proves nothing.
"""

from __future__ import annotations

import threading
from pathlib import Path
from statistics import median

from dibs._clock import Clock
from dibs.errors import StoreError
from dibs.store import Machine

from ._models import Lap
from ._ways import Way, way

__all__ = ["alone", "lap", "name_of"]

_LONGEST_STREAK = 3  # who wins again and again waits longer: the other one is slower than it


def lap(way: Way, names: range, pace_s: float, limit_s: float, machine: Machine) -> Lap:
    """Try to claim each name in turn; ``pace_s``: the slowest racer's attempt. Stops after ``limit_s``."""
    clock, seen, took, streak = machine.clock, Lap(), [], 0
    began = clock.monotonic()
    for n in names:
        before = clock.monotonic()
        if before - began > limit_s:
            break
        try:
            won = way.claim(name_of(n))
        except StoreError as wrong:
            seen.broken = str(wrong)
            break
        took.append(clock.monotonic() - before)
        seen.tried += 1
        streak = min(_LONGEST_STREAK, streak + 1) if won else 0
        if won is None:
            seen.unsure.append(n)
        elif won:
            seen.won.append(n)
            _wait(clock, 2 * streak * pace_s * machine.entropy(1)[0] / 255)
    seen.robbed = way.robbed
    seen.attempt_s = median(took) if took else 0.0
    return seen


def alone(name: str, folder: Path, machine: Machine, names: int = 40, racers: int = 4) -> tuple[str, list[Lap]]:
    """Race threads of this process: ("" or why the way does not work, what each saw)."""
    laps: list[Lap] = [Lap() for _ in range(racers)]
    try:
        ways = [way(name, folder, machine, seat) for seat in range(racers)]
        if ways[0].claim("first") is not True or ways[-1].claim("first") is not False:
            return "a second claim of one name is not refused", []
    except StoreError as wrong:
        return str(wrong), []
    gate = threading.Barrier(racers)

    def race(seat: int, way: Way) -> None:
        gate.wait()
        laps[seat] = lap(way, range(names), 0.0, 10.0, machine)

    threads = [threading.Thread(target=race, args=each) for each in enumerate(ways)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return next((lap.broken for lap in laps if lap.broken), ""), laps


def name_of(n: int) -> str:
    """The n-th name of a lap."""
    return f"{n:04d}"


def _wait(clock: Clock, seconds: float) -> None:
    if seconds > 0:
        clock.sleep(seconds)
