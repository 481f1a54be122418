"""``python -m bench``: everything. One cycle everywhere (docs/reference/benchmarks.md), then whether it stays flat
(bench.scale), then a bucket simulated, in its short form (bench.simulate).
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import tempfile
from pathlib import Path

from bench import scale, simulate
from bench.cycle import HERE, ROUNDS, SIZES, Peer, Row, measure, places

PAGE = HERE.parent / "docs" / "reference" / "benchmarks.md"
NAMES = {
    "raw": "raw system calls",
    "loop": "dibs, `study.trials`",
    "functions": "dibs, `take` and `report`",
    "optuna": "Optuna journal file",
}


def table(rows: list[Row]) -> str:
    """One line per place and size: median milliseconds of CPU per trial, the ratio to the raw calls in brackets."""
    names = [name for name in NAMES if any(row.name == name for row in rows)]
    lines = [
        "| where | trials | " + " | ".join(NAMES[name] for name in names) + " |",
        "|---|--:|" + "--:|" * len(names),
    ]
    for place, size in dict.fromkeys((row.place, row.size) for row in rows):
        found = {row.name: row for row in rows if (row.place, row.size) == (place, size)}
        cells = [
            f"{found[name].median_ms:.2f}" + ("" if name == "raw" else f" ({found[name].ratio:.1f}x)")
            if name in found
            else ""
            for name in names
        ]
        lines.append(f"| {place} | {size:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def means(rows: list[Row]) -> str:
    """The same with means: the work that is done only now and then (a roll every 64 to 128 trials) is in them."""
    return table(
        [Row(row.place, row.size, row.name, row.mean_ms, row.mean_ms, row.mean_ms / floor(rows, row)) for row in rows]
    )


def floor(rows: list[Row], of: Row) -> float:
    """The raw loop's mean in the same place and size."""
    return next(row.mean_ms for row in rows if (row.place, row.size, row.name) == (of.place, of.size, "raw"))


def page(rows: list[Row], peer: str | None, rounds: int) -> str:
    """The page, written by what it describes."""
    from dibs import __version__

    versions = f"dibs {__version__}" + (f", Optuna {peer}" if peer else "")
    machine = (
        f"{platform.system()}, {os.cpu_count()} shared cores, Python {platform.python_version()}, "
        f"{versions}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    )
    return f"""# Benchmarks

One full cycle of one worker: ask for a point (five floats, random sampler), claim the trial, report its score, durable
when that returns. Milliseconds of CPU time per trial in a study that has so many trials already; in brackets the ratio
to the raw system calls. Ratios are what to compare: the machine is shared, and another one has other milliseconds.

{table(rows)}

Medians of {rounds} windows. Means, which have in them what is done only now and then (every 64 to 128 trials a worker
writes a roll, so that others read them in one piece):

{means(rows)}

Measured on {machine}.

- *Raw system calls*: open, write and close a temporary, link it to its name, unlink it; open, write, fsync and close a
  temporary, rename it over the name, fsync the folder. The bytes of a real record, the least Python around them.
- *`study.trials`*: the loop of a worker, with its refresh of what others did and its beating thread.
- *`take` and `report`*: the functions, with the history read by `finished` and `in_flight` before every ask.
- *Optuna journal file*: `ask` with five distributions and `tell`, `JournalStorage` over `JournalFileBackend` with its
  default lock; it syncs every append, several per trial.

Every contestant is a process of its own; one round asks each in turn for a few trials, so that whatever else the machine
does hits all of them, and a ratio is that of two windows of one round. Rerun: `make bench` (two to five minutes; it
installs the peer into `bench/.venv` once). Where the time goes: `python -m bench.profile_cycle`.
"""


def main() -> None:
    """Measure, write the page, print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="CPU time of one cycle, as ratios.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="windows per contestant (%(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="trials in the study (%(default)s)")
    parser.add_argument("--no-peer", action="store_true", help="do not install and measure Optuna")
    parser.add_argument("--dry", action="store_true", help="print the page instead of writing it")
    parser.add_argument("--cycle", action="store_true", help="measure the cycle alone")
    given = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=HERE) as work:
        peer = None if given.no_peer else Peer(Path(work))
        for place, folder in places(HERE).items():
            rows += measure(place, folder, peer, tuple(given.sizes), given.rounds)
        text = page(rows, peer.version if peer else None, given.rounds)
    if given.dry:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
        print(table(rows))
        print(f"written to {PAGE.relative_to(HERE.parent)}", file=sys.stderr)
    if not given.cycle:
        scale.main([*(["--no-peers"] if given.no_peer else []), *(["--dry"] if given.dry else [])])
        simulate.main(["--short"])


if __name__ == "__main__":
    main()
