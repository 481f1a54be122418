"""The page that bench/scale.py writes: the bars first, then one table per question."""

from __future__ import annotations

import datetime
import os
import platform
from typing import Any

# table -> (title, columns, what to know)
TABLES = {
    "cycle": (
        "One cycle in a study of any size",
        ["where", "what", "trials there", "ms", "by raw calls", "means", "by the smallest"],
        (
            "Ask, claim, report, durable when that returns; the random sampler, five floats. CPU of the process, medians of "
            "windows of 25 trials, all sizes and the raw calls in the same rounds. *Means* is the ratio of the means, which "
            "have in them what is done only now and then (a roll every 64 to 128 trials)."
        ),
    ),
    "peers": (
        "The peers' cycle",
        ["what", "trials there", "ms", "by raw calls", "by dibs"],
        (
            "One ask and one tell with the random sampler and five floats, in memory (tmpfs), at the sizes that could be made "
            "in bounded time. NePS runs 25 trials per call, as its workers do."
        ),
    ),
    "join": (
        "A fresh process joins",
        ["trials", "MB", "ms", "all decoded, ms", "ratio", "what is kept decoded, ms", "ratio"],
        (
            "All that a new worker reads before it can ask, against two processes that read the same bytes (the rolls, and "
            "the records that no roll holds) and decode them, once into full records and once into the fields a reader keeps."
        ),
    ),
    "nothing": (
        "Nothing new since the last look",
        ["trials", "ms, median", "ms, worst window"],
        "A refresh by a worker that has the study, when nobody did anything since. Windows of 20.",
    ),
    "crowd": (
        "Many processes claim at once",
        ["processes", "claims per second, all together", "by one process", "names tried per claim"],
        (
            "Each refreshes, claims, closes and starts over, with nothing to compute in between, on so many cores as there are: "
            "the worst case for collisions. Everybody also reads what everybody else did, so that the sum falls."
        ),
    ),
    "sleep": (
        "Twice as many workers",
        ["what", "4 workers, trials/s", "8 workers, trials/s", "8 by 4"],
        "An objective that sleeps 50 ms.",
    ),
    "memory": (
        "Memory",
        ["trials", "bare process, MB", "the study on top, MB", "bytes per trial", "its history on top, MB"],
        "Resident memory with dibs imported and the store open, and what reading the study adds.",
    ),
    "start": (
        "Start",
        ["program", "ms", "by the libraries"],
        (
            "Fresh processes from start to end, all modules compiled beforehand. `import dibs` loads what is used when it is "
            "used; the last line is what a worker loads."
        ),
    ),
}


def page(report: Any) -> str:
    """The page, written by what it describes."""
    from dibs import __version__

    machine = (
        f"{platform.system()}, {os.cpu_count()} shared cores, Python {platform.python_version()}, dibs {__version__}, "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    )
    bars = [["promise", "bar", "measured", "verdict"]]
    for bar in report.bars:
        bars.append(
            [bar.text, f"{'at most' if bar.most else 'at least'} {bar.limit:g} {bar.unit}", bar.shown, bar.verdict]
        )
    parts = [
        "# Does it stay flat?",
        (
            "What a trial, a join, a look and a crowd cost as a study grows to 100,000 trials, each as a ratio to something "
            f"measured in the same rounds. Measured on {machine}; medians of {report.rounds} rounds; values are rounded "
            "against us. Rerun: `python -m bench.scale` (about a quarter of an hour; `--quick` for a first look)."
        ),
        rows(bars),
    ]
    for name, (title, columns, known) in TABLES.items():
        if name in report.tables:
            parts += [f"## {title}", known, rows([columns, *report.tables[name]])]
    if report.notes:
        parts += ["## Not measured", "\n".join(f"- {note}" for note in report.notes)]
    return "\n\n".join(parts) + "\n"


def rows(cells: list[list[str]]) -> str:
    """A table; the first row is its head."""
    head, *body = cells
    lines = [" | ".join(head), "|".join("---" for _ in head), *(" | ".join(row) for row in body)]
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)
