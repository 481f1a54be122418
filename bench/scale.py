"""Whether costs stay flat: cycles at 100,000 trials, joining, looking again, many workers, memory, start-up.

    python -m bench.scale [--quick] [--only cycle join ...] [--dry]

Everything is a ratio to something measured in the same rounds. Every bar is printed with what was measured, rounded
against us, and whether it was met. Writes docs/reference/benchmarks-scale.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench._peers import Peer, peers
from bench._scale_page import page
from bench.cycle import HERE, Contestant, contestant, fill, places

PAGE = HERE.parent / "docs" / "reference" / "benchmarks-scale.md"
SERVED = str(HERE / "_served.py")
WINDOW = 25  # trials per window: the same at every size, since the first after a pause costs more
CROWDS = (1, 2, 8, 32)
FILL_S = 45.0  # a peer that needs longer than that for a study of a size is not measured there
SLEEP_S = 0.05
LABELS = {"raw": "raw system calls", "loop": "`study.trials`", "functions": "`take` and `report`"}


@dataclass(frozen=True)
class Bar:
    """A promise and what was measured; ``most``: the value must not be above, else it must not be below."""

    text: str
    limit: float
    value: float
    unit: str = "x"
    most: bool = True

    @property
    def met(self) -> bool:
        return self.value <= self.limit if self.most else self.value >= self.limit

    @property
    def shown(self) -> str:
        """The value to two places, rounded against us."""
        rounding = math.ceil if self.most else math.floor
        return f"{rounding(self.value * 100 - 1e-9 if self.most else self.value * 100 + 1e-9) / 100:.2f} {self.unit}"

    @property
    def verdict(self) -> str:
        return "met" if self.met else f"missed by {abs(self.value / self.limit - 1):.0%}"


@dataclass
class Report:
    """What a run found: bars, and one table per question (heading, rows of cells)."""

    rounds: int
    bars: list[Bar] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cycles: dict[int, float] = field(default_factory=dict)  # one cycle by the raw calls, by size

    def bar(self, *args: Any, **kwargs: Any) -> None:
        bar = Bar(*args, **kwargs)
        self.bars.append(bar)
        limit = f"{'<=' if bar.most else '>='} {bar.limit:g} {bar.unit}"
        print(f"  {bar.text}: {bar.shown} (bar {limit}): {bar.verdict}", file=sys.stderr)

    def row(self, table: str, *cells: str) -> None:
        self.tables.setdefault(table, []).append(list(cells))
        print(f"  {table:8} " + "  ".join(cells), file=sys.stderr)


@dataclass
class Bench:
    """Where, how long, and what has been made so far."""

    work: Path  # a folder in memory, gone at the end
    disk: Path
    rounds: int
    sizes: tuple[int, ...]
    stack: ExitStack
    report: Report
    peers: list[Peer]

    def store(self, size: int, place: Path | None = None) -> Path:
        """A store with studies of that size, made at the first call."""
        root = (place or self.work) / f"store-{size}"
        if not root.exists():
            print(f"filling {root.parent.name} with {size:,} trials", file=sys.stderr)
            fill(root, size)
        return root

    def fresh(self, name: str) -> Path:
        """An empty folder."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.work))

    @property
    def largest(self) -> int:
        return self.sizes[-1]


