"""Where the CPU goes in one cycle (ask, take, report): python -m bench.profile_cycle

A sampler, because a tracing profiler costs several times what it measures here: every half millisecond it notes which
function runs, so a share is a share of the unprofiled time. What a C function or a system call takes stands under the
line that called it. Shares of less than a percent are noise.
"""

from __future__ import annotations

import argparse
import linecache
import re
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from bench.cycle import CONTESTANTS, HERE, fill, places

EVERY_S = 0.0005
SHOWN = 30
# (step of the cycle, functions it is entered by); the outermost one found in the stack counts
STEPS = (
    ("refresh: what is new", {"refresh"}),
    ("ask the sampler", {"ask"}),
    ("claim", {"claim_attempt"}),
    ("report and close", {"close", "report", "done"}),
    ("keep in the view what was claimed and closed", {"own", "_take_mine"}),
    ("read the history", {"finished_of", "in_flight_of", "settled"}),
)
_CALL = re.compile(
    r"\bos\.(?:open|write|close|link|unlink|replace|rename|fsync|stat|lstat|fstat|read|scandir|mkdir|utime)\("
)


class Samples:
    """Counts by step, by package, by function, by system call."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.packages: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def take(self, number: int, frame: FrameType | None) -> None:
        """One sample: what runs now."""
        assert frame is not None
        name, file = frame.f_code.co_name, frame.f_code.co_filename
        package, where = place(file)
        call = _CALL.search(linecache.getline(file, frame.f_lineno or 0))
        self.packages["system calls" if call else package] += 1
        self.functions[f"{where} {name}"] += 1
        if call:
            self.calls[call[0].rstrip("(")] += 1
        step = "the loop around it"
        at: FrameType | None = frame
        while at is not None:
            if "/dibs/" in at.f_code.co_filename:
                step = next((step for step, names in STEPS if at.f_code.co_name in names), step)
            at = at.f_back
        self.steps[step] += 1


def place(file: str) -> tuple[str, str]:
    """(package, file) of a function, without this machine's folders."""
    parts = Path(file).parts
    if "dibs" in parts:
        inside = parts[len(parts) - parts[::-1].index("dibs") :]
        return f"dibs/{inside[0].removesuffix('.py')}", "/".join(inside)
    return "other Python", Path(file).name


def main() -> None:
    """Fill a store, run, print."""
    parser = argparse.ArgumentParser(description="Where the CPU goes in one cycle.")
    parser.add_argument("--size", type=int, default=100, help="trials in the study beforehand (%(default)s)")
    parser.add_argument("--count", type=int, default=5000, help="trials to sample (%(default)s)")
    parser.add_argument("--what", choices=sorted(CONTESTANTS), default="loop", help="(%(default)s)")
    parser.add_argument("--disk", action="store_true", help="on the disk instead of in memory")
    given = parser.parse_args()
    folder = list(places(HERE).values())[-1 if given.disk else 0]
    samples = Samples()
    with tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=folder) as work:
        root = Path(work) / "store"
        fill(root, given.size)
        trial = CONTESTANTS[given.what](root, given.size)
        for n in range(given.size, given.size + 10):
            trial(n)
        signal.set_wakeup_fd(-1)  # the worker's beating thread need not hear of the samples
        signal.signal(signal.SIGALRM, samples.take)
        began = time.process_time()
        signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)
        for n in range(given.size + 10, given.size + 10 + given.count):
            trial(n)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        us = (time.process_time() - began) / given.count * 1e6
    print(
        f"{given.what}, {given.size} trials in the study: {us:.0f} us of CPU per trial, {samples.steps.total()} samples"
    )
    for title, counts, most in (
        ("step (all that is done in it)", samples.steps, None),
        ("package (its own code)", samples.packages, None),
        ("system call", samples.calls, None),
        ("function (its own code and the C functions it calls)", samples.functions, SHOWN),
    ):
        table(title, counts, samples.steps.total(), us, most)


def table(title: str, counts: Counter[str], whole: int, us: float, most: int | None) -> None:
    """Shares of the whole, largest first."""
    print(f"\n{'us':>7} {'share':>6}  {title}")
    for name, count in counts.most_common(most):
        print(f"{us * count / whole:7.1f} {count / whole:6.1%}  {name}")


if __name__ == "__main__":
    main()
