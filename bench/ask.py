"""CPU time of one ask of the samplers that learn, against Optuna's default sampler on the same history.

Ten mixed parameters, 16 running trials; nsga2 and gp/2 have two goals, and Optuna, here too, one. Each contestant is a process; one round lets each ask a few times in turn, so
that whatever else the machine does hits all of them. Reported: the median over the rounds, and the median ratio.
``python -m bench.ask`` (``--sizes 1000 --rounds 10``, ``--no-peer``).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .cycle import Contestant, Peer, contestant, serve

HERE = Path(__file__).resolve().parent
SIZES = (100, 1_000, 10_000)
SAMPLERS = ("tpe", "gp", "gp/2", "nsga2", "cmaes")
RUNNING = 16
WINDOW = 3
#: what an ask may cost, as a part of the peer's, where that was agreed on
BARS = {"tpe": 1 / 20, "gp": 1 / 3}


def asker(name: str, size: int) -> Callable[[], Any]:
    """A function that asks for the next index of a study with ``size`` scored trials and 16 running ones."""
    from dibs import Choice, Float, History, Int, Random, Space
    from dibs.search import make_sampler

    space = Space(
        a=Float(0, 1), b=Float(-5, 10), c=Float(0, 0.5), d=Float(1e-5, 1, log=True), e=Float(1e-3, 10, log=True),
        f=Int(1, 9), g=Int(1, 1024, log=True), h=Choice("adam", "sgd", "rmsprop"), i=Choice(True, False),
        j=Choice("relu", "gelu", "silu", "tanh"),
    )  # fmt: skip
    draw = Random(seed=3)
    rows: list[Any] = []
    for n in range(size + RUNNING):
        point = draw.ask(space, n)
        score = sum((at - 0.3) ** 2 for at in space.unit(point).values())
        rows.append((n, point, None, "running", None) if n >= size else (n, point, score, "done", None))
    goal: Any = "min"
    if name in ("gp/2", "nsga2"):
        goal = ("min", "max")
        rows = [(n, p, None if y is None else (y, sum(space.unit(p).values())), state, s) for n, p, y, state, s in rows]
    sampler = make_sampler(name.partition("/")[0], seed=0, goal=goal)
    history, asked = History.of(rows), iter(range(size + 100, 10**9))
    return lambda: sampler.ask(space, next(asked), history)


def first(name: str, size: int) -> float:
    """CPU seconds of a fresh process's first ask, in which nothing is remembered."""
    code = f"import time; from bench.ask import asker; f = asker({name!r}, {size}); t = time.process_time(); f(); print(time.process_time() - t)"
    out = subprocess.run([sys.executable, "-c", code], cwd=HERE.parent, capture_output=True, text=True, check=True)
    return float(out.stdout)


def measure(sizes: list[int], rounds: int, peer: Peer | None) -> list[str]:
    """The lines of the table."""
    lines = [
        "| trials | sampler | ms per ask, median | least | first ask of a process, ms | of the peer's | bar |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        with ExitStack() as running:
            start = [sys.executable, "-m", "bench.ask", "--serve"]
            commands = {name: [*start, name, str(size)] for name in SAMPLERS}
            if peer is not None:
                commands["optuna"] = [str(peer.python), str(HERE / "peer_optuna_ask.py"), str(size)]
            each: dict[str, Contestant] = {
                name: running.enter_context(contestant(name, command)) for name, command in commands.items()
            }
            for _ in range(rounds):
                for one in each.values():
                    one.window(WINDOW)
            for name, one in each.items():
                cold, ratio, bar = "", "", ""
                if name in SAMPLERS:
                    cold = f"{1e3 * first(name, size):.1f}"
                    if peer is not None:
                        part = statistics.median(
                            a / b for a, b in zip(one.seconds, each["optuna"].seconds, strict=True)
                        )
                        ratio = f"1/{1 / part:.1f}"
                        if name in BARS:
                            bar = f"1/{1 / BARS[name]:.0f} {'met' if part <= BARS[name] else '**missed**'}"
                middle, least = 1e3 * statistics.median(one.seconds), 1e3 * min(one.seconds)
                lines.append(f"| {size:,} | {name} | {middle:.2f} | {least:.2f} | {cold} | {ratio} | {bar} |")
                print(lines[-1], file=sys.stderr)
    return lines


def main() -> None:
    """Serve one contestant, or measure all and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.ask", description=__doc__.splitlines()[0])
    parser.add_argument("--serve", nargs=2, metavar=("NAME", "TRIALS"), help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="trials in the history (%(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="windows per contestant (%(default)s)")
    parser.add_argument("--no-peer", action="store_true", help="do not install and measure Optuna")
    given = parser.parse_args()
    if given.serve:
        ask = asker(given.serve[0], int(given.serve[1]))
        serve(lambda n: ask(), 0)
        return
    with tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=HERE) as work:
        peer = None if given.no_peer else Peer(Path(work))
        if peer is not None:
            print(f"peer: Optuna {peer.version}, TPESampler as it comes", file=sys.stderr)
        print("\n".join(measure(given.sizes, given.rounds, peer)))


if __name__ == "__main__":
    main()
