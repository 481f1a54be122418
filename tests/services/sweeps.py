"""A sweep of six cells for workers that were launched: $TOGETHER have to run at once, and the first attempt at one stays until it is ended."""

from __future__ import annotations

import json
from pathlib import Path

from tests.services.launches import Launch
from tests.services.machines import dibs
from tests.sweep.sweeping import NAME, final, stood, sweep

from dibs import Store

__all__ = ["CELLS", "NAME", "SWEEPING", "alone", "gone", "held", "plan", "proven"]

CELLS = tuple(f"c{k}" for k in range(6))
SWEEPING = ["dibs", "sweep", "run", "--name", NAME, "--wait"]
# c0 is the longest, so it is among the first; it ends by itself if its test is not there any more
SCRIPT = """#!/bin/sh
set -e
mkdir -p "$DIBS_HERE/begun"
: > "$DIBS_HERE/begun/$DIBS_NAME"
for turn in $(seq 2000); do
  [ "$(ls "$DIBS_HERE/begun" | wc -l)" -lt "$TOGETHER" ] || break
  [ "$turn" -lt 2000 ] || { echo "never $TOGETHER at once"; exit 3; }
  sleep 0.03
done
if [ "$DIBS_NAME" = c0 ] && [ "$DIBS_ATTEMPT" = 0 ]; then
  echo "$$ $DIBS_ME" > "$DIBS_HERE/held.part"
  mv "$DIBS_HERE/held.part" "$DIBS_HERE/held"
  for turn in $(seq 2000); do sleep 0.03; done
  exit 4
fi
cat "$1" > best.pth
echo "{\\"attempt\\": $DIBS_ATTEMPT, \\"epochs\\": $3}" > metrics.json
"""


def plan(launch: Launch) -> None:
    """The sweep, in the launch's store, with its script and configs in the launch's folder."""
    sweep(launch.folder, CELLS, SCRIPT, costs={"c0": 9.0}, store=Store(launch.store))


def alone(launch: Launch) -> bool:
    """Whether all but the cell that stays are done."""
    states = {name: each.state for name, each in stood(Store(launch.store)).items()}
    return (launch.folder / "held").exists() and states == {**dict.fromkeys(CELLS, "done"), "c0": "running"}


def held(launch: Launch) -> tuple[int, str]:
    """The process of the cell that stays, and the worker that runs it."""
    pid, worker = (launch.folder / "held").read_text().split()
    return int(pid), worker


def proven(launch: Launch) -> str:
    """Every cell is done once, c0 by its second attempt, each with results of its own, and reconcile finds nothing.

    What the record of the first attempt at c0 was left at.
    """
    told = dibs("sweep", "reconcile", "--store", launch.store, "--name", NAME, "--json")
    assert (told.code, told.told["findings"]) == (0, []), f"{told.out}\n{told.err}\n{launch.logs()}"
    store = Store(launch.store)
    found = stood(store)
    assert {name: each.state for name, each in found.items()} == dict.fromkeys(CELLS, "done")
    for name, each in found.items():
        done = [run.attempt for run in each.runs if run.state == "done"]
        assert done == [1 if name == "c0" else 0], each
        assert (final(store, name) / "best.pth").read_text() == f"name = {name!r}\n"
        assert json.loads((final(store, name) / "metrics.json").read_text()) == {"attempt": done[0], "epochs": 3}
    return found["c0"].runs[0].state


def gone(pid: int) -> bool:
    """Whether the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
