"""``python -m bench.sink``: what a sink costs, each beside the system calls that it cannot do without, in turn.

CPU time of this process; medians over the rounds, and the median of the ratios within a round. Writes docs/reference/benchmarks-sink.md.
"""

# Plain strings and os calls in the raw loops: a Path costs as much as the system call behind it.
# ruff: noqa: PTH105, PTH108, PTH116, PTH118, PTH208

from __future__ import annotations

import argparse
import datetime
import gc
import os
import pickle
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.cycle import HERE, places

from dibs import Sink, __version__
from dibs.sink import _marks

PAGE = HERE.parent / "docs" / "reference" / "benchmarks-sink.md"
PROCESSES = 64
PARAMS = {"lr": 0.001, "layers": 3, "opt": "adam", "momentum": 0.9, "batch": 64}
ARTIFACT = {"weights": os.urandom(100_000)}
BODY = b"x" * 400  # a metadata file is about that long

Action = Callable[[], object]
Pair = tuple[str, int, Action, str, Action]  # what, how often in a window, ours, its floor in words, its floor


def write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, data)
    os.close(fd)


def replace(folder: str, name: str) -> None:
    temp = os.path.join(folder, "raw-temp")
    write(temp, BODY)
    os.replace(temp, os.path.join(folder, name))


def pairs(folder: str) -> list[Pair]:
    """Everything that is measured in one folder."""
    numbers, models, full = (Sink(os.path.join(folder, name)) for name in ("numbers", "models", "full"))
    raw = os.path.join(folder, "raw")
    for place in (numbers.folder, models.folder, full.folder, raw):
        Path(place).mkdir()
    for process in range(PROCESSES):
        _marks.forget(full.folder)
        full.record(float(process), artifact=ARTIFACT, params=PARAMS)
    full_paths = [os.path.join(full.folder, name) for name in os.listdir(full.folder)]
    metadata = [path for path in full_paths if path.endswith(".json")]
    blob = next(path for path in full_paths if path.endswith(".pkl"))
    scores, serial = iter(range(10**9)), iter(range(10**9))
    blobs = [os.path.join(raw, "blob")]
    write(blobs[0], b"")
    numbers.record(1e12, params=PARAMS)

    def model() -> None:
        blobs.append(os.path.join(raw, f"blob-{next(serial)}"))
        write(blobs[-1], pickle.dumps(ARTIFACT, protocol=5))
        replace(raw, "kept")
        os.unlink(blobs.pop(0))
        replace(raw, "seen")

    def read() -> None:
        os.listdir(full.folder)
        for path in (*metadata, blob):
            fd = os.open(path, os.O_RDONLY)
            os.read(fd, 200_000 if path is blob else 4096)
            os.close(fd)

    best = iter(range(2 * 10**12, 10**15))
    return [
        ("`record`, not the best of its process", 2000, lambda: numbers.record(0.5, params=PARAMS),
         "one `stat` of a file", lambda: os.stat(raw)),
        ("`record`, the best, numbers only", 20, lambda: numbers.record(float(next(best)), params=PARAMS),
         "open, write, close, rename", lambda: replace(raw, "seen")),
        ("`record`, the best, with 100 kB", 20, lambda: models.record(float(next(scores)), artifact=ARTIFACT, params=PARAMS),
         "pickle; the same twice, and a new file for an old one", model),
        (f"`best()` over {PROCESSES} processes", 2, full.best, f"list, read {len(metadata)} small files and one blob", read),
    ]  # fmt: skip


def cpu(action: Action, times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        action()
    return (time.process_time() - began) / times


def rows(place: str, folder: str, rounds: int) -> list[str]:
    """Each pair in turn, ours first in every second round."""
    found = []
    everything = pairs(folder)
    took: dict[str, list[tuple[float, float]]] = {what: [] for what, *_ in everything}
    gc.disable()
    for turn in range(rounds + 1):
        for what, times, ours, _, floor in everything:
            if turn % 2:
                one, other = cpu(ours, times), cpu(floor, times)
            else:
                other, one = cpu(floor, times), cpu(ours, times)
            if turn:  # the first is a warm-up
                took[what].append((one, other))
    gc.enable()
    for what, _, _, floor, _ in everything:
        ours_us = statistics.median(one for one, _ in took[what]) * 1e6
        floor_us = statistics.median(other for _, other in took[what]) * 1e6
        ratio = statistics.median(one / other for one, other in took[what])
        found.append(f"| {place} | {what} | {ours_us:,.1f} | {floor}: {floor_us:,.1f} | {ratio:.1f}x |")
        print(found[-1], file=sys.stderr)
    return found


def page(lines: list[str], rounds: int) -> str:
    """The page, written by what it describes."""
    machine = (
        f"{platform.system()}, {os.cpu_count()} shared cores, Python {platform.python_version()}, dibs {__version__}, "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    )
    table = "\n".join(lines)
    return f"""# What a sink costs

Microseconds of CPU time, each beside the system calls that it could not do without, measured in turn; what counts is the ratio. Parameters
are five, an artefact is 100 kB of bytes; a model costs its own pickling on top.

| where | what | µs | beside | ratio |
|---|---|--:|---|--:|
{table}

Medians of {rounds} rounds on {machine}. A trial that is not its process's best makes no call to the disk. Of n trials in random
order in one process about ln n are a best when they come: 5 of 100, 7 of 1,000. Rerun: `python -m bench.sink`.
"""


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.sink", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="(%(default)s)")
    parser.add_argument("--dry", action="store_true", help="print the page instead of writing it")
    given = parser.parse_args()
    lines = []
    for place, disk in places(HERE).items():
        with tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=disk) as folder:
            lines += rows(place, folder, given.rounds)
    text = page(lines, given.rounds)
    print(text)
    if not given.dry:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