def once(*command: Any) -> dict[str, Any]:
    """What a process that measures once answers."""
    run = subprocess.run([sys.executable, *map(str, command)], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def peer_once(peer: Peer, *arguments: object) -> float:
    """The CPU seconds a peer's process that measures once answers."""
    return float(json.loads(peer.run(*arguments).splitlines()[-1])["cpu_s"])


def ask(one: Contestant, line: Any) -> dict[str, Any]:
    """One window of a served process that answers in JSON."""
    tell(one, line)
    return heard(one)


def tell(one: Contestant, line: Any) -> None:
    assert one.process.stdin is not None
    one.process.stdin.write(f"{line}\n")
    one.process.stdin.flush()


def heard(one: Contestant) -> dict[str, Any]:
    assert one.process.stdout is not None
    found: dict[str, Any] = json.loads(one.process.stdout.readline())
    return found


def paired(values: Sequence[float], floors: Sequence[float]) -> float:
    """The median over the rounds of one by the other."""
    return statistics.median(value / floor for value, floor in zip(values, floors, strict=True))


# ---- the questions


def cycle(bench: Bench) -> None:
    """One full cycle in studies of every size, all sizes in the same rounds."""
    start = [sys.executable, str(HERE / "cycle.py"), "--serve"]
    for place, folder in {"tmpfs": bench.work, **{k: bench.disk for k in places(bench.disk) if "disk" in k}}.items():
        served: dict[tuple[str, int], Contestant] = {}
        with ExitStack() as running:
            for size in bench.sizes:
                root = bench.store(size, folder)
                for name in LABELS:
                    command = [*start, name, str(root), str(size)]
                    served[name, size] = running.enter_context(contestant(name, command))
            for _ in range(bench.rounds):
                for one in served.values():
                    one.window(WINDOW)
        first, last = bench.sizes[0], bench.largest
        for name, label in LABELS.items():
            for size in bench.sizes:
                own, raw, least = (served[key].seconds for key in ((name, size), ("raw", size), (name, first)))
                ratio, mean = paired(own, raw), statistics.fmean(own) / statistics.fmean(raw)
                if (place, name) == ("tmpfs", "loop"):
                    bench.report.cycles[size] = ratio
                cells = (
                    f"{statistics.median(own) * 1e3:.3f}",
                    f"{ratio:.1f}",
                    f"{mean:.1f}",
                    f"{paired(own, least):.2f}",
                )
                bench.report.row("cycle", place, label, f"{size:,}", *cells)
        for name in ("loop", "functions") if place == "tmpfs" else ():
            worst = max(paired(served[name, size].seconds, served["raw", size].seconds) for size in bench.sizes)
            flat = paired(served[name, last].seconds, served[name, first].seconds)
            bench.report.bar(f"one cycle ({LABELS[name]}), the worst of all sizes, by raw system calls", 4.0, worst)
            bench.report.bar(f"one cycle ({LABELS[name]}) at {last:,} trials by the same at {first:,}", 1.2, flat)


def peer_cycle(bench: Bench) -> None:
    """The peers' ask and tell, at the sizes they reach, with the raw loop in the same rounds."""
    start = [sys.executable, str(HERE / "cycle.py"), "--serve"]
    for size in [size for size in bench.sizes if size <= 10_000]:
        with ExitStack() as running:
            floor = running.enter_context(contestant("raw", [*start, "raw", str(bench.fresh("raw")), str(size)]))
            served = []
            for peer in bench.peers:
                path = peer.filled(bench.work, size, FILL_S)
                if path is None:
                    bench.report.row("peers", peer.name, f"{size:,}", f"not reached in {FILL_S:.0f} s", "", "")
                else:
                    served.append(
                        (peer, running.enter_context(contestant(peer.name, peer.command("serve", path, size))))
                    )
            for _ in range(min(bench.rounds, 7) if size > 1000 else bench.rounds):
                floor.window(WINDOW)
                for _, one in served:
                    one.window(WINDOW)
            for peer, one in served:
                ratio = paired(one.seconds, floor.seconds)
                ms = statistics.median(one.seconds) * 1e3
                ours = bench.report.cycles.get(size)
                bench.report.row(
                    "peers", peer.name, f"{size:,}", f"{ms:.2f}", f"{ratio:.0f}", f"{ratio / ours:.0f}" if ours else ""
                )


def join(bench: Bench) -> None:
    """A fresh process reads the study; two others read and decode the same bytes."""
    for size in bench.sizes[-2:]:
        root, plan = bench.store(size), bench.work / f"plan-{size}.json"
        once(SERVED, "parts", root, plan)
        took: dict[str, list[float]] = {"join": [], "full": [], "slim": []}
        held = 0
        for _ in range(bench.rounds):
            took["join"].append(once(SERVED, "join", root)["cpu_s"])
            for structs in ("full", "slim"):
                found = once(SERVED, "decode", root, structs, plan)
                took[structs].append(found["cpu_s"])
                held = found["bytes"]
        ms = {name: f"{statistics.median(values) * 1e3:.1f}" for name, values in took.items()}
        full, slim = paired(took["join"], took["full"]), paired(took["join"], took["slim"])
        bench.report.row(
            "join", f"{size:,}", f"{held / 1e6:.1f}", ms["join"], ms["full"], f"{full:.2f}", ms["slim"], f"{slim:.2f}"
        )
        for peer in bench.peers if size <= 10_000 else ():
            path = peer.filled(bench.work, size, FILL_S)
            if path is not None and peer.name != "NePS":  # which has no call that reads all and does nothing else
                peer_ms = 1e3 * statistics.median(peer_once(peer, "join", path) for _ in range(5))
                by = peer_ms / 1e3 / statistics.median(took["join"])
                bench.report.row(
                    "join", f"{size:,}", "", f"{peer.name}: {peer_ms:.0f}", "", "", "", f"{by:.0f} times ours"
                )
        if size == bench.largest:
            text = f"a fresh join of {size:,} by reading and decoding the same bytes"
            bench.report.bar(f"{text} (full records)", 1.5, full)
            bench.report.bar(f"{text} (only the fields that are kept)", 1.5, slim)


def nothing(bench: Bench) -> None:
    """A worker looks again and there is nothing new."""
    command = [sys.executable, SERVED, "nothing_new", str(bench.store(bench.largest))]
    with contestant("nothing new", command) as one:
        ms = [1e3 * ask(one, 20)["cpu_s"] for _ in range(bench.rounds)]
    bench.report.row("nothing", f"{bench.largest:,}", f"{statistics.median(ms):.3f}", f"{max(ms):.3f}")
    bench.report.bar(f"nothing new since the last look, {bench.largest:,} trials", 1.0, statistics.median(ms), "ms")


def crowd(bench: Bench) -> None:
    """Many processes claim from one study as fast as they can, each after a refresh."""
    root = bench.store(bench.sizes[0])
    with ExitStack() as running:
        crowds = {
            size: [
                running.enter_context(
                    contestant("crowd", [sys.executable, SERVED, "crowd", str(root), f"crowd-{size}"])
                )
                for _ in range(size)
            ]
            for size in CROWDS
        }
        found: dict[int, list[tuple[float, float]]] = {size: [] for size in CROWDS}
        for _ in range(bench.rounds):
            for size, members in crowds.items():
                for one in members:
                    tell(one, 0.75)
                told = [heard(one) for one in members]
                claims, tries = sum(one["claims"] for one in told), sum(one["tries"] for one in told)
                found[size].append((claims / 0.75, tries / claims))
    alone = statistics.median(rate for rate, _ in found[1])
    for size, values in found.items():
        rate, tries = (statistics.median(column) for column in zip(*values, strict=True))
        bench.report.row("crowd", str(size), f"{rate:.0f}", f"{rate / alone:.2f}", f"{tries:.2f}")
        if size == CROWDS[-1]:
            bench.report.bar(f"names tried per claim, {size} processes", 4.0, tries, "tries")


def sleepers(bench: Bench) -> None:
    """Workers whose objective sleeps: twice as many should do nearly twice as much."""
    root = bench.store(bench.sizes[0])
    rates = sleeping(bench, lambda size: [sys.executable, SERVED, "sleepers", str(root), f"sleep-{size}", str(SLEEP_S)])
    gain = paired(rates[8], rates[4])
    bench.report.row("sleep", "dibs", *(f"{statistics.median(rates[size]):.0f}" for size in (4, 8)), f"{gain:.2f}")
    for peer in bench.peers:
        path = peer.filled(bench.work, bench.sizes[0], FILL_S)
        if path is not None:
            few = Bench(bench.work, bench.disk, 5, bench.sizes, bench.stack, bench.report, [])
            rates = sleeping(few, lambda size, p=peer, at=path: p.command("work", at, SLEEP_S))  # type: ignore[misc]
            by = paired(rates[8], rates[4])
            bench.report.row("sleep", peer.name, *(f"{statistics.median(rates[n]):.0f}" for n in (4, 8)), f"{by:.2f}")
    bench.report.bar(f"8 workers by 4, an objective of {SLEEP_S * 1e3:.0f} ms", 1.7, gain, most=False)


def sleeping(bench: Bench, command: Callable[[int], list[str]], window_s: float = 2.0) -> dict[int, list[float]]:
    """Trials per second of 4 and of 8 workers, by round."""
    with ExitStack() as running:
        crowds = {
            size: [running.enter_context(contestant("sleepers", command(size))) for _ in range(size)] for size in (4, 8)
        }
        rates: dict[int, list[float]] = {4: [], 8: []}
        for _ in range(bench.rounds):
            for size, members in crowds.items():
                for one in members:
                    tell(one, window_s)
                rates[size].append(sum(heard(one)["trials"] for one in members) / window_s)
    return rates


def memory(bench: Bench) -> None:
    """What a process that has read the study holds."""
    found = [once(SERVED, "memory", bench.store(bench.largest)) for _ in range(5)]
    values = {name: statistics.median(one[name] for one in found) / 1e6 for name in ("bare", "held", "history")}
    grown = values["held"] - values["bare"]
    bench.report.row(
        "memory", f"{bench.largest:,}", f"{values['bare']:.0f}", f"{grown:.0f}",
        f"{1e6 * grown / bench.largest:.0f}", f"{values['history'] - values['held']:.0f}",
    )  # fmt: skip
    bench.report.bar(f"memory that a study of {bench.largest:,} trials takes", 80.0, grown, "MB")


def start(bench: Bench) -> None:
    """Fresh processes that import dibs, or its three libraries."""
    programs = {
        "nothing": "pass", "libraries": "import click, msgspec, numpy", "dibs": "import dibs",
        "worker": "from dibs import Float, Sobol, Space, Store, Study",
    }  # fmt: skip
    took: dict[str, list[float]] = {name: [] for name in programs}
    for program in programs.values():  # whatever is not compiled yet is compiled now, into a folder of its own
        cpu_of([sys.executable, "-c", program], bench.work)
    for _ in range(max(20, bench.rounds)):
        for name, program in programs.items():
            took[name].append(cpu_of([sys.executable, "-c", program], bench.work))
    for name, values in took.items():
        ratio = paired(values, took["libraries"])
        bench.report.row("start", f"`{programs[name]}`", f"{statistics.median(values) * 1e3:.0f}", f"{ratio:.2f}")
    for name in ("dibs", "worker"):
        text = f"`{programs[name]}` by `{programs['libraries']}`"
        bench.report.bar(text, 1.2, paired(took[name], took["libraries"]))


def cpu_of(command: list[str], work: Path) -> float:
    """CPU seconds of a process from its start to its end; all modules compiled, as an installed package's are."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    pid = os.posix_spawn(command[0], command, environ | {"PYTHONPYCACHEPREFIX": str(work / "pycache")})
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"{command} failed")
    return usage.ru_utime + usage.ru_stime


QUESTIONS = {one.__name__: one for one in (cycle, peer_cycle, join, nothing, crowd, sleepers, memory, start)}


def run(
    rounds: int, sizes: tuple[int, ...], only: Sequence[str], *, with_peers: bool = True, neps: bool = False
) -> Report:
    """All questions, in one run."""
    report = Report(rounds)
    memory_folder = places(HERE).get("tmpfs")
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=memory_folder)))
        on_disk = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=HERE)))
        found = peers(report.notes, neps=neps) if with_peers else []
        bench = Bench(work, on_disk, rounds, sizes, stack, report, found)
        for name in only:
            print(name, file=sys.stderr)
            QUESTIONS[name](bench)
    return report


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description="Whether costs stay flat.")
    parser.add_argument("--rounds", type=int, default=21, help="windows of each (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials and few rounds; writes nothing")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), help="some of the questions")
    parser.add_argument("--no-peers", action="store_true", help="measure dibs alone")
    parser.add_argument("--neps", action="store_true", help="install NePS too, several gigabytes")
    parser.add_argument("--dry", action="store_true", help="print the page instead of writing it")
    given = parser.parse_args(arguments)
    sizes = (100, 1_000, 10_000) if given.quick else (100, 1_000, 10_000, 100_000)
    report = run(
        min(given.rounds, 5) if given.quick else given.rounds,
        sizes,
        given.only,
        with_peers=not given.no_peers,
        neps=given.neps,
    )
    text = page(report)
    if given.dry or given.quick or len(given.only) < len(QUESTIONS):
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
        print(f"written to {PAGE.relative_to(HERE.parent)}", file=sys.stderr)


if __name__ == "__main__":
    main()
