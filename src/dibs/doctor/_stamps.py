"""File stamps: how fine they are, and by how much they are ahead of this machine's own clock.

Whose clock stamps a file cannot be told from one machine: only two whose clocks differ can.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import gcd
from pathlib import Path

from dibs.store import Machine

from ._models import Stamps

__all__ = ["ahead_of", "probe", "step_of", "step_text"]

_SECOND = 1_000_000_000
_STAMPS = 12


def probe(path: Path, machine: Machine) -> Stamps:
    """Stamp a file anew some times, as beats do (``os.utime(path, None)``), and compare. Raises OSError."""
    path.touch()
    seen, ahead = [], []
    for _ in range(_STAMPS):
        before = machine.clock.wall()
        os.utime(path, None)
        after = machine.clock.wall()
        stamp = path.stat().st_mtime_ns
        seen.append(stamp)
        ahead.append((stamp / _SECOND - after, stamp / _SECOND - before))
        machine.clock.sleep(0.003)
    step_s = step_of(seen)
    return Stamps(step_s, *ahead_of(ahead, step_s))


def ahead_of(brackets: Sequence[tuple[float, float]], step_s: float) -> tuple[float, float]:
    """(by how much the stamps are ahead, to within so much) of all the (at least, at most) that were seen. Pure."""
    # a stamp is cut down to its step: the truth lies up to one step above
    low, high = max(least for least, _ in brackets), min(most for _, most in brackets) + step_s
    return (low + high) / 2, abs(high - low) / 2


def step_of(stamps_ns: Sequence[int]) -> float:
    """The largest usual step, in seconds, that all stamps are multiples of: 2, 1, 0.1 ... 1e-9. Pure."""
    common = gcd(*stamps_ns)
    steps: list[int] = [2 * _SECOND, *(10**k for k in range(9, -1, -1))]
    return next(step for step in steps if common % step == 0) / _SECOND


def step_text(step_s: float) -> str:
    """``in whole seconds``, ``in steps of 10 ms``, ``finer than a millisecond``. Pure."""
    if step_s >= 1:
        return "in whole seconds" if step_s == 1 else f"in steps of {step_s:g} s"
    return f"in steps of {step_s * 1000:g} ms" if step_s >= 0.001 else "finer than a millisecond"
