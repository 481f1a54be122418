"""``python bench/optuna_storage.py``: Optuna on our storage and on its own journal file, side by side in one run.

Each contestant has a storage of its own in one folder; in every round 1, 2, 4 and 8 processes work in it for a window, the
contestants in turn, so that whatever else the machine does hits both. A trial is ``ask`` with five floats by the random
sampler, and ``tell``: seven operations. Then a fresh process reads all trials. Needs the extra ``optuna``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CREWS = (1, 2, 4, 8)
KINDS = ("dibs", "optuna")


def storage(kind: str, folder: str) -> Any:
    """The contestant's storage in that folder."""
    if kind == "dibs":
        from dibs.optuna import Storage

        return Storage(f"{folder}/dibs")
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(f"{folder}/optuna.log"))


def work(kind: str, folder: str, name: str) -> None:
    """Trials for as many seconds as each line says; answers with their number and the CPU they cost."""
    import optuna
    from optuna.distributions import FloatDistribution

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    spaces = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(5)}
    sampler = optuna.samplers.RandomSampler()
    study = optuna.create_study(storage=storage(kind, folder), study_name=name, sampler=sampler, load_if_exists=True)
    print("ready", flush=True)
    for line in sys.stdin:
        until, began, done = time.monotonic() + float(line), time.process_time(), 0
        while time.monotonic() < until:
            study.tell(study.ask(spaces), 0.5)
            done += 1
        print(json.dumps([done, time.process_time() - began]), flush=True)


def join(kind: str, folder: str) -> None:
    """What a fresh process does before it knows the trials; what it imports is not in it."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as empty:
        storage(kind, empty)
    began = time.process_time()
    there = storage(kind, folder)
    trials = sum(len(there.get_all_trials(study._study_id, deepcopy=False)) for study in there.get_all_studies())
    print(json.dumps([trials, time.process_time() - began]))


class Crew:
    """So many processes of one contestant on a study of their own."""

    def __init__(self, kind: str, folder: Path, size: int) -> None:
        command = [sys.executable, __file__, "--work", kind, str(folder), f"of {size}"]
        self.workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(size)
        ]
        for worker in self.workers:
            self.answer(worker)

    @staticmethod
    def answer(worker: subprocess.Popen[str]) -> str:
        assert worker.stdout is not None
        return worker.stdout.readline()

    def window(self, seconds: float) -> tuple[float, float]:
        """(trials per second, milliseconds of CPU per trial)."""
        for worker in self.workers:
            assert worker.stdin is not None
            worker.stdin.write(f"{seconds}\n")
            worker.stdin.flush()
        answers = [json.loads(self.answer(worker)) for worker in self.workers]
        trials = sum(done for done, _ in answers)
        return trials / seconds, 1000 * sum(cpu for _, cpu in answers) / max(1, trials)

    def end(self) -> None:
        for worker in self.workers:
            worker.communicate()


def measure(folder: Path, rounds: int, window_s: float) -> list[str]:
    """The lines of the table."""
    lines = [
        "| processes | dibs, trials/s | Optuna, trials/s | ratio | dibs, CPU ms | Optuna, CPU ms | ratio |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for size in CREWS:
        crews = {kind: Crew(kind, folder, size) for kind in KINDS}
        found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
        for turn in range(rounds):
            for kind in KINDS if turn % 2 else KINDS[::-1]:
                found[kind].append(crews[kind].window(window_s))
        for crew in crews.values():
            crew.end()
        (speed, cpu), (their_speed, their_cpu) = (
            [statistics.median(row[at] for row in found[kind]) for at in (0, 1)] for kind in KINDS
        )
        lines.append(
            f"| {size} | {speed:.0f} | {their_speed:.0f} | {speed / max(their_speed, 0.01):.2f} "
            f"| {cpu:.2f} | {their_cpu:.2f} | {cpu / their_cpu:.2f} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    for kind in KINDS:
        joined = subprocess.run(
            [sys.executable, __file__, "--join", kind, str(folder)], check=True, capture_output=True, text=True
        )
        trials, cpu_s = json.loads(joined.stdout)
        lines.append(
            f"\nA fresh process reads {trials} trials of {kind}: {1000 * cpu_s / max(1, trials):.3f} ms of CPU each."
        )
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the storages lie (a temporary folder beside this file)")
    parser.add_argument("--rounds", type=int, default=5, help="windows per contestant and crew (%(default)s)")
    parser.add_argument("--window", type=float, default=2.0, help="seconds of a window (%(default)s)")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--join", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(*given.work)
    elif given.join:
        join(*given.join)
    else:
        with tempfile.TemporaryDirectory(prefix="dibs-bench-", dir=given.folder or Path(__file__).parent) as folder:
            print("\n".join(measure(Path(folder), given.rounds, given.window)))


if __name__ == "__main__":
    main()
