"""The simulator: the same seed is the same run, 500 seeds hold, and a run that fails explains itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dibs.testing._simulator import simulate
from dibs.testing.simulate import main

SEEDS = 500
BATCH = 50
PROBE = "from dibs.testing import replay; print(*(replay(seed).digest for seed in range(12)))"


@pytest.mark.parametrize("start", range(0, SEEDS, BATCH))
def test_the_protocol_holds(start: int) -> None:
    for seed in range(start, start + BATCH):
        run = simulate(seed)
        assert run.broken == [], run.explain()


def test_a_seed_replays_exactly_in_another_process_and_in_any_order() -> None:
    here = [simulate(seed).digest for seed in reversed(range(12))][::-1]
    for hash_seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", PROBE],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.split() == here
    assert len(set(here)) == len(here)


def test_chaos_takes_place() -> None:
    """A simulator in which nothing happens would hold as well."""
    runs = [simulate(seed) for seed in range(40)]
    told = {event.what for run in runs for event in run.events}
    notes = {str(answer) for run in runs for *_, answer in run.trace}
    assert {run.plan.kind for run in runs} == {"link", "mkdir", "put"}
    assert told >= {
        "claimed",
        "refused",
        "unsure",
        "closed",
        "lost",
        "saved",
        "killed",
        "wished",
        "looked",
        "held",
        "idle",
    }
    assert notes >= {
        "unsure (done)",
        "unsure (lands late)",
        "unsure (never happens)",
        "lost (sent twice)",
        "error",
        "old",
    }
    states = {stands.state for run in runs for stands in run.final.trials.values()}
    assert states >= {"done", "pruned", "failed"}
    assert max(attempt for run in runs for _, attempt in run.final.attempts) >= 3


def test_the_command_says_it_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "3", "--start", "5", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 seeds, ")
    assert " 0 broken (" in out
